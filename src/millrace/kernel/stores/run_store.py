"""Runs: rows in segments that are never changed, merged so that there are few of them.

Rules:
- A run is one segment: an Arrow table in an order of its own. Which of its rows are live is known in memory alone.
- New rows make a new run, behind all others. A run is merged with the one before it while that is at most twice as
  large. So a row is merged a logarithmic number of times, there is a logarithmic number of runs, and a save writes what
  changed.
- Each kind of run says how rows are ordered, how they are found, and which of them a merge leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa

from millrace.kernel.state import Changes, Segments


class RowRun:
    """Rows under the number of their segment; a subclass adds what finds them."""

    number = -1

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        """How many rows are live."""
        return int(self.table.num_rows)

    @property
    def nbytes(self) -> int:
        """The memory of all its rows."""
        return int(self.table.nbytes)


AnyRun = TypeVar("AnyRun", bound=RowRun)


class RunStore(Generic[AnyRun]):
    """Runs, the oldest first; `merge` makes one of the live rows of some neighbours, or None if there are none.

    `whole` says that a merge keeps all live rows: then all runs that are to be merged are merged at once. No run of
    more than `most` rows is made.

    >>> store = RunStore(lambda runs: RowRun(pa.concat_tables([run.table for run in runs])))
    >>> for count in (4, 1, 1):
    ...     store.add(RowRun(pa.table({"v": [0] * count})))
    >>> [len(run) for run in store.runs], sorted(store.changes({}).added)
    ([6], [2])
    """

    def __init__(
        self, merge: Callable[[Sequence[AnyRun]], AnyRun | None], *, whole: bool = False, most: int | None = None
    ) -> None:
        self.runs: list[AnyRun] = []
        self._merge = merge
        self._whole = whole
        self._most = most
        self._segments = Segments()

    def __len__(self) -> int:
        return sum([len(run) for run in self.runs]) if self.runs else 0

    @property
    def nbytes(self) -> int:
        """The memory of all runs."""
        return sum([run.nbytes for run in self.runs])

    def add(self, run: AnyRun) -> None:
        """Keep a run behind all others, merged with those of similar size."""
        while count := self._similar(len(self.runs), len(run)):
            older = self.runs[-count:]
            merged = self._merge([*older, run])
            for each in older:
                self.remove(each)
            if merged is None:
                return
            run = merged
        run.number = self._segments.add(run.table)
        self.runs.append(run)

    def merge_similar(self) -> None:
        """Merge neighbours of similar size wherever they are, for runs may have lost rows."""
        for place in range(len(self.runs) - 1, 0, -1):
            if place < len(self.runs) and (count := self._similar(place, len(self.runs[place]))):
                self.replace(self.runs[place - count : place + 1])

    def replace(self, runs: Sequence[AnyRun]) -> None:
        """Write the live rows of some neighbours anew, as one run."""
        if not runs:
            return
        made = self._merge(runs)
        place, count = self.runs.index(runs[0]), len(runs)
        for run in runs:
            self._segments.remove(run.number)
        self.runs[place : place + count] = [] if made is None else [made]
        if made is not None:
            made.number = self._segments.add(made.table)

    def remove(self, run: AnyRun) -> None:
        """Drop a run with all its rows."""
        self.runs.remove(run)
        self._segments.remove(run.number)

    def clear(self) -> None:
        """Drop everything."""
        for run in list(self.runs):
            self.remove(run)

    def changes(self, note: Mapping[str, Any]) -> Changes:
        """What changed since the last save."""
        return self._segments.changes(
            {**note, "runs": [run.number for run in self.runs], "next": self._segments.following}
        )

    def restore(self, changes: Changes, restored: Callable[[pa.Table], AnyRun]) -> None:
        """Continue from saved segments (all of them, as `added`) and the note of the last save."""
        self._segments.restore(changes.added, changes.note["next"])
        self.runs = []
        for number in changes.note["runs"]:
            run = restored(self._segments.live[number])
            run.number = number
            self.runs.append(run)

    def _similar(self, stop: int, size: int) -> int:
        """How many of the runs before a place are to be merged with newer ones of `size` rows."""
        count = 0
        while count < stop and (count == 0 or self._whole):
            older = len(self.runs[stop - 1 - count])
            if older > 2 * size or (self._most is not None and older + size > self._most):
                break
            size, count = size + older, count + 1
        return count
