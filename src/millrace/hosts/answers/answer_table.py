"""The latest answer of each key of an update query: what an application that pulls may ask for at any time.

Rules:
- The answer of a key is its newest row by time; of rows of equal time the one that came last. An update queue never
  emits an older row of a key after a newer one, but an append queue does.
- Every row that is put has a number, its *entry*. Rows are kept in blocks by entry, and the table knows the entry of
  each key's answer; other rows have been superseded. Blocks of similar size are merged, without superseded rows: a row
  costs the logarithm of the number of keys, and all blocks together hold fewer than two rows per key.
- Putting rows is cheap: they are indexed at the next question, or when many have come.
- What has changed since an entry is found by entry. A client that asks now and then gets each changed key once, with
  its newest answer.
- One thread puts rows; any thread may ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Condition, RLock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.errors import RequestError
from millrace.kernel.columns.casts import cast
from millrace.kernel.columns.integers import grown
from millrace.kernel.elements import NO_BOUND, TIME, Mask, Times, integer_column
from millrace.kernel.stores.key_table import KeyTable

Entries = npt.NDArray[np.int64]

_PATIENCE = 65_536
"""The greatest number of rows that wait to be indexed."""
_TABLES = 1_024
"""The greatest number of tables that wait to be indexed."""
_ASKED = 65_536
"""The greatest number of keys whose numbers are cached after a question."""
_ROOM = 16
"""The number of keys that the arrays have room for at first."""


@dataclass(frozen=True, eq=False)
class _AnswerBlock:
    """Rows by ascending entry, with the numbers of their keys."""

    entries: Entries
    keys: Entries
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.entries)

    def where(self, mask: Mask) -> _AnswerBlock:
        """The rows where the mask holds."""
        if mask.all():
            return self
        return _AnswerBlock(self.entries[mask], self.keys[mask], self.rows.filter(pa.array(mask)))

    def since(self, entry: int) -> _AnswerBlock:
        """The rows from an entry on."""
        begin = int(np.searchsorted(self.entries, entry))
        return _AnswerBlock(self.entries[begin:], self.keys[begin:], self.rows.slice(begin))


class AnswerTable:
    """The latest answers of one query, by its update key; without key columns there is one answer.

    `version` is the entry of the next row: a client that keeps it can ask later what has changed since.
    """

    def __init__(self, query: str, schema: pa.Schema, key: Sequence[str]) -> None:
        self.query = query
        self.key = tuple(key)
        others = [name for name in schema.names if name not in self.key]
        self.schema = pa.schema([schema.field(name) for name in (*self.key, *others)])
        self._timed = self.schema.append(pa.field(TIME, pa.int64()))
        self.version = 0
        self.closed = False
        """True if no answer will follow."""
        self.changed = Condition(RLock())
        """Notified when rows have come, or when none will follow."""
        self._keys = KeyTable(self.key)
        self._entries: Entries = np.full(_ROOM, -1, np.int64)
        """The entry of each key's answer, by the number of the key."""
        self._times: Times = np.full(_ROOM, NO_BOUND, np.int64)
        """Its time."""
        self._blocks: list[_AnswerBlock] = []
        self._asked: dict[tuple[object, ...], int] = {}
        """The numbers of keys that were asked for."""
        self._waiting: list[pa.Table] = []
        self._rows_waiting = 0

    def put(self, rows: pa.Table) -> None:
        """Take over answers in the order in which they were delivered, with their times, if they have some."""
        if not rows.num_rows:
            return
        with self.changed:
            self._waiting.append(rows)
            self._rows_waiting += rows.num_rows
            self.version += rows.num_rows
            if self._rows_waiting > _PATIENCE or len(self._waiting) > _TABLES:
                self._index()
            self.changed.notify_all()

    def close(self) -> None:
        """Say that no answer will follow."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def __len__(self) -> int:
        """How many keys have an answer."""
        with self.changed:
            self._index()
            return int((self._entries >= 0).sum())

    def table(self) -> pa.Table:
        """All answers, the key's columns first, in the order in which the keys were first seen."""
        with self.changed:
            found = self._live_since(0)
        order: Entries = np.argsort(np.concatenate([block.keys for block in found])) if found else np.empty(0, np.int64)
        return self._table(found).drop_columns([TIME]).take(pa.array(order))

    def since(self, version: int) -> tuple[pa.Table, int]:
        """The answers of the keys that have changed since a version, in the order of change, and the version now."""
        rows, now = self.timed_since(version)
        return rows.drop_columns([TIME]), now

    def timed_since(self, version: int) -> tuple[pa.Table, int]:
        """The same, with their times."""
        with self.changed:
            return self._table(self._live_since(version)), self.version

    def row(self, key: object) -> dict[str, Any] | None:
        """The answer of one key, which is a value, a tuple in the key's order, or a mapping; None if there is none."""
        values = self._values(key)
        with self.changed:
            self._index()
            number = self._number(values)
            entry = -1 if number < 0 else int(self._entries[number])
            if entry < 0:
                return None
            block = next(each for each in reversed(self._blocks) if each.entries[0] <= entry)
        row: dict[str, Any] = block.rows.slice(int(np.searchsorted(block.entries, entry)), 1).to_pylist()[0]
        row.pop(TIME)
        return row

    def _number(self, values: tuple[object, ...]) -> int:
        """The number of a key, -1 if it is not known; cached, for a key is often asked for again."""
        try:
            if (known := self._asked.get(values)) is not None:
                return known
        except TypeError:
            return int(self._keys.find(self._key_row(values))[0])
        number = int(self._keys.find(self._key_row(values))[0])
        if number >= 0 and len(self._asked) < _ASKED:
            self._asked[values] = number
        return number

    def _key_row(self, values: Sequence[object]) -> pa.RecordBatch:
        """A key as a row of the key's columns; text stands for a value of any type."""
        fields = [self.schema.field(name) for name in self.key]
        columns = [_column(field, value, self.query) for field, value in zip(fields, values, strict=True)]
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _values(self, key: object) -> tuple[object, ...]:
        """The values of a key in the order of its columns."""
        if isinstance(key, Mapping):
            if set(key) == set(self.key):
                return tuple(key[name] for name in self.key)
        else:
            values = tuple(key) if isinstance(key, tuple | list) else (key,)
            if len(values) == len(self.key):
                return values
        shown = ", ".join(self.key) or "no columns: it has one answer"
        raise RequestError(
            f'the key of query "{self.query}" is {shown}, and was given as {key!r}',
            hint=f"Give {_as_written(self.key)}." if self.key else "Ask without a key.",
        )

    # Rows by entry

    def _index(self) -> None:
        """Index the rows that wait: they supersede older ones."""
        if not self._waiting:
            return
        rows = self._waited()
        keys, times = self._keys.numbers(rows), integer_column(rows, TIME)
        entries = np.arange(self.version - len(keys), self.version)
        self._entries = grown(self._entries, len(self._keys), -1)
        self._times = grown(self._times, len(self._keys), NO_BOUND)
        newer = np.flatnonzero(times >= self._times[keys])
        if (times[newer][1:] < times[newer][:-1]).any():
            newer = newer[np.argsort(times[newer], kind="stable")]
        # Of several rows of a key the last one stays.
        self._entries[keys[newer]] = entries[newer]
        self._times[keys[newer]] = times[newer]
        block = self._live(_AnswerBlock(entries, keys, rows))
        if len(block):
            self._add(block)

    def _waited(self) -> pa.RecordBatch:
        """The rows that wait to be indexed, as one batch, with their times."""
        waiting, first = self._waiting, self._waiting[0].schema
        alike = all(each.schema.equals(first) for each in waiting)
        parts = [pa.concat_tables(waiting)] if alike else waiting
        table = pa.concat_tables([_timed(each).select(self._timed.names).cast(self._timed) for each in parts])
        self._waiting, self._rows_waiting = [], 0
        return table.combine_chunks().to_batches()[0]

    def _live(self, block: _AnswerBlock) -> _AnswerBlock:
        return block.where(self._entries[block.keys] == block.entries)

    def _add(self, block: _AnswerBlock) -> None:
        while self._blocks and len(self._blocks[-1]) <= 2 * len(block):
            block = _joined(self._live(self._blocks.pop()), block)
        self._blocks.append(block)

    def _live_since(self, version: int) -> list[_AnswerBlock]:
        self._index()
        found = [self._live(each.since(version)) for each in self._blocks if each.entries[-1] >= version]
        return [each for each in found if len(each)]

    def _table(self, blocks: Sequence[_AnswerBlock]) -> pa.Table:
        return pa.Table.from_batches([each.rows for each in blocks], self._timed)


def _timed(rows: pa.Table) -> pa.Table:
    """Rows with their times; all times are 0 where they have none."""
    if TIME in rows.column_names:
        return rows
    return rows.append_column(TIME, pa.array(np.zeros(rows.num_rows, np.int64)))


def _joined(one: _AnswerBlock, other: _AnswerBlock) -> _AnswerBlock:
    if not len(one):
        return other
    rows = pa.concat_batches([one.rows, other.rows])
    return _AnswerBlock(np.concatenate([one.entries, other.entries]), np.concatenate([one.keys, other.keys]), rows)


def _column(field: pa.Field, value: object, query: str) -> pa.Array:
    """One value as a column of its type."""
    try:
        if isinstance(value, str) and not pa.types.is_string(field.type):
            found = cast(pa.array([value]), field.type)
            if found.null_count:
                raise pa.ArrowInvalid("no such value")
            return found
        return pa.array([value], field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise RequestError(
            f'the key "{field.name}" of query "{query}" is a {field.type}, not {value!r}',
            hint="Give a value of its type, or text that can be read as one.",
        ) from None


def _as_written(key: Sequence[str]) -> str:
    """How a key is given."""
    return f'a value of "{key[0]}"' if len(key) == 1 else f"a tuple ({', '.join(key)}), or a mapping by these names"
