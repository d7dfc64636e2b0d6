"""The rows of a table by the hash of some columns.

Rules:
- Rows are sorted by their hash, so a lookup is a binary search in one array of numbers, for all rows of a batch.
- Different values may share a hash: what is found are candidates, and the reader compares the values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.hashing import Hashes, hashes
from millrace.kernel.columns.integers import Integers

HASH = "__hash"
"""The column of a stored table that holds the hash of its primary key; its rows are sorted by it."""


class TableIndex:
    """Some rows of a table, sorted by the hash of `keys`.

    >>> index = TableIndex.of(pa.table({"id": [7, 8, 8], "name": ["a", "b", "c"]}), ["id"])
    >>> rows, places = index.candidates([pa.array([8, 9, 7])])
    >>> rows.tolist(), index.rows["name"].take(pa.array(places)).to_pylist()
    ([0, 0, 2], ['b', 'c', 'a'])
    """

    def __init__(self, rows: pa.Table, found: Hashes, keys: Sequence[str]) -> None:
        self.rows = rows
        self.has_null_key = any(rows.column(name).null_count for name in keys)
        starts = np.flatnonzero(np.concatenate([np.ones(1, bool), found[1:] != found[:-1]])) if len(found) else found
        self._hashes: Hashes = found if len(starts) == len(found) else found[starts]
        self._starts = None if len(starts) == len(found) else np.append(starts, len(found))
        """Where the rows of each hash begin; None if each row has a hash of its own."""

    @classmethod
    def of(cls, rows: pa.Table, keys: Sequence[str]) -> TableIndex:
        """An index over rows in any order."""
        found = hashes([rows.column(name) for name in keys], rows.num_rows).view(np.int64)
        order = np.argsort(found, kind="stable")
        return cls(rows.take(pa.array(order)).combine_chunks(), found[order], keys)

    @property
    def nbytes(self) -> int:
        """How much memory it takes beside the rows."""
        return self._hashes.nbytes + (0 if self._starts is None else self._starts.nbytes)

    def candidates(self, values: Sequence[pa.Array]) -> tuple[Integers, Integers]:
        """Pairs of rows and places in the table whose keys have equal hashes, in the order of the rows."""
        if not self.rows.num_rows:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        wanted = hashes(values).view(np.int64)
        # Neighbours in the table are looked up one after another: a large table is walked through, not jumped about in.
        order = np.argsort(wanted)
        at = np.empty(len(wanted), np.int64)
        at[order] = np.searchsorted(self._hashes, wanted[order])
        at[at == len(self._hashes)] = 0
        rows = np.flatnonzero(self._hashes[at] == wanted)
        if self._starts is None:
            return rows, at[rows]
        first, counts = self._starts[at[rows]], np.diff(self._starts)[at[rows]]
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(rows, counts), np.repeat(first, counts) + within
