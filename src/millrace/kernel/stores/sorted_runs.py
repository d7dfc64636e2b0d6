"""Sorted runs: rows kept in order of an integer column, released from the front.

A release advances a position in each run. A run that is used up is dropped whole and never rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import Times
from millrace.kernel.state import Changes
from millrace.kernel.stores.run_store import RowRun, RunStore

Merge = Callable[[Sequence[pa.Table]], pa.Table]


class SortedRun(RowRun):
    """Rows in order of a key; those before `start` have been released."""

    def __init__(self, table: pa.Table, keys: Times) -> None:
        super().__init__(table)
        self.keys = keys
        self.start = 0

    def __len__(self) -> int:
        return len(self.keys) - self.start

    @cached_property
    def begins(self) -> Times:
        """Where each distinct key begins."""
        return np.flatnonzero(np.concatenate([[True], self.keys[1:] != self.keys[:-1]]))

    def counts(self) -> tuple[Times, Times]:
        """The distinct keys from the start on, and how many rows each has."""
        begins = np.maximum(self.begins, self.start)
        counts = np.diff(begins, append=len(self.keys))
        return self.keys[begins[counts > 0]], counts[counts > 0]


class SortedRuns:
    """Rows in order of `key`; `merge` makes one table, in any order, of several."""

    def __init__(self, key: str, merge: Merge) -> None:
        self.key = key
        self.merge = merge
        self.floor: int | None = None
        self._store = RunStore(self._merged)

    def __len__(self) -> int:
        return len(self._store)

    @property
    def nbytes(self) -> int:
        """The memory of the live segments."""
        return self._store.nbytes

    def add(self, table: pa.Table) -> None:
        """Keep rows, in any order."""
        if table.num_rows:
            self._store.add(self._sorted(table))

    def least(self) -> int | None:
        """The least key that is held."""
        return min([int(run.keys[run.start]) for run in self._store.runs]) if self._store.runs else None

    def least_after(self, count: int) -> int | None:
        """The least key when `count` rows have been released from the front; None when there is none."""
        fronts = [run.keys[run.start : run.start + count + 1] for run in self._store.runs]
        keys = np.concatenate(fronts) if fronts else np.empty(0, np.int64)
        return int(np.partition(keys, count)[count]) if len(keys) > count else None

    def counts(self) -> tuple[Times, Times]:
        """The distinct keys that are held, in order, and how many rows each has."""
        parts = [run.counts() for run in self._store.runs]
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        keys, places = np.unique(np.concatenate([part for part, _ in parts]), return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, places, np.concatenate([part for _, part in parts]))
        return keys, counts

    def between(self, first: int | None, last: int) -> list[pa.Table]:
        """The rows with first <= key <= last (first None: from the least on), a table per run."""
        found = []
        for run in self._store.runs:
            begin = run.start if first is None else max(run.start, int(np.searchsorted(run.keys, first)))
            end = int(np.searchsorted(run.keys, last, side="right"))
            if end > begin:
                found.append(run.table.slice(begin, end - begin))
        return found

    def drop(self, last: int) -> None:
        """Release the rows with key <= last."""
        self.floor = last
        for run in self._store.runs:
            run.start = max(run.start, int(np.searchsorted(run.keys, last, side="right")))
        for run in [run for run in self._store.runs if not len(run)]:
            self._store.remove(run)

    def clear(self) -> None:
        """Drop everything."""
        self.floor = None
        self._store.clear()

    def changes(self) -> Changes:
        """What changed since the last save."""
        return self._store.changes({"floor": self.floor})

    def restore(self, changes: Changes) -> None:
        """Continue from saved segments (all of them, as `added`) and the note of the last save."""
        self._store.restore(changes, self._sorted)
        if changes.note["floor"] is not None:
            self.drop(changes.note["floor"])

    def _sorted(self, table: pa.Table) -> SortedRun:
        keys: Times = table.column(self.key).to_numpy()
        if bool((keys[1:] < keys[:-1]).any()):
            order = np.argsort(keys, kind="stable")
            table, keys = table.take(pa.array(order)), keys[order]
        return SortedRun(table, keys)

    def _merged(self, runs: Sequence[SortedRun]) -> SortedRun:
        return self._sorted(self.merge([run.table.slice(run.start) for run in runs]))
