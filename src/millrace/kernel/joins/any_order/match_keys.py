"""Keys of a join as whole numbers: the key itself where it is one number, otherwise a hash that is verified.

Rules:
- Null equals nothing: the caller leaves out rows with a null in a key.
- Fractions are canonical: 0.0 equals -0.0, and NaN equals NaN, as SQL has it.
- The numbers live in memory only, and are made anew after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns import hashing
from millrace.kernel.columns.comparison import ordinals
from millrace.kernel.columns.hashing import is_text, text_words
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Mask

_FACTOR = np.uint64(0x94D049BB133111EB)
_SHIFT = np.uint64(29)


class KeyReader:
    """Reads the keys of rows of one input."""

    def __init__(self, names: Sequence[str], schema: pa.Schema) -> None:
        self.names = tuple(names)
        kinds = [schema.field(name).type for name in names]
        self.exact = not kinds or (len(kinds) == 1 and _is_number(kinds[0]))
        """True if a value is the key itself."""

    def columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The key columns as they are compared."""
        columns = [rows.column(name) for name in self.names]
        return [pa.array(_numbers(each)) if pa.types.is_floating(each.type) else each for each in columns]

    def values(self, rows: pa.RecordBatch) -> Integers:
        """Each row's key as a number; no key is null."""
        if not self.names:
            return np.zeros(rows.num_rows, np.int64)
        parts = [_value(rows.column(name)) for name in self.names]
        mixed = parts[0].view(np.uint64)
        for part in parts[1:]:
            mixed = mixed * _FACTOR
            mixed = (mixed ^ (mixed >> _SHIFT)) + part.view(np.uint64)
        return mixed.view(np.int64)


def same(left: Sequence[pa.Array], left_places: Integers, right: Sequence[pa.Array], right_places: Integers) -> Mask:
    """Which pairs of rows agree in all columns."""
    equal = np.ones(len(left_places), np.bool_)
    for one, other in zip(left, right, strict=True):
        if len(one) == 1:
            pairs = pc.equal(other.take(pa.array(right_places)), one[0])
        else:
            pairs = pc.equal(one.take(pa.array(left_places)), other.take(pa.array(right_places)))
        equal &= pairs.to_numpy(zero_copy_only=False)
    return equal


def same_as_before(columns: Sequence[pa.Array]) -> Mask:
    """Which rows but the first agree with the one before them in all columns."""
    equal = np.ones(len(columns[0]) - 1, np.bool_)
    for column in columns:
        equal &= pc.equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    return equal


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind) or types.is_boolean(kind))


def _value(column: pa.Array) -> Integers:
    """A column without nulls as 64-bit numbers, equal where its values are."""
    if _is_number(column.type):
        return _numbers(column)
    if is_text(column.type):
        return text_words(column).view(np.int64)
    return hashing.hashes([column]).view(np.int64)


def _numbers(column: pa.Array) -> Integers:
    """A column of numbers without nulls, different where its values are."""
    kind = column.type
    if pa.types.is_floating(kind):
        return ordinals(column).astype(np.int64, copy=False)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        column = column.view(pa.int32())
    elif pa.types.is_temporal(kind):
        column = column.view(pa.int64())
    if column.type != pa.int64():
        column = column.cast(pa.int64(), safe=False)
    numbers: Integers = column.to_numpy(zero_copy_only=True)
    return numbers
