"""Functions that make nested values and take parts out of them, over whole columns.

Rules:
- An index begins with 0. A place that is not in an array, a key that is not in a map, and a part of null are null.
- `encoded` gives equal text for equal values, so that arrays and structs can be keys; `decoded` gives the value back.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.casts import cast
from millrace.kernel.columns.comparison import canonical, equals, in_order, ordinals
from millrace.kernel.columns.nested.json_text import JsonText
from millrace.kernel.columns.nested.json_values import parsed
from millrace.kernel.columns.nested.nested_columns import (
    brought,
    entries_of,
    lengths_of,
    list_of,
    map_of,
    over_columns,
    struct_of,
)

Value = Any  # pa.Array | pa.Scalar

_KEY_TEXT = JsonText(null_fields=True, time=lambda column: pc.cast(column, pa.string()))


@over_columns
def _array(*values: pa.Array) -> pa.Array:
    count, width = len(values[0]), len(values)
    together = pa.concat_arrays(values).take(pa.array(np.arange(count * width).reshape(width, count).T.ravel()))
    return list_of(pa.array(np.full(count, width)), together, pa.list_(values[0].type))


def _struct(*pairs: Value) -> Value:
    """`name, value, name, value, ...`, the names constants."""
    names = [each.as_py() for each in pairs[::2]]
    kind = pa.struct(list(zip(names, (each.type for each in pairs[1::2]), strict=True)))
    made: Value = over_columns(lambda *values: struct_of(values, kind))(*pairs[1::2])
    return made


@over_columns
def _map(*pairs: pa.Array) -> pa.Array:
    """`key, value, key, value, ...`; raises for a key that is null or given twice."""
    keys, values = _array(*pairs[::2]), _array(*pairs[1::2])
    flat = keys.flatten()
    if flat.null_count:
        raise pa.ArrowInvalid("the key of a map is null")
    for one, other in combinations(pairs[::2], 2):
        if pc.any(equals(one, other)).as_py():
            raise pa.ArrowInvalid("a map has a key twice")
    kind = pa.map_(pairs[0].type, pairs[1].type)
    return map_of(pc.list_value_length(keys), flat, values.flatten(), kind, keys.is_null())


def _field(value: Value, name: Value) -> Value:
    """A field of structs; of arrays of structs the array of the fields."""
    if not pa.types.is_list(value.type):
        return pc.struct_field(value, [name.as_py()])

    def of_lists(column: pa.Array) -> pa.Array:
        inside = pc.struct_field(column.flatten(), [name.as_py()])
        return list_of(lengths_of(column), inside, pa.list_(inside.type), column.is_null())

    found: Value = over_columns(of_lists)(value)
    return found


@over_columns
def _element(lists: pa.Array, index: pa.Array) -> pa.Array:
    """The value at a place of arrays, counted from 0."""
    lengths = np.asarray(lengths_of(lists))
    places = np.asarray(index.fill_null(-1)).astype(np.int64)
    inside = (places >= 0) & (places < lengths)
    starts = np.cumsum(lengths) - lengths
    return lists.flatten().take(pa.array(np.where(inside, starts + places, 0), mask=~inside))


@over_columns
def _of_key(maps: pa.Array, key: pa.Array) -> pa.Array:
    """The value of a key of maps."""
    lengths = np.asarray(lengths_of(maps))
    owners = np.repeat(np.arange(len(maps)), lengths)
    entries = entries_of(maps)
    hit = np.asarray(pc.fill_null(equals(entries.field(0), key.take(pa.array(owners))), False))
    places = np.full(len(maps), -1, np.int64)
    places[owners[hit]] = np.flatnonzero(hit)
    return entries.field(1).take(pa.array(places, mask=places < 0))


@over_columns
def _size(value: pa.Array) -> pa.Array:
    """How many elements arrays or maps have; -1 for null, as Spark has it."""
    lengths = pc.cast(lengths_of(value), pa.int32())
    return pc.if_else(value.is_valid(), lengths, pa.scalar(-1, pa.int32()))


@over_columns
def _entries(maps: pa.Array) -> pa.Array:
    """The entries of maps as arrays of structs."""
    found = entries_of(maps)
    return list_of(lengths_of(maps), found, pa.list_(found.type), maps.is_null())


@over_columns
def _encoded(value: pa.Array) -> pa.Array:
    return _KEY_TEXT.of(brought_leaves(value))


def brought_leaves(value: pa.Array) -> pa.Array:
    """Nested values with equal bits for equal numbers."""
    return brought(value, value.type, lambda part, _: canonical(part), always=True)


def _decoded(text: Value, null: pa.Scalar) -> Value:
    """The values of encoded texts, of the type of a null."""
    made: Value = over_columns(lambda column: parsed(column, null.type, cast)[0])(text)
    return made


def compared(compare: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """A comparison of two columns, also of arrays and structs: these by their places in a common order."""

    @over_columns
    def of_nested(left: pa.Array, right: pa.Array) -> pa.Array:
        ranks = ordinals(pa.concat_arrays([left, right]))
        return compare(*(pa.array(part, mask=part < 0) for part in np.split(ranks, 2)))

    plain = in_order(compare)

    def of_any(left: Value, right: Value) -> Value:
        return of_nested(left, right) if pa.types.is_nested(left.type) else plain(left, right)

    return of_any


def extreme(function: Callable[..., Value], *, greatest: bool) -> Callable[..., Value]:
    """The least or the greatest of several columns, also of arrays and structs; nulls are passed over."""

    @over_columns
    def of_nested(*columns: pa.Array) -> pa.Array:
        together = pa.concat_arrays(columns)
        ranks = ordinals(together).reshape(len(columns), -1)
        known = ranks if greatest else np.where(ranks < 0, len(together), ranks)
        chosen = known.argmax(0) if greatest else known.argmin(0)
        return together.take(pa.array(chosen * known.shape[1] + np.arange(known.shape[1])))

    def of_any(*values: Value) -> Value:
        return of_nested(*values) if pa.types.is_nested(values[0].type) else function(*values)

    return of_any


NESTED_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "array": _array,
    "named_struct": _struct,
    "map": _map,
    "field": _field,
    "element": _element,
    "of_key": _of_key,
    "size": _size,
    "entries": _entries,
    "encoded": _encoded,
    "decoded": _decoded,
}
