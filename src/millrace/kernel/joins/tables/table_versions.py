"""A table in versions: what each holds, and from which time on it is in force.

Rules:
- A version is in force for the rows whose own time is not before its start, until the next version starts. Which
  version a row meets is therefore a function of its time and of the starts, on every host and for every batching.
- A start is said for each source that the rows come from: no row that was processed before reaches it.
- What a version holds is loaded when a row first meets it, and once per process: indexes are shared by all operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.hashing import hashes
from millrace.kernel.elements import NO_BOUND, Microseconds, integer_column
from millrace.kernel.joins.tables.table_index import HASH, TableIndex


class TableContents:
    """The rows of one version, as they are stored: sorted by the hash of their primary key, which a column holds."""

    def __init__(self, load: Callable[[], pa.Table], key: Sequence[str]) -> None:
        self._load = load
        self._key = tuple(key)
        self._indexes: dict[tuple[tuple[str, ...], Expression | None], TableIndex] = {}

    @cached_property
    def rows(self) -> pa.Table:
        """All rows."""
        return self._load()

    def index(self, keys: Sequence[str], where: Expression | None) -> TableIndex:
        """The rows where a condition holds, by some columns; made once."""
        asked = tuple(keys), where
        if asked not in self._indexes:
            self._indexes[asked] = self._made(tuple(keys), where)
        return self._indexes[asked]

    def _made(self, keys: tuple[str, ...], where: Expression | None) -> TableIndex:
        rows = self.rows if where is None else self.rows.filter(where.over(self.rows)).combine_chunks()
        if keys and keys == self._key:
            return TableIndex(rows, integer_column(rows, HASH), keys)
        return TableIndex.of(rows, keys)


@dataclass(frozen=True)
class TableVersion:
    """What a table holds from some time on: a start per source of rows, none for sources that came later."""

    contents: TableContents
    since: Mapping[str, Microseconds]

    def starts_at(self, sources: Sequence[str]) -> Microseconds:
        """From when on rows that are made of these sources meet it."""
        return max((self.since.get(each, NO_BOUND) for each in sources), default=NO_BOUND)


def as_stored(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Rows as they are stored: sorted by the hash of the primary key, which is a column more; as they are without one.

    >>> as_stored(pa.table({"id": [1, 2, 3]}), ["id"]).column_names
    ['id', '__hash']
    """
    if not key:
        return rows.combine_chunks()
    found = hashes([rows.column(name) for name in key], rows.num_rows).view(np.int64)
    order = np.argsort(found, kind="stable")
    return rows.take(pa.array(order)).append_column(HASH, pa.array(found[order])).combine_chunks()
