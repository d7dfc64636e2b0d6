"""Arrays, structs and maps: made from their parts, taken apart, and brought to other types part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Value = Any  # pa.Array | pa.Scalar
Leaf = Callable[[Value, pa.DataType], Value]
"""Brings a column that is not nested to a type."""


def is_nested(kind: pa.DataType) -> bool:
    """True if values of a type are made of others."""
    return bool(pa.types.is_nested(kind))


def has_map(kind: pa.DataType) -> bool:
    """True if a map is a type, or a part of it."""
    if pa.types.is_map(kind):
        return True
    return pa.types.is_nested(kind) and any(has_map(kind.field(place).type) for place in range(kind.num_fields))


def brought(column: pa.Array, kind: pa.DataType, leaf: Leaf, *, always: bool = False) -> pa.Array:
    """A column of nested values in another type of the same shape; raises `pa.ArrowTypeError` where it has another.

    Parts that have their type are left alone, unless `leaf` is `always` called.
    """
    if column.type == kind and not always:
        return column
    if pa.types.is_struct(kind) and pa.types.is_struct(column.type) and column.type.num_fields == kind.num_fields:
        parts = zip(column.flatten(), kind, strict=True)
        return struct_of(
            [brought(part, field.type, leaf, always=always) for part, field in parts], kind, column.is_null()
        )
    if pa.types.is_map(kind) and pa.types.is_map(column.type):
        entries = brought(entries_of(column), pa.struct([kind.key_field, kind.item_field]), leaf, always=always)
        return map_of(lengths_of(column), entries.field(0), entries.field(1), kind, column.is_null())
    if pa.types.is_list(kind) and pa.types.is_list(column.type):
        return list_of(
            lengths_of(column), brought(column.flatten(), kind.value_type, leaf, always=always), kind, column.is_null()
        )
    if is_nested(kind) or is_nested(column.type):
        raise pa.ArrowTypeError(f"{column.type} is no {kind}")
    return leaf(column, kind)


def lost(before: pa.Array, after: pa.Array) -> npt.NDArray[np.bool_]:
    """Where a part of a nested value was there before `brought`, and is null after it."""
    if before.type == after.type:
        return np.zeros(len(before), np.bool_)
    if pa.types.is_struct(before.type):
        parts = zip(before.flatten(), after.flatten(), strict=True)
        return np.logical_or.reduce([lost(one, other) for one, other in parts])
    if is_nested(before.type):
        inside = [entries_of(each) if pa.types.is_map(each.type) else each.flatten() for each in (before, after)]
        ends = np.cumsum(np.asarray(lengths_of(before)))
        counts = np.concatenate([[0], np.cumsum(lost(*inside))])
        return np.asarray(np.diff(counts[np.concatenate([[0], ends])]) > 0)
    return np.asarray(pc.and_(before.is_valid(), after.is_null()))


def lengths_of(column: pa.Array) -> pa.Array:
    """How many elements lists or maps have; 0 for null."""
    if pa.types.is_map(column.type):
        offsets = np.asarray(column.offsets)
        return pa.array(np.where(np.asarray(column.is_valid()), np.diff(offsets), 0))
    return pc.list_value_length(column).fill_null(0)


def entries_of(column: pa.MapArray) -> pa.StructArray:
    """The entries of maps, without those that stand at a null."""
    whole = column.filter(column.is_valid()) if column.null_count else column
    first, last = (int(whole.offsets[place].as_py()) for place in (0, -1))
    parts = [part.slice(first, last - first) for part in (whole.keys, whole.items)]
    return pa.StructArray.from_arrays(parts, ["key", "value"])


def _offsets(lengths: pa.Array) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(np.asarray(lengths))]), pa.int32())


def list_of(lengths: pa.Array, values: pa.Array, kind: pa.DataType, nulls: pa.Array | None = None) -> pa.Array:
    """Lists of so many of some values each."""
    return pa.ListArray.from_arrays(_offsets(lengths), values, type=kind, mask=nulls)


def map_of(lengths: pa.Array, keys: pa.Array, values: pa.Array, kind: pa.DataType, nulls: pa.Array) -> pa.Array:
    """Maps of so many of some entries each."""
    offsets = _offsets(lengths)
    return pa.MapArray.from_arrays(offsets, keys, values, type=kind, mask=nulls)


def struct_of(parts: Sequence[pa.Array], kind: pa.DataType, nulls: pa.Array | None = None) -> pa.Array:
    """Structs of some columns."""
    return pa.StructArray.from_arrays(list(parts), fields=list(kind), mask=nulls)


def shown(column: pa.Array, leaf: Leaf) -> pa.Array:
    """Nested values as text, as Spark's CAST writes them: `[1, null]`, `{1, a}`, `{key -> 1}`; null stays null."""
    kind = column.type
    if not is_nested(kind):
        return leaf(column, pa.string())
    if pa.types.is_struct(kind):
        inside = pc.binary_join_element_wise(
            *(pc.fill_null(shown(each, leaf), "null") for each in column.flatten()), ", "
        )
        return pc.if_else(
            column.is_valid(), pc.binary_join_element_wise("{", inside, "}", ""), pa.scalar(None, pa.string())
        )
    if pa.types.is_map(kind):
        entries = [pc.fill_null(shown(each, leaf), "null") for each in entries_of(column).flatten()]
        texts, (opening, closing) = pc.binary_join_element_wise(*entries, " -> "), "{}"
    else:
        texts, (opening, closing) = pc.fill_null(shown(column.flatten(), leaf), "null"), "[]"
    lists = list_of(lengths_of(column), texts, pa.list_(pa.string()), column.is_null())
    return pc.binary_join_element_wise(opening, pc.binary_join(lists, ", "), closing, "")


def repeated(value: pa.Scalar, count: int) -> pa.Array:
    """A column of one value; Arrow cannot repeat a list or a map zero times."""
    return pa.repeat(value, count) if count else pa.nulls(0, value.type)


def over_columns(function: Callable[..., pa.Array]) -> Callable[..., Value]:
    """A function of columns, also of constants: beside columns they are repeated, alone they give a constant."""

    @wraps(function)
    def compute(*values: Value) -> Value:
        count = next((len(each) for each in values if not isinstance(each, pa.Scalar)), None)
        columns = [
            repeated(each, count if count is not None else 1) if isinstance(each, pa.Scalar) else each
            for each in values
        ]
        whole = [each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in columns]
        found = function(*whole)
        return found[0] if count is None else found

    return compute
