"""Values compared: equality of keys, and whole numbers in the order of a column's values.

Rules:
- Keys of a join are equal as in SQL: null equals nothing, NaN equals NaN, and 0.0 equals -0.0.
- In an order null is less than every value and NaN greater than all numbers. Ordinals compare within one call only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.decimals import unscaled
from millrace.kernel.columns.nested.nested_order import nested_ranks
from millrace.kernel.elements import Batch, Mask

_MAGNITUDE = np.int64(2**63 - 1)


def ordinals(column: pa.Array) -> npt.NDArray[Any]:
    """Integers that compare as the values of a column do.

    >>> [int(number) for number in ordinals(pa.array(["pear", None, "apple"]))]
    [1, -1, 0]
    """
    if pa.types.is_nested(column.type):
        return nested_ranks(column, ordinals)
    if column.null_count:
        return _ranks(column)
    kind = column.type
    if pa.types.is_integer(kind):
        return column.to_numpy(zero_copy_only=False)
    if pa.types.is_floating(kind):
        return _of_fractions(column.to_numpy(zero_copy_only=False).astype(np.float64))
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(kind) and kind.precision <= 18:
        return np.ascontiguousarray(unscaled(column)[:, 0])
    return _ranks(column)


def _of_fractions(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The bits of a fraction as a whole number, those of negative ones turned round."""
    bits: npt.NDArray[np.int64] = np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.int64)
    return bits ^ ((bits >> np.int64(63)) & _MAGNITUDE)


def _ranks(column: pa.Array) -> npt.NDArray[np.int64]:
    """The place of each value among the distinct ones, in order; -1 for null."""
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, np.int64)
    encoded = canonical(column).dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    # The last rank is that of null, whose code is made -1.
    ranks = np.full(len(order) + 1, -1, np.int64)
    ranks[order] = np.arange(len(order))
    found: npt.NDArray[np.int64] = ranks[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return found


def canonical(column: pa.Array) -> pa.Array:
    """The column with equal bits for equal values: 0.0 for -0.0, and one NaN."""
    if not pa.types.is_floating(column.type):
        return column
    zero, nan = pa.scalar(0.0, column.type), pa.scalar(np.nan, column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))


def in_order(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Arrow's comparison of plain values with NaN where it is in an order; Arrow's own is false for it."""

    def compared(left: Any, right: Any) -> Any:
        plain = compare(left, right)
        if not (_has_nan(left) or _has_nan(right)):
            return plain
        nans = pc.is_nan(left), pc.is_nan(right)
        return pc.if_else(pc.or_(*nans), compare(*nans), plain)

    return compared


def _has_nan(values: pa.Array | pa.ChunkedArray | pa.Scalar) -> bool:
    if not pa.types.is_floating(values.type):
        return False
    if isinstance(values, pa.Scalar):
        return bool(values.is_valid and values.as_py() != values.as_py())
    if isinstance(values, pa.ChunkedArray):
        return any(map(_has_nan, values.chunks))
    if not len(values):
        return False
    # What stands in the place of a null counts too: it only costs time.
    numbers = np.frombuffer(values.buffers()[1], values.type.to_pandas_dtype())
    return bool(np.isnan(np.min(numbers[values.offset : values.offset + len(values)])))


def without_null(keys: Sequence[pa.Array]) -> Mask | None:
    """Which rows have no null among their keys, for null equals nothing; None when all are such."""
    found: Mask | None = None
    for column in keys:
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            found = valid if found is None else found & valid
    return found


def with_whole_keys(batch: Batch, keys: Sequence[str]) -> Batch:
    """The rows that have no null among their keys."""
    valid = without_null([batch.rows.column(name) for name in keys])
    return batch if valid is None else batch.where(valid)


equals = in_order(pc.equal)
"""Where values are equal; null where one of them is null."""


def same_keys(ones: Sequence[pa.ChunkedArray | pa.Array], others: Sequence[pa.ChunkedArray | pa.Array]) -> Mask | None:
    """Where two rows of columns are equal; None when there are no columns. NaN equals NaN, null nothing."""
    found: Mask | None = None
    for one, other in zip(ones, others, strict=True):
        equal = equals(one, other)
        mask = pc.fill_null(equal, False).to_numpy(zero_copy_only=False)
        found = mask if found is None else found & mask
    return found
