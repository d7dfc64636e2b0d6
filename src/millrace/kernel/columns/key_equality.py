"""Whether keys are equal: null equals nothing, and NaN equals NaN, as SQL has it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.elements import Batch, Mask


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


def same_keys(ones: Sequence[pa.ChunkedArray | pa.Array], others: Sequence[pa.ChunkedArray | pa.Array]) -> Mask | None:
    """Where two rows of columns are equal; None when there are no columns. NaN equals NaN, null nothing."""
    found: Mask | None = None
    for one, other in zip(ones, others, strict=True):
        equal = pc.equal(one, other)
        if pa.types.is_floating(one.type):
            equal = pc.or_(equal, pc.and_(pc.is_nan(one), pc.is_nan(other)))
        mask = pc.fill_null(equal, False).to_numpy(zero_copy_only=False)
        found = mask if found is None else found & mask
    return found
