"""What travels along an arc: batches of rows, and punctuation.

Rules:
- A batch is a block of Arrow columns. Rows are immutable and shared, never copied per branch.
- The reserved column `__time` holds a row's own timestamp: int64 microseconds since the epoch, UTC, or, where a stream
  progresses by a number, that number.
  It stays with the row when the query drops the column it came from.
- The reserved column `__mark` is there above a queue of windows: the number of the commitment that a row is released
  for, so that one row can be in several. It stays with what is made of the row.
- The reserved column `__arrived` is there when a host measures latency: the clock at entry, or NO_BOUND for rows that
  were made of others. Reserved columns stand last, in this order.
- A bound b says that every later row of the arc has time >= b. Bounds never go back.
- A bound that comes with rows rides on their batch; one that comes alone is a punctuation.
- A step may take a few rows of a large block: a batch is a piece of a block, and what an operator computes of the
  block it computes once. So the size of a step is a matter of scheduling, not of speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Microseconds = int
TIMESTAMP = pa.timestamp("us", tz="UTC")
"""The type of columns with times."""
INTERVAL = pa.duration("us")
"""The type of columns with lengths of time."""
MONTHS = pa.duration("s")
"""The type of columns with numbers of months: see columns/interval_values.py."""
Times = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

TIME = "__time"
MARK = "__mark"
ARRIVED = "__arrived"
RESERVED = (TIME, MARK, ARRIVED)
PARTITION = "__partition"
"""The partition of its source that a raw row comes from; no row has it behind the edge of its stream."""

NO_BOUND: Microseconds = -(2**63)
"""Nothing has been promised yet."""
END_OF_TIME: Microseconds = 2**63 - 1
"""No row will ever follow."""


class Block:
    """Rows as they were made; what is computed of them once holds for all pieces cut from them."""

    __slots__ = ("_columns", "rows")

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.rows = rows
        self._columns: dict[str, Times] = {}

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def integers(self, name: str) -> Times:
        """An int64 column as a numpy array that shares its memory."""
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = integer_column(self.rows, name)
        return found


class Batch:
    """Rows of one arc, in columns: a piece of a block, never changed.

    `until` is the punctuation that ends it, if one does.
    """

    __slots__ = ("block", "start", "stop", "until")

    def __init__(self, rows: pa.RecordBatch, until: Microseconds | None = None) -> None:
        self.block = Block(rows)
        self.start = 0
        self.stop: int = rows.num_rows
        self.until = until

    @classmethod
    def cut(cls, block: Block, start: int, stop: int, until: Microseconds | None = None) -> Batch:
        """The rows of a block from `start` up to `stop`."""
        piece = cls.__new__(cls)
        piece.block, piece.start, piece.stop, piece.until = block, start, stop, until
        return piece

    def __len__(self) -> int:
        return self.stop - self.start

    def __repr__(self) -> str:
        return f"Batch({len(self)} rows, until={self.until})"

    @property
    def whole(self) -> bool:
        """True if it is all of its block."""
        return self.start == 0 and self.stop == self.block.rows.num_rows

    @property
    def rows(self) -> pa.RecordBatch:
        """The rows as columns."""
        rows = self.block.rows
        return rows if self.whole else rows.slice(self.start, self.stop - self.start)

    @property
    def times(self) -> Times:
        """Each row's timestamp in microseconds."""
        return self.block.integers(TIME)[self.start : self.stop]

    def where(self, mask: Mask) -> Batch:
        """The rows where `mask` holds; the batch itself when it holds everywhere."""
        return self if mask.all() else Batch(self.rows.filter(pa.array(mask)))

    def slice(self, start: int, length: int) -> Batch:
        """`length` rows from `start` on, without a copy."""
        return Batch.cut(self.block, self.start + start, self.start + start + length)

    def ending(self, until: Microseconds | None) -> Batch:
        """The same rows, ended by a punctuation."""
        return Batch.cut(self.block, self.start, self.stop, until)

    def sorted_by_time(self) -> Batch:
        """The rows in time order; rows of equal time keep their order."""
        times = self.times
        if len(times) < 2 or bool((times[1:] >= times[:-1]).all()):
            return self
        return Batch(self.rows.take(pa.array(np.argsort(times, kind="stable"))))


@dataclass(frozen=True, slots=True)
class Punctuation:
    """A promise: no later row on this arc has a timestamp below `until`.

    `ets` says that it is an enabling timestamp: made because rows wait, not because rows came.
    """

    until: Microseconds
    ets: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """What lets rows leave: the promise of a stream, and whether its rows, an ETS or its end brought it about."""

    stream: str
    how: Literal["data", "ets", "end", ""]
    bound: Microseconds


@dataclass(frozen=True, slots=True)
class GroupPunctuation:
    """Promises for single groups: no later row of the group in row i of `keys` has a timestamp below `until[i]`."""

    keys: pa.RecordBatch
    until: Times


@dataclass(frozen=True, slots=True)
class JointPunctuation:
    """A promise about pairs: no later row is below `until` in both of the times that it was joined from."""

    until: tuple[Microseconds, Microseconds]


Element = Batch | Punctuation | GroupPunctuation | JointPunctuation


def as_times(column: pa.Array) -> pa.Array:
    """A progressing attribute as the kernel has it: a TIMESTAMP or DATE in microseconds, a BIGINT as it is."""
    dated = column.cast(TIMESTAMP) if pa.types.is_date(column.type) else column
    return dated.cast(pa.int64())


def integer_column(rows: pa.RecordBatch | pa.Table, name: str) -> Times:
    """An int64 column as a numpy array; it shares the memory of a batch."""
    numbers: Times = rows.column(name).to_numpy()
    return numbers


def concat(batches: Sequence[Batch]) -> Batch:
    """The rows of several batches of one schema, in order."""
    if len(batches) == 1:
        return batches[0]
    return Batch(pa.concat_batches([batch.rows for batch in batches]))


def concat_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all tables, in order, in one chunk per column."""
    return pa.concat_tables(tables).combine_chunks()


def without_reserved(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The user's columns alone."""
    return rows.select([name for name in rows.schema.names if name not in (*RESERVED, PARTITION)])


def user_table(batches: Sequence[Batch]) -> pa.Table:
    """The user's columns of several batches of one schema, as a table."""
    return pa.Table.from_batches([without_reserved(batch.rows) for batch in batches])
