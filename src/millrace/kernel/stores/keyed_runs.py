"""Keyed runs: the current rows of each key, replaced as a whole and never changed in place.

Rules:
- A unit is all rows of one 64-bit hash. Different keys may share a hash: the reader compares the keys themselves.
- A run is one segment, sorted by hash. In the newest run that names a hash stand all its current rows; a hash without
  rows is named by a tombstone.
- So the cost of a change follows the hashes it names. A merge drops a tombstone when no older run is left for it to
  hide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.hashing import Hashes
from millrace.kernel.columns.integers import Integers, ranges
from millrace.kernel.elements import Mask, concat_tables, integer_column
from millrace.kernel.state import Changes
from millrace.kernel.stores.run_store import RowRun, RunStore

HASH = "__hash"
_GONE = "__gone"


class KeyedRun(RowRun):
    """Rows sorted by hash; those that are `gone` are tombstones."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__(table)
        self.hashes = integer_column(table, HASH)
        self.gone: Mask = table.column(_GONE).to_numpy()


class KeyedRuns:
    """Rows with a column `__hash`, read and replaced by hash."""

    def __init__(self) -> None:
        self._store = RunStore(self._merged)
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """The memory of the live segments."""
        return self._store.nbytes

    def get(self, hashes: Hashes) -> list[pa.Table]:
        """All current rows of some hashes, a table per run."""
        found = []
        for run, places in self._found(np.unique(hashes)):
            places = places[~run.gone[places]]
            if len(places):
                found.append(run.table.take(pa.array(places)).drop_columns([_GONE]))
        return found

    def whole(self) -> list[pa.Table]:
        """All current rows: one table, or none."""
        while len(self._store.runs) > 1:
            self._store.replace(self._store.runs[-2:])
        return [run.table.filter(pa.array(~run.gone)).drop_columns([_GONE]) for run in self._store.runs]

    def put(self, hashes: Hashes, rows: pa.Table) -> None:
        """Replace the rows of all `hashes` by `rows`, which have no others."""
        hashes = np.unique(hashes)
        before = sum(int((~run.gone[places]).sum()) for run, places in self._found(hashes))
        self._rows += rows.num_rows - before
        # A hash without rows needs no tombstone.
        bare = np.setdiff1d(hashes, integer_column(rows, HASH)) if before else hashes[:0]
        if rows.num_rows or len(bare):
            self._store.add(_sorted(_with_tombstones(rows, bare)))

    def clear(self) -> None:
        """Drop everything."""
        self._store.clear()
        self._rows = 0

    def changes(self) -> Changes:
        """What changed since the last save."""
        return self._store.changes({"rows": self._rows})

    def restore(self, changes: Changes) -> None:
        """Continue from saved segments (all of them, as `added`) and the note of the last save."""
        self._store.restore(changes, KeyedRun)
        self._rows = changes.note["rows"]

    def _found(self, wanted: Hashes) -> Iterator[tuple[KeyedRun, Integers]]:
        """Where the rows of some hashes stand, tombstones among them: the newest run that names a hash counts."""
        for run in reversed(self._store.runs):
            begins = np.searchsorted(run.hashes, wanted)
            counts = np.searchsorted(run.hashes, wanted, side="right") - begins
            named = counts > 0
            if named.any():
                yield run, ranges(begins[named], counts[named])
                wanted = wanted[~named]
            if not len(wanted):
                return

    def _merged(self, runs: Sequence[KeyedRun]) -> KeyedRun | None:
        """The current rows of two runs."""
        older, newer = runs
        at = np.minimum(np.searchsorted(newer.hashes, older.hashes), len(newer) - 1)
        kept = newer.hashes[at] != older.hashes
        oldest = self._store.runs[0] is older
        tables = [older.table.filter(pa.array(kept & ~older.gone if oldest else kept))]
        tables.append(newer.table.filter(pa.array(~newer.gone)) if oldest else newer.table)
        table = concat_tables(tables)
        return _sorted(table) if table.num_rows else None


def _sorted(table: pa.Table) -> KeyedRun:
    hashes = integer_column(table, HASH)
    if bool((hashes[1:] < hashes[:-1]).any()):
        table = table.take(pa.array(np.argsort(hashes, kind="stable")))
    return KeyedRun(table)


def _with_tombstones(rows: pa.Table, bare: Hashes) -> pa.Table:
    flagged = rows.append_column(_GONE, pa.array(np.zeros(rows.num_rows, np.bool_)))
    if not len(bare):
        return flagged.combine_chunks()
    empty = flagged.schema.empty_table().take(pa.nulls(len(bare), pa.int64()))
    for name, column in ((HASH, pa.array(bare)), (_GONE, pa.array(np.ones(len(bare), np.bool_)))):
        empty = empty.set_column(empty.schema.get_field_index(name), name, column)
    return concat_tables([flagged, empty])
