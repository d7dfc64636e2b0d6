"""Keyed runs: the current rows of each key, replaced as a whole and never changed in place.

Rules:
- A unit is all rows of one 64-bit hash. Different keys may share a hash: whoever reads compares the keys themselves.
- A run is one segment, sorted by hash. In the newest run that names a hash stand all its current rows; a hash without
  rows is named by a tombstone.
- Runs of similar size are merged, so that what a change costs follows the hashes it names, and a save writes what
  changed. Tombstones go when nothing older is left for them to hide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.hashing import Hashes
from millrace.kernel.columns.integers import Integers, ranges
from millrace.kernel.elements import Mask, concat_tables
from millrace.kernel.state import Changes, Segments

HASH = "__hash"
_GONE = "__gone"


@dataclass(frozen=True, eq=False)
class _Run:
    number: int
    table: pa.Table
    hashes: Hashes
    gone: Mask

    def __len__(self) -> int:
        return len(self.hashes)


class KeyedRuns:
    """Rows with a column `__hash`, read and replaced by hash."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._segments = Segments()
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """The memory of the live segments."""
        return sum(int(run.table.nbytes) for run in self._runs)

    def get(self, hashes: Hashes) -> list[pa.Table]:
        """All current rows of some hashes, a table a run."""
        found = []
        for run, places in self._found(np.unique(hashes)):
            places = places[~run.gone[places]]
            if len(places):
                found.append(run.table.take(pa.array(places)).drop_columns([_GONE]))
        return found

    def whole(self) -> list[pa.Table]:
        """All current rows: one table, or none."""
        while len(self._runs) > 1:
            self._merge_last_two()
        return [run.table.filter(pa.array(~run.gone)).drop_columns([_GONE]) for run in self._runs]

    def put(self, hashes: Hashes, rows: pa.Table) -> None:
        """Replace the rows of all `hashes` by `rows`, which have no others."""
        hashes = np.unique(hashes)
        before = sum(int((~run.gone[places]).sum()) for run, places in self._found(hashes))
        self._rows += rows.num_rows - before
        # What nobody holds needs no tombstone.
        bare = np.setdiff1d(hashes, _integers(rows, HASH)) if before else hashes[:0]
        self._append(_with_tombstones(rows, bare))
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            self._merge_last_two()

    def clear(self) -> None:
        """Let go of everything."""
        for run in list(self._runs):
            self._remove(run)
        self._rows = 0

    def changes(self) -> Changes:
        """What changed since the last save."""
        return self._segments.changes({"rows": self._rows, "next": self._segments.following})

    def restore(self, changes: Changes) -> None:
        """Go on from saved segments (all of them, as `added`) and the note of the last save."""
        self._segments.restore(changes.added, changes.note["next"])
        self._runs = [_run(number, table) for number, table in self._segments.live.items()]
        self._rows = changes.note["rows"]

    def _found(self, wanted: Hashes) -> Iterator[tuple[_Run, Integers]]:
        """Where the rows of some hashes stand, tombstones among them: the newest run that names a hash counts."""
        for run in reversed(self._runs):
            begins = np.searchsorted(run.hashes, wanted)
            counts = np.searchsorted(run.hashes, wanted, side="right") - begins
            named = counts > 0
            if named.any():
                yield run, ranges(begins[named], counts[named])
                wanted = wanted[~named]
            if not len(wanted):
                return

    def _append(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        hashes = _integers(table, HASH)
        if bool((hashes[1:] < hashes[:-1]).any()):
            table = table.take(pa.array(np.argsort(hashes, kind="stable")))
        self._runs.append(_run(self._segments.add(table), table))

    def _merge_last_two(self) -> None:
        older, newer = self._runs[-2:]
        at = np.minimum(np.searchsorted(newer.hashes, older.hashes), len(newer) - 1)
        kept = newer.hashes[at] != older.hashes
        oldest = len(self._runs) == 2
        tables = [older.table.filter(pa.array(kept & ~older.gone if oldest else kept))]
        tables.append(newer.table.filter(pa.array(~newer.gone)) if oldest else newer.table)
        self._remove(older)
        self._remove(newer)
        self._append(concat_tables(tables))

    def _remove(self, run: _Run) -> None:
        self._runs.remove(run)
        self._segments.remove(run.number)


def _run(number: int, table: pa.Table) -> _Run:
    gone: Mask = table.column(_GONE).to_numpy()
    return _Run(number, table, _integers(table, HASH), gone)


def _integers(table: pa.Table, name: str) -> Integers:
    integers: Integers = table.column(name).to_numpy()
    return integers


def _with_tombstones(rows: pa.Table, bare: Hashes) -> pa.Table:
    flagged = rows.append_column(_GONE, pa.array(np.zeros(rows.num_rows, np.bool_)))
    if not len(bare):
        return flagged.combine_chunks()
    empty = flagged.schema.empty_table().take(pa.nulls(len(bare), pa.int64()))
    for name, column in ((HASH, pa.array(bare)), (_GONE, pa.array(np.ones(len(bare), np.bool_)))):
        empty = empty.set_column(empty.schema.get_field_index(name), name, column)
    return concat_tables([flagged, empty])
