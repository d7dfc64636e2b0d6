"""What the statistics monitor knows of a queue as a whole: the cost of a row, and the load (002 section 4.2).

Rules:
- The cost of a row is the time from when rows are released until they have been processed, divided by their number; the
  last ten times or so count. A host that measures itself tells it instead.
- With a budget rows may leave more slowly than they could be processed. A turn is the time from one spent allowance to
  the next while rows wait; the pace is a turn divided by the rows that left in it. The time per row follows from these.
- The load is the share of time that it would take to process all rows that arrive: arrivals per second times the time
  per row. It is looked at once a period, never in between, so that it does not depend on how rows are cut into batches.
- A queue that sheds keeps as many rows as there is time to process, less the time in which it catches up with those
  that wait.
- A queue that switches by itself appends while it keeps up. It updates when what waits would take longer than `HIGH` to
  process, or is more than `MOST` rows; and it appends again when it has run empty after the load has been below `LOW`
  for a while. This while is doubled each time it was too short.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.kernel.elements import NO_BOUND, Microseconds

PERIOD: Microseconds = 1_000_000
HIGH: Microseconds = 1_000_000
MOST = 100_000
LOW = 0.7
CALM: Microseconds = 5_000_000
_MOST_CALM: Microseconds = 300_000_000
_HEADROOM = 0.95
"""How much of the time shedding leaves to be used."""
_CATCH_UP: Microseconds = 10_000_000
"""Shedding takes about this long to catch up with what waits, such as what came before the load was known."""
_FADE = 0.9
_PERIOD_FADE = 0.5


class Noted:
    """What is saved as it stands: its attributes, numbers and lists of numbers."""

    def note(self) -> dict[str, Any]:
        """All of it."""
        return {name: list(value) if isinstance(value, list) else value for name, value in vars(self).items()}

    def restore(self, note: Mapping[str, Any]) -> None:
        """Go on from a note."""
        for name, value in note.items():
            setattr(self, name, list(value) if isinstance(value, list) else value)


class Load(Noted):
    """Cost and load as they are measured."""

    def __init__(self) -> None:
        self.measured: float | None = None
        """What a row costs, in microseconds."""
        self.load = 0.0
        self.keep = 1.0
        """The share of rows that can be processed."""
        self._spent = 0.0
        self._worked = 0.0
        self._turn = self._pace = 0.0
        """How long a turn takes, and a row that leaves while others wait, in microseconds; 0 before that is known."""
        self._last = [NO_BOUND, 0, 0]
        """When the last turn ended, how many rows waited then, and how many have left since."""
        self._began: Microseconds = NO_BOUND
        self._came = 0
        self._seen = [0.0, 0.0]
        """Rows and time of the periods so far, the older the less."""

    @property
    def begun(self) -> bool:
        """True if it knows what time it is."""
        return self._began != NO_BOUND

    def work(self, rows: int, micros: Microseconds) -> None:
        """So many rows took so long."""
        self._worked = _FADE * self._worked + rows
        self._spent = _FADE * self._spent + micros
        self.measured = self._spent / self._worked

    def leave(self, now: Microseconds, rows: int, waiting: int, *, spent: bool) -> None:
        """Rows leave, and `waiting` rows still wait; `spent` is True if no more may leave in this turn."""
        self._last[2] += rows
        began, before, left = self._last
        if (waiting and not spent) or now <= began:
            return
        if began != NO_BOUND:
            turn, pace = float(now - began), (now - began) / left
            # If it ran empty or was idle, it took no longer than that.
            faded = _faded if before and waiting else min
            self._turn, self._pace = faded(self._turn, turn), faded(self._pace, pace)
        self._last = [now, waiting, 0]

    def each(self, cost: float | None, rows: int | None, time: Microseconds | None) -> float:
        """How long a row takes: its cost, or more with a budget of rows, or of time in a turn."""
        cost = cost or 0.0
        if rows is not None:
            return max(cost, self._pace)
        return cost if time is None else cost * max(1.0, self._turn / time)

    def come(self, rows: int) -> None:
        """Rows have come."""
        self._came += rows

    def tick(self, now: Microseconds, cost: float | None, waiting: int) -> None:
        """Time has gone on, and `waiting` rows wait."""
        if self._began == NO_BOUND:
            self._began = now
        if now - self._began < PERIOD:
            return
        self._seen = [
            _PERIOD_FADE * self._seen[0] + self._came,
            _PERIOD_FADE * self._seen[1] + (now - self._began),
        ]
        self._began, self._came = now, 0
        cost = cost or 0.0
        self.load = self._seen[0] * cost / self._seen[1]
        room = max(_HEADROOM - waiting * cost / _CATCH_UP, 0.0)
        self.keep = room / self.load if room < self.load else 1.0


def _faded(before: float, now: float) -> float:
    return _FADE * before + (1 - _FADE) * now if before else now


class Switch(Noted):
    """Decides by the load if a queue appends or updates, and counts how often that has changed."""

    def __init__(self) -> None:
        self.appends = True
        self.switches = 0
        self._calm_since: Microseconds | None = None
        self._calm = CALM
        self._changed: Microseconds = NO_BOUND

    def look(self, now: Microseconds, waiting: int, cost: float | None, load: float) -> bool:
        """Change if the load asks for it; True if it does."""
        if self.appends:
            if waiting * (cost or 0.0) <= HIGH and waiting <= MOST:
                return False
            # Back soon: the calm was none.
            soon = self.switches > 0 and now - self._changed < 4 * self._calm
            self._calm = min(2 * self._calm, _MOST_CALM) if soon else CALM
        else:
            if load >= LOW:
                self._calm_since = None
                return False
            self._calm_since = now if self._calm_since is None else self._calm_since
            if waiting or now - self._calm_since < self._calm:
                return False
        self.appends = not self.appends
        self.switches += 1
        self._changed, self._calm_since = now, None
        return True
