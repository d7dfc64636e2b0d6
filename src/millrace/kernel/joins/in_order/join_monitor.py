"""What an adaptive join knows of its inputs and of its work: rates, and what a pair of rows costs (003 section 6).

Rules:
- A rate is the rows of the last window of an input, by their own times and up to the input's own bound, over its
  length. No clock is read: the same rows give the same rates, however fast they come.
- Time is cut into slices, a window into sixteen of them. Only slices that the bound has passed count, so that the rate
  of evenly spaced rows is steady; before a quarter of a window has passed there are no rates.
- Until then, the time that the steps took, by the time of the streams that has passed, stands in place of the work: a
  load that is there from the start is seen within a second.
- What the work takes is told after every step. It is forgotten with time, a window weighing a third.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any

import numpy as np

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Batch, Microseconds
from millrace.kernel.joins.sides import Side

_SECOND = 1_000_000
_SLICES = 16
"""Slices to a window."""
_ENOUGH = 4
"""Slices after which there are rates."""
_LEAST_WINDOW = _SECOND
"""Rates are told over a second at least, for a join may have windows of an instant."""
_UNKNOWN_WINDOW = 10 * _SECOND
"""Over which rates are told where rows say themselves how long they match."""


class JoinMonitor:
    """The rates of a join's inputs (rows per second), and the work they make.

    `work` is the c|w|λ1λ2 of 003. For two inputs without keys c is what the steps took over the pairs they compared,
    and |w| the mean of both windows. With keys, with more inputs, or where rows say themselves how long they match,
    fewer pairs are compared than |w|λ1λ2 says: then half of the pairs really compared in a second stand in its place.
    Half, for each stream's rows are compared with the other's: in a second 2|w|λ1λ2 pairs. All rows
    of a second take c times the pairs, so work is half of that.
    """

    def __init__(self, sides: Sequence[Side]) -> None:
        lengths = [side.ahead for side in sides if side.ahead is not None and side.until is None]
        known = len(lengths) == len(sides) == 2 and not any(side.keys for side in sides)
        self.window = sum(lengths) / 2 / _SECOND if known else None
        """|w| in seconds, where it says how many pairs are compared."""
        span = max(_LEAST_WINDOW, max(lengths)) if lengths else _UNKNOWN_WINDOW
        self._length = -(-span // _SLICES)
        self._counts: list[dict[int, int]] = [{} for _ in sides]
        self._first: list[int | None] = [None] * len(sides)
        self._now = [0] * len(sides)
        """Each input's rows by slice, the first slice that was seen whole, and the slice that its bound is in."""
        self._begun: list[Microseconds] = [NO_BOUND] * len(sides)
        self._reached: list[Microseconds] = [NO_BOUND] * len(sides)
        """The first and the last bound of each input."""
        self._rows = self._pairs = self._micros = self._results = 0.0
        self._since: Microseconds | None = None
        """The time of the first row that was joined."""

    def arrived(self, port: int, batch: Batch) -> None:
        """Count rows of an input."""
        counts = self._counts[port]
        if len(batch) == 1:
            # With arrays a row alone would cost 8 % more in all.
            place = int(batch.times[0]) // self._length
            counts[place] = counts.get(place, 0) + 1
            return
        places, numbers = np.unique(batch.times // self._length, return_counts=True)
        for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
            counts[place] = counts.get(place, 0) + number

    def worked(self, rows: int, pairs: int, results: int = 0, time: Microseconds = 0) -> None:
        """Count rows that were worked on, the pairs compared for them, and what they made; `time` is that of one."""
        self._since = time if self._since is None else self._since
        self._rows += rows
        self._pairs += pairs
        self._results += results

    def spent(self, micros: Microseconds) -> None:
        """Count what a step took."""
        self._micros += micros

    def reached(self, port: int, until: Microseconds) -> bool:
        """Learn how far an input has come; True if that changes what is known of the work."""
        if until in (NO_BOUND, END_OF_TIME):
            return False
        self._reached[port] = until
        if self._begun[port] == NO_BOUND:
            self._begun[port] = until
        place = until // self._length
        if self._first[port] is None:
            self._first[port] = place + 1
        passed, self._now[port] = place - self._now[port], place
        if not passed:
            return not self._is_known
        counts = self._counts[port]
        for old in [each for each in counts if each < place - _SLICES]:
            del counts[old]
        self._forget(passed / len(self._counts))
        return True

    @property
    def _is_known(self) -> bool:
        """True if enough of each input has been seen to tell its rate."""
        return all(
            first is not None and now - first >= _ENOUGH for first, now in zip(self._first, self._now, strict=True)
        )

    def _forget(self, slices: float) -> None:
        kept = exp(-max(slices, 0.0) / _SLICES)
        self._rows, self._pairs, self._micros = self._rows * kept, self._pairs * kept, self._micros * kept
        self._results *= kept

    @property
    def rates(self) -> tuple[float, ...] | None:
        """The rows per second of each input; None before enough of each has been seen."""
        if not self._is_known:
            return None
        found = []
        for counts, first, now in zip(self._counts, self._first, self._now, strict=True):
            begin = max(first or 0, now - _SLICES)
            rows = sum([count for place, count in counts.items() if begin <= place < now])
            found.append(rows * _SECOND / ((now - begin) * self._length))
        return tuple(found)

    @property
    def pair_cost(self) -> float:
        """c: what comparing a pair takes, in seconds; 0 before any was compared."""
        return self._micros / self._pairs / _SECOND if self._pairs else 0.0

    def would_make(self, rows: int) -> float:
        """How many results this number of rows would make, with full windows; at first the greatest possible number."""
        reached = min(self._reached)
        if self._since is None or reached <= self._since or not self._rows:
            return float(rows * rows)
        window = self._length * _SLICES
        return rows * self._results / self._rows * max(1.0, window / (reached - self._since))

    @property
    def work(self) -> float | None:
        """c|w|λ1λ2, or what stands in its place; None before anything is known."""
        rates = self.rates
        if rates is None:
            return self._early_work()
        if self.window is not None:
            return self.pair_cost * self.window * rates[0] * rates[1]
        row_cost = self._micros / self._rows / _SECOND if self._rows else 0.0
        return row_cost * sum(rates) / 2

    def _early_work(self) -> float | None:
        """Half of what the steps took, by the time that has passed on all inputs; None in its first second."""
        if NO_BOUND in self._begun or not self._micros:
            return None
        passed = min([reached - begun for reached, begun in zip(self._reached, self._begun, strict=True)])
        return self._micros / passed / 2 if passed >= _LEAST_WINDOW else None

    def note(self) -> dict[str, Any]:
        """What to continue from; with rates and c, for a reader of saved state."""
        return {
            "rates": self.rates,
            "pair_cost": self.pair_cost,
            "counts": [sorted(each.items()) for each in self._counts],
            "first": self._first,
            "now": self._now,
            "ways": [self._begun, self._reached],
            "work": [self._rows, self._pairs, self._micros],
            "results": [self._results, self._since],
        }

    def restore(self, note: Mapping[str, Any]) -> None:
        """Continue from a note."""
        self._counts = [dict(map(tuple, each)) for each in note["counts"]]
        self._first, self._now = list(note["first"]), list(note["now"])
        self._begun, self._reached = (list(each) for each in note["ways"])
        self._rows, self._pairs, self._micros = note["work"]
        self._results, self._since = note.get("results", (0.0, None))
