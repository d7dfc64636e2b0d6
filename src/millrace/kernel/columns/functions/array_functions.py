"""Functions of arrays over their flattened elements.

Rules:
- `Elements` has the elements of all arrays in one column, with the row that each belongs to; functions work on these.
- Elements are equal as keys are: NaN equals NaN, 0.0 equals -0.0, and in sets null equals null.
- Places are counted from 1, from the end if they are negative. In an order null comes first, NaN last.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.comparison import ordinals
from millrace.kernel.columns.functions.distinct_arguments import Kernel
from millrace.kernel.columns.functions.text_functions import without_nulls
from millrace.kernel.columns.nested.nested_columns import lengths_of, list_of, over_columns


class Elements:
    """The elements of arrays, and the rows that they belong to."""

    def __init__(self, lists: pa.Array) -> None:
        self.lists = lists
        self.values = lists.flatten()
        self.lengths = np.asarray(lengths_of(lists)).astype(np.int64)
        self.owners = np.repeat(np.arange(len(lists)), self.lengths)
        self.starts = np.cumsum(self.lengths) - self.lengths

    @property
    def places(self) -> Any:
        """The place of each element in its array, from 0."""
        return np.arange(len(self.values)) - self.starts[self.owners]

    def kept(self, mask: Any) -> pa.Array:
        """The arrays with the elements where a mask is true."""
        counts = np.bincount(self.owners[mask], minlength=len(self.lists))
        return list_of(pa.array(counts), self.values.filter(pa.array(mask)), self.lists.type, self.lists.is_null())

    def taken(self, order: Any) -> pa.Array:
        """The arrays with their elements in another order, which keeps those of a row together."""
        return list_of(pa.array(self.lengths), self.values.take(pa.array(order)), self.lists.type, self.lists.is_null())

    def at(self, places: Any, nulls: Any) -> pa.Array:
        """The element at a place of each array, from 0; null where there is none."""
        outside = nulls | (places < 0) | (places >= self.lengths) | np.asarray(self.lists.is_null())
        return self.values.take(pa.array(np.where(outside, 0, self.starts + places), mask=outside))

    def any_of(self, mask: Any) -> Any:
        """Which arrays have an element where a mask is true."""
        return np.bincount(self.owners[mask], minlength=len(self.lists)) > 0


def codes_of(*columns: pa.Array) -> list[Any]:
    """Whole numbers for the values of columns of one type, equal where values are, in their order; null is -1."""
    found = ordinals(pa.concat_arrays(columns)) if columns else np.zeros(0, np.int64)
    nulls = np.concatenate([np.asarray(each.is_null()) for each in columns])
    _, ranks = np.unique(found, return_inverse=True)
    ranks = np.where(nulls, -1, ranks)
    return list(np.split(ranks, np.cumsum([len(each) for each in columns])[:-1]))


def _first_occurrences(owners: Any, codes: Any) -> Any:
    """Which elements are the first of their kind in their array."""
    order = np.lexsort((codes, owners))
    new = np.ones(len(order), np.bool_)
    new[1:] = (owners[order][1:] != owners[order][:-1]) | (codes[order][1:] != codes[order][:-1])
    found = np.zeros(len(order), np.bool_)
    found[order[new]] = True
    return found


@over_columns
def _distinct(lists: pa.Array) -> pa.Array:
    elements = Elements(lists)
    (codes,) = codes_of(elements.values)
    return elements.kept(_first_occurrences(elements.owners, codes))


def _pairs(one: Elements, other: Elements) -> tuple[Any, Any]:
    """A number per element of two arrays, equal where the row and the value are."""
    codes = codes_of(one.values, other.values)
    width = max((int(each.max(initial=0)) for each in codes), default=0) + 2
    return one.owners * width + codes[0] + 1, other.owners * width + codes[1] + 1


@over_columns
def _union(left: pa.Array, right: pa.Array) -> pa.Array:
    return _distinct(concat_arrays(left, right))


def _set_function(inside: bool) -> Kernel:
    """`array_intersect`, or `array_except`."""

    @over_columns
    def compute(left: pa.Array, right: pa.Array) -> pa.Array:
        one, other = Elements(left), Elements(right)
        mine, theirs = _pairs(one, other)
        mask = (np.isin(mine, theirs) == inside) & _first_occurrences(one.owners, mine)
        return null_where(one.kept(mask), right)

    return compute


def null_where(found: pa.Array, *others: pa.Array) -> pa.Array:
    """Null where one of some other columns is."""
    nulls = np.logical_or.reduce([np.asarray(each.is_null()) for each in others])
    return pc.if_else(pa.array(nulls), pa.scalar(None, found.type), found) if nulls.any() else found


@over_columns
def _overlap(left: pa.Array, right: pa.Array) -> pa.Array:
    one, other = Elements(left), Elements(right)
    mine, theirs = _pairs(one, other)
    hit = one.any_of(np.isin(mine, theirs) & np.asarray(one.values.is_valid()))
    holes = one.any_of(np.asarray(one.values.is_null())) | other.any_of(np.asarray(other.values.is_null()))
    unknown = ~hit & holes & (one.lengths > 0) & (other.lengths > 0)
    nulls = np.asarray(pc.or_(left.is_null(), right.is_null())) | unknown
    return pa.array(hit, mask=nulls)


def _hits(lists: pa.Array, value: pa.Array) -> tuple[Elements, Any]:
    """The elements, and which of them equal the value of their row."""
    elements = Elements(lists)
    codes = ordinals(pa.concat_arrays([elements.values, value]))
    mine = np.repeat(codes[len(elements.values) :], elements.lengths)
    known = np.asarray(elements.values.is_valid()) & np.repeat(np.asarray(value.is_valid()), elements.lengths)
    return elements, (codes[: len(elements.values)] == mine) & known


@over_columns
def _contains(lists: pa.Array, value: pa.Array) -> pa.Array:
    elements, hits = _hits(lists, value)
    found = elements.any_of(hits)
    unknown = ~found & elements.any_of(np.asarray(elements.values.is_null()))
    return pa.array(found, mask=unknown | np.asarray(pc.or_(lists.is_null(), value.is_null())))


@over_columns
def _position(lists: pa.Array, value: pa.Array) -> pa.Array:
    elements, hits = _hits(lists, value)
    found = np.zeros(len(lists), np.int64)
    places = np.flatnonzero(hits)[::-1]
    found[elements.owners[places]] = elements.places[places] + 1
    return pa.array(found, mask=np.asarray(pc.or_(lists.is_null(), value.is_null())))


@over_columns
def _remove(lists: pa.Array, value: pa.Array) -> pa.Array:
    elements, hits = _hits(lists, value)
    return null_where(elements.kept(~hits), value)


@over_columns
def concat_arrays(*lists: pa.Array) -> pa.Array:
    """The elements of several arrays one after the other; null if one of them is."""
    parts = [Elements(each) for each in lists]
    values = pa.concat_arrays([each.values for each in parts])
    lengths = np.sum([each.lengths for each in parts], axis=0)
    begin, order, done = np.cumsum(lengths) - lengths, np.empty(len(values), np.int64), 0
    for each in parts:
        count = len(each.values)
        order[np.repeat(begin - each.starts, each.lengths) + np.arange(count)] = np.arange(done, done + count)
        begin, done = begin + each.lengths, done + count
    return null_where(list_of(pa.array(lengths), values.take(pa.array(order)), lists[0].type), *lists)


def _single(value: pa.Array) -> pa.Array:
    return list_of(pa.array(np.ones(len(value), np.int64)), value, pa.list_(value.type))


def _extreme(last: bool) -> Kernel:
    """`array_min`, or `array_max`; nulls do not count."""

    @over_columns
    def compute(lists: pa.Array) -> pa.Array:
        elements = Elements(without_nulls(lists))
        codes, full = ordinals(elements.values), np.flatnonzero(elements.lengths)
        best = (np.maximum if last else np.minimum).reduceat(codes, elements.starts[full]) if len(full) else codes
        hits = np.flatnonzero(codes == np.repeat(best, elements.lengths[full]))[::-1]
        places = np.full(len(lists), -1, np.int64)
        places[elements.owners[hits]] = hits
        return elements.values.take(pa.array(places, mask=places < 0))

    return compute


@over_columns
def sort_elements(lists: pa.Array, ascending: pa.Array | None = None, nulls_last: pa.Array | None = None) -> pa.Array:
    """Arrays in order; nulls come first, in falling order and with `nulls_last` last."""
    elements = Elements(lists)
    (codes,) = codes_of(elements.values)
    up = np.ones(len(lists), np.bool_) if ascending is None else np.asarray(ascending.fill_null(True))
    keys = np.where(up[elements.owners], codes, -codes)
    if nulls_last is not None:
        keys = np.where(codes < 0, len(codes) + 1, keys)
    return elements.taken(np.lexsort((keys, elements.owners)))


@over_columns
def reverse_elements(lists: pa.Array) -> pa.Array:
    """Arrays from their end."""
    elements = Elements(lists)
    return elements.taken(elements.starts[elements.owners] + elements.lengths[elements.owners] - 1 - elements.places)


@over_columns
def _slice(lists: pa.Array, start: pa.Array, length: pa.Array) -> pa.Array:
    begin, count = (np.asarray(each.fill_null(1)).astype(np.int64) for each in (start, length))
    valid = np.asarray(pc.and_(pc.and_(start.is_valid(), length.is_valid()), lists.is_valid()))
    if (((begin == 0) | (count < 0)) & valid).any():
        raise pa.ArrowInvalid("slice counts from 1, and takes no negative length")
    elements = Elements(lists)
    first = np.where(begin > 0, begin - 1, elements.lengths + begin)
    places = elements.places
    inside = (places >= first[elements.owners]) & (places < (first + count)[elements.owners])
    return null_where(elements.kept(inside & (first >= 0)[elements.owners]), start, length)


@over_columns
def _element_at(lists: pa.Array, place: pa.Array) -> pa.Array:
    """The element at a place, from 1, from the end if it is negative."""
    elements = Elements(lists)
    given = np.asarray(place.fill_null(0)).astype(np.int64)
    if ((given == 0) & np.asarray(pc.and_(place.is_valid(), lists.is_valid()))).any():
        raise pa.ArrowInvalid("the place of an element is 0: places are counted from 1")
    places = np.where(given > 0, given - 1, elements.lengths + given)
    return elements.at(places, np.asarray(place.is_null()))


ARRAY_FUNCTIONS: dict[str, Kernel] = {
    "array_distinct": _distinct,
    "array_union": _union,
    "array_intersect": _set_function(True),
    "array_except": _set_function(False),
    "arrays_overlap": _overlap,
    "array_contains": _contains,
    "array_position": _position,
    "array_remove": _remove,
    "array_compact": without_nulls,
    "concat_arrays": concat_arrays,
    "array_append": over_columns(lambda lists, value: concat_arrays(lists, _single(value))),
    "array_prepend": over_columns(lambda lists, value: concat_arrays(_single(value), lists)),
    "array_min": _extreme(False),
    "array_max": _extreme(True),
    "sort_array": sort_elements,
    "array_sort": over_columns(lambda lists: sort_elements(lists, None, lists)),
    "reverse_array": reverse_elements,
    "slice": _slice,
    "element_at": _element_at,
}
