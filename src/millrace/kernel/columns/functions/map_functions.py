"""Functions of maps, over their flattened entries. A map with a null key, or with a key twice, fails the run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.functions.array_functions import Elements, codes_of, concat_arrays, null_where
from millrace.kernel.columns.functions.distinct_arguments import Kernel, by_distinct
from millrace.kernel.columns.functions.text_patterns import split_one
from millrace.kernel.columns.nested.nested_columns import entries_of, lengths_of, list_of, map_of, over_columns

_TEXTS = pa.map_(pa.string(), pa.string())


def _part(place: int) -> Kernel:
    """The keys of maps, or their values."""

    @over_columns
    def compute(maps: pa.Array) -> pa.Array:
        found = entries_of(maps).field(place)
        return list_of(lengths_of(maps), found, pa.list_(found.type), maps.is_null())

    return compute


keys_of, values_of = _part(0), _part(1)


def checked_map(lengths: pa.Array, keys: pa.Array, values: pa.Array, nulls: pa.Array) -> pa.Array:
    """Maps of so many entries each; raises for a key that is null or occurs twice."""
    if keys.null_count:
        raise pa.ArrowInvalid("the key of a map is null")
    owners = np.repeat(np.arange(len(lengths)), np.asarray(lengths))
    (codes,) = codes_of(keys)
    if len(np.unique(owners * (len(codes) + 1) + codes)) < len(codes):
        raise pa.ArrowInvalid("a map has a key twice")
    return map_of(lengths, keys, values, pa.map_(keys.type, values.type), nulls)


@over_columns
def _from_arrays(keys: pa.Array, values: pa.Array) -> pa.Array:
    nulls = pc.or_(keys.is_null(), values.is_null())
    blank = pa.array(np.asarray(nulls))
    ones, others = (
        pc.if_else(blank, pa.scalar(None, each.type), each) if each.null_count or pc.any(blank).as_py() else each
        for each in (keys, values)
    )
    if not lengths_of(ones).equals(lengths_of(others)):
        raise pa.ArrowInvalid("a map has as many keys as values")
    return checked_map(lengths_of(ones), ones.flatten(), others.flatten(), blank)


@over_columns
def _from_entries(lists: pa.Array) -> pa.Array:
    elements = Elements(lists)
    holes = elements.any_of(np.asarray(elements.values.is_null()))
    whole = pc.if_else(pa.array(holes), pa.scalar(None, lists.type), lists) if holes.any() else lists
    keys, values = whole.flatten().flatten()
    return checked_map(lengths_of(whole), keys, values, whole.is_null())


@over_columns
def _concat(*maps: pa.Array) -> pa.Array:
    keys, values = (concat_arrays(*(part(each) for each in maps)) for part in (keys_of, values_of))
    return checked_map(lengths_of(keys), keys.flatten(), values.flatten(), keys.is_null())


@over_columns
def _contains_key(maps: pa.Array, key: pa.Array) -> pa.Array:
    elements = Elements(keys_of(maps))
    codes, wanted = codes_of(elements.values, key)
    found = elements.any_of(codes == wanted[elements.owners])
    return null_where(pa.array(found), maps, key)


def _parsed(text: str, pairs: str = ",", parts: str = ":") -> list[tuple[str, str | None]]:
    found: dict[str, str | None] = {}
    for each in split_one(text, pairs):
        key, *value = split_one(each, parts, 2)
        if key in found:
            raise pa.ArrowInvalid("a map has a key twice")
        found[key] = value[0] if value else None
    return list(found.items())


MAP_FUNCTIONS: dict[str, Kernel] = {
    "map_keys": keys_of,
    "map_values": values_of,
    "map_from_arrays": _from_arrays,
    "map_from_entries": _from_entries,
    "map_concat": _concat,
    "map_contains_key": _contains_key,
    "str_to_map": by_distinct(_TEXTS)(_parsed),
}
