"""Rows without a match that leave little by little, so that a bound makes no burst of them (004 section 6).

Rules:
- For each row that comes, the row that has waited longest leaves.
- A row leaves at the latest when the bound of the other input is more than `delay` past the last time at which that
  input could have had a match for it, however far that bound went at once.
- Until then it holds back what the join promises about its results.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Microseconds, Times, concat_tables
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.sorted_runs import SortedRuns

_NUMBER = "__number"
_DUE = "__due"


class SlowRelease:
    """The rows without a match that wait: by the input whose bound released them, in the order of that bound."""

    def __init__(self, delay: Microseconds) -> None:
        self.delay = delay
        self._waiting = (SortedRuns(_NUMBER, concat_tables), SortedRuns(_NUMBER, concat_tables))
        self._following = 0
        """The number of the next row."""

    def __len__(self) -> int:
        return sum(map(len, self._waiting))

    @property
    def nbytes(self) -> int:
        """The memory of the rows that wait."""
        return sum(runs.nbytes for runs in self._waiting)

    def add(self, port: int, rows: Batch, last: Times) -> None:
        """Let rows wait that a bound of an input has released; `last` is when it could have had a match for each."""
        order = np.argsort(last, kind="stable")
        numbers = np.arange(self._following, self._following + len(rows))
        self._following += len(rows)
        due = np.minimum(last[order], END_OF_TIME - self.delay - 1) + 1 + self.delay
        table = pa.Table.from_batches([rows.rows.take(pa.array(order))])
        self._waiting[port].add(table.append_column(_NUMBER, pa.array(numbers)).append_column(_DUE, pa.array(due)))

    def due(self, port: int, until: Microseconds) -> Batch | None:
        """The rows that the bound of an input does not let wait any longer."""
        tables = self._waiting[port].between(None, END_OF_TIME)
        numbers = [_integers(each, _NUMBER)[_integers(each, _DUE) <= until] for each in tables]
        last = max((int(each[-1]) for each in numbers if len(each)), default=None)
        return None if last is None else self._taken(port, last)

    def oldest(self, count: int) -> list[Batch]:
        """So many of the rows that have waited longest, or all of them."""
        found = []
        for port, runs in enumerate(self._waiting):
            first = runs.least()
            if first is not None and count > 0:
                after = runs.least_after(count)
                found.append(self._taken(port, END_OF_TIME if after is None else after - 1))
                count -= len(found[-1])
        return found

    def _taken(self, port: int, last: int) -> Batch:
        runs = self._waiting[port]
        rows = concat_tables(runs.between(None, last)).drop_columns([_NUMBER, _DUE])
        runs.drop(last)
        return Batch(rows.combine_chunks().to_batches()[0])

    def least_time(self) -> Microseconds:
        """The least time of a row that waits; the end of time without one."""
        times = [int(_integers(each, TIME).min()) for runs in self._waiting for each in runs.between(None, END_OF_TIME)]
        return min(times, default=END_OF_TIME)

    def least_due(self, port: int) -> Microseconds | None:
        """The least bound of an input that lets a row wait no longer; None if none waits."""
        dues = [int(_integers(each, _DUE).min()) for each in self._waiting[port].between(None, END_OF_TIME)]
        return min(dues, default=None)

    def last_due(self, port: int, until: Microseconds) -> Microseconds | None:
        """The bound of an input that lets no row below `until` wait any longer; None if none waits."""
        found = [
            _integers(each, _DUE)[_integers(each, TIME) < until]
            for each in self._waiting[port].between(None, END_OF_TIME)
        ]
        return max((int(each.max()) for each in found if len(each)), default=None)

    def changes(self) -> Changes:
        """What changed since the last save."""
        return combined([runs.changes() for runs in self._waiting], {"following": self._following})

    def restore(self, changes: Changes) -> None:
        """Go on from what was saved."""
        self._following = changes.note["following"]
        for runs, saved in zip(self._waiting, separated(changes), strict=True):
            runs.restore(saved)


def _integers(table: pa.Table, name: str) -> Integers:
    integers: Integers = table.column(name).to_numpy()
    return integers
