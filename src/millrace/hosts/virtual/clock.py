"""The clock of virtual time: it moves by what work costs, and by jumps.

Rules:
- The work of an operator takes its time before anything comes of it: a program that asked to be called at a time in
  between sees the network as it was when the work began.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from millrace.kernel.elements import END_OF_TIME, Microseconds


@dataclass(frozen=True)
class Costs:
    """What an operator's work costs, in microseconds.

    A row, a punctuation, an ETS that came by an ETS arc, a pair of rows that a join compares. `of` says by label what a
    row costs at some operators, `{"project": 1000}`, or by name at one; at all others it is `row`.
    """

    row: Microseconds = 0
    punctuation: Microseconds = 0
    ets: Microseconds = 0
    pair: float = 0
    of: Mapping[str, Microseconds] = field(default_factory=dict, hash=False)

    def row_at(self, node: str) -> Microseconds:
        """What a row costs at a node; its name begins with its operator's label.

        >>> costs = Costs(row=5, of={"project": 1000, "project#17bc": 10})
        >>> [costs.row_at(name) for name in ("project#3f2a", "project#17bc", "filter#a15e")]
        [1000, 10, 5]
        """
        named = self.of.get(node)
        return self.of.get(node.partition("#")[0], self.row) if named is None else named


class VirtualClock:
    """A clock that moves by the cost of work and by jumps."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.time: Microseconds = 0
        self._owed = 0.0
        self._rows: dict[str, Microseconds] = {}
        self._alarm: Microseconds = END_OF_TIME
        self._ring: Callable[[Microseconds], Microseconds] = lambda at: END_OF_TIME

    def now(self) -> Microseconds:
        """Where it stands."""
        return self.time

    def spend(self, node: str, rows: int, ets: bool = False) -> None:
        """Move by the cost of the work done."""
        if rows:
            if node not in self._rows:
                self._rows[node] = self.costs.row_at(node)
            self.time += self._rows[node] * rows
        else:
            self.time += self.costs.ets if ets else self.costs.punctuation
        if self.time >= self._alarm:
            self._passed()

    def compare(self, node: str, pairs: int) -> None:
        """Move by the cost of comparing, to the nearest microsecond in the long run."""
        self._owed += self.costs.pair * pairs
        whole = int(self._owed)
        self._owed -= whole
        self.jump(self.time + whole)

    def jump(self, to: Microseconds) -> None:
        """Move to a later time."""
        self.time = to
        if self.time >= self._alarm:
            self._passed()

    def at(self, time: Microseconds, ring: Callable[[Microseconds], Microseconds]) -> None:
        """Have a call made when this time has been reached, before anything else happens; it gives the next time."""
        self._alarm, self._ring = time, ring

    def _passed(self) -> None:
        while self._alarm <= self.time:
            self._alarm = self._ring(self._alarm)
