"""Sorted runs: rows kept in order of an integer column, released from the front.

A run is one segment, sorted by `key`. Adding rows adds a run; runs of similar size are merged, so that a row is
merged a logarithmic number of times and a save writes what changed. Releasing advances a position in each run;
a run that is used up is dropped whole and never rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import Times
from millrace.kernel.state import Changes, Segments

Merge = Callable[[Sequence[pa.Table]], pa.Table]


@dataclass(eq=False)
class _Run:
    number: int
    table: pa.Table
    keys: Times
    start: int = 0

    @property
    def rest(self) -> int:
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
        self._runs: list[_Run] = []
        self._segments = Segments()

    def __len__(self) -> int:
        return sum([run.rest for run in self._runs]) if self._runs else 0

    @property
    def nbytes(self) -> int:
        """The memory of the live segments."""
        return sum(int(run.table.nbytes) for run in self._runs)

    def add(self, table: pa.Table) -> None:
        """Keep rows, in any order."""
        if table.num_rows:
            self._append(table)
        while len(self._runs) > 1 and self._runs[-2].rest <= 2 * self._runs[-1].rest:
            self._merge_last_two()

    def least(self) -> int | None:
        """The least key that is held."""
        return min([int(run.keys[run.start]) for run in self._runs]) if self._runs else None

    def least_after(self, count: int) -> int | None:
        """The least key when `count` rows have been released from the front; None when there is none."""
        fronts = [run.keys[run.start : run.start + count + 1] for run in self._runs]
        keys = np.concatenate(fronts) if fronts else np.empty(0, np.int64)
        return int(np.partition(keys, count)[count]) if len(keys) > count else None

    def counts(self) -> tuple[Times, Times]:
        """The distinct keys that are held, in order, and how many rows each has."""
        parts = [run.counts() for run in self._runs]
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        keys, places = np.unique(np.concatenate([part for part, _ in parts]), return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, places, np.concatenate([part for _, part in parts]))
        return keys, counts

    def between(self, first: int | None, last: int) -> list[pa.Table]:
        """The rows with first <= key <= last (first None: from the least on), a table a run."""
        found = []
        for run in self._runs:
            begin = run.start if first is None else max(run.start, int(np.searchsorted(run.keys, first)))
            end = int(np.searchsorted(run.keys, last, side="right"))
            if end > begin:
                found.append(run.table.slice(begin, end - begin))
        return found

    def drop(self, last: int) -> None:
        """Let go of the rows with key <= last."""
        self.floor = last
        for run in self._runs:
            run.start = max(run.start, int(np.searchsorted(run.keys, last, side="right")))
        for run in [run for run in self._runs if not run.rest]:
            self._remove(run)

    def clear(self) -> None:
        """Let go of everything."""
        self.floor = None
        for run in list(self._runs):
            self._remove(run)

    def changes(self) -> Changes:
        """What changed since the last save."""
        return self._segments.changes({"floor": self.floor, "next": self._segments.following})

    def restore(self, changes: Changes) -> None:
        """Go on from saved segments (all of them, as `added`) and the note of the last save."""
        self._segments.restore(changes.added, changes.note["next"])
        self._runs = [_Run(number, table, self._keys_of(table)) for number, table in self._segments.live.items()]
        if changes.note["floor"] is not None:
            self.drop(changes.note["floor"])

    def _append(self, table: pa.Table) -> None:
        keys = self._keys_of(table)
        if bool((keys[1:] < keys[:-1]).any()):
            order = np.argsort(keys, kind="stable")
            table, keys = table.take(pa.array(order)), keys[order]
        self._runs.append(_Run(self._segments.add(table), table, keys))

    def _merge_last_two(self) -> None:
        runs = self._runs[-2:]
        merged = self.merge([run.table.slice(run.start) for run in runs])
        for run in runs:
            self._remove(run)
        self._append(merged)

    def _remove(self, run: _Run) -> None:
        self._runs.remove(run)
        self._segments.remove(run.number)

    def _keys_of(self, table: pa.Table) -> Times:
        keys: Times = table.column(self.key).to_numpy()
        return keys
