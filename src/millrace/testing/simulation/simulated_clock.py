"""The clock of a simulated run: work takes what chance says, and waiting ends when a row arrives.

Rules:
- True time only grows. What a run reads is true time plus the error of its clock, which a jump changes.
- Where a step of the kernel costs much, the run reads its streams, delivers and commits in its midst: so chance chooses
  the order in which everything happens.
- Once all rows have arrived only time passes. After many waits each is longer than the one before it, so that a window
  of a month that waits for heartbeats every three seconds comes to its end.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from threading import Event

from millrace.hosts.system_clock import SystemClock
from millrace.kernel.elements import Microseconds
from millrace.testing.simulation.run_faults import Fate

_COSTS = (0, 0, 0, 1, 40, 1_200, 11_000)
"""Microseconds that a step may take: less and more than what a turn of the local host allows."""
_PATIENCE = 1_000
"""How many waits after the last row are as long as asked for."""


class SimulatedClock(SystemClock):
    """A clock that moves by work and by waiting."""

    def __init__(self, start: Microseconds, random: Random, next_arrival: Callable[[], Microseconds | None]) -> None:
        super().__init__()
        self.time = start
        self.error: Microseconds = 0
        self.fate: Fate | None = None
        self.stepped: Callable[[str], None] = lambda node: None
        """Called with the name of the operator at every step."""
        self._random, self._next_arrival = random, next_arrival
        self._idle = 0
        """How often the present run has waited since the last row arrived."""

    def begin(self, fate: Fate) -> None:
        """Serve another process, which knows nothing of what the clock showed before."""
        self.fate, self._shown, self._anchor, self._idle = fate, 0, None, 0

    def wall(self) -> Microseconds:
        """What the machine's clock shows."""
        return self.time + self.error

    def elapsed(self) -> Microseconds:
        """True time."""
        return self.time

    def wait(self, woken: Event, seconds: float) -> None:
        """Move on; a look at streams that have nothing is skipped."""
        due = self._next_arrival()
        until = self.time + (max(1, round(seconds * 1e6)) << min(max(0, self._idle - _PATIENCE), 20))
        self._idle += due is None
        if due is not None and due > until and self._random.random() < 0.9:
            until = due - self._random.choice((0, 1, (due - until) // 2))
        self.time = until

    def spend(self, node: str, rows: int, ets: bool = False) -> None:
        """Work: it takes some time, or none."""
        if self.fate is not None:
            self.fate.step()
        self.time += self._random.choice(_COSTS)
        self.stepped(node)
