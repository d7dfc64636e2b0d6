"""Keys of a join as whole numbers: the key itself where it is one number, otherwise a hash that is verified.

Rules:
- Null equals nothing: whoever reads keys leaves rows with a null in one of them out before.
- Fractions are canonical: 0.0 equals -0.0, and NaN equals NaN, as SQL has it.
- A dense form numbers the distinct keys of some rows in order of their values. It is pure if equal values are equal
  keys among these rows: then other rows need be compared with one row of each key only, not with all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel import hashing
from millrace.kernel.elements import Mask
from millrace.kernel.grouping import codes_of
from millrace.kernel.ordinals import canonical, ordinals
from millrace.kernel.sorting import starts

Integers = npt.NDArray[np.int64]

_SPREAD = 4
"""Distinct numbers are found in a table if their range is at most this many times as large as their count."""


@dataclass(frozen=True, eq=False)
class Dense:
    """The distinct values of some rows in order, each row's place among them, and a row of each."""

    distinct: Integers
    codes: Integers
    firsts: Integers
    pure: bool


class KeyReader:
    """Reads the keys of rows of one input."""

    def __init__(self, names: Sequence[str], schema: pa.Schema) -> None:
        self.names = tuple(names)
        kinds = [schema.field(name).type for name in names]
        self.exact = not kinds or (len(kinds) == 1 and _is_number(kinds[0]))
        """Whether a value is the key itself."""

    def without_null(self, rows: pa.RecordBatch) -> Mask | None:
        """Which rows have a value in every key; None when all have."""
        columns = [rows.column(name) for name in self.names]
        found: Mask | None = None
        for column in columns:
            if column.null_count:
                valid: Mask = column.is_valid().to_numpy(zero_copy_only=False)
                found = valid if found is None else found & valid
        return found

    def columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The key columns as they are compared."""
        columns = [rows.column(name) for name in self.names]
        return [pa.array(ordinals(each)) if pa.types.is_floating(each.type) else each for each in columns]

    def values(self, rows: pa.RecordBatch) -> Integers:
        """Each row's value; no key is null."""
        if not self.names:
            return np.zeros(rows.num_rows, np.int64)
        if self.exact:
            return _numbers(rows.column(self.names[0]))
        return hashing.hashes([rows.column(name) for name in self.names]).view(np.int64)

    def dense(self, rows: pa.RecordBatch) -> Dense:
        """The dense form of many rows: what repeats is hashed once."""
        if self.exact:
            return dense_values(self.values(rows))
        columns = [canonical(rows.column(name)) for name in self.names]
        codes, firsts = codes_of(columns, rows.num_rows)
        places = pa.array(firsts)
        values = hashing.hashes([column.take(places) for column in columns]).view(np.int64)
        order = np.argsort(values)
        ranks = np.empty(len(order), np.int64)
        distinct = starts(values[order])
        ranks[order] = np.cumsum(distinct) - 1
        return Dense(values[order][distinct], ranks[codes], firsts[order][distinct], bool(distinct.all()))


def dense_values(values: Integers) -> Dense:
    """The dense form by values alone; pure as far as they say."""
    if not len(values):
        return Dense(values, values, values, True)
    least, greatest = int(values.min()), int(values.max())
    if greatest - least <= max(_SPREAD * len(values), 2**12):
        distinct, codes = _by_table(values, least, greatest)
    else:
        distinct, codes = _by_encoding(values)
    firsts = np.empty(len(distinct), np.int64)
    firsts[codes] = np.arange(len(values))
    return Dense(distinct, codes, firsts, True)


def _by_table(values: Integers, least: int, greatest: int) -> tuple[Integers, Integers]:
    offsets = values - least
    seen = np.zeros(greatest - least + 1, np.bool_)
    seen[offsets] = True
    return np.flatnonzero(seen) + least, (np.cumsum(seen) - 1)[offsets]


def _by_encoding(values: Integers) -> tuple[Integers, Integers]:
    encoded = pa.array(values).dictionary_encode()
    distinct = encoded.dictionary.to_numpy()
    order = np.argsort(distinct)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return distinct[order], ranks[encoded.indices.to_numpy()]


def same(left: Sequence[pa.Array], left_places: Integers, right: Sequence[pa.Array], right_places: Integers) -> Mask:
    """Which pairs of rows agree in all columns."""
    equal = np.ones(len(left_places), np.bool_)
    for one, other in zip(left, right, strict=True):
        pairs = pc.equal(one.take(pa.array(left_places)), other.take(pa.array(right_places)))
        equal &= pairs.to_numpy(zero_copy_only=False)
    return equal


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind) or types.is_boolean(kind))


def _numbers(column: pa.Array) -> Integers:
    """A column without nulls as 64-bit numbers, equal where its values are."""
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
