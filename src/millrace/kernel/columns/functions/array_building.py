"""Arrays made of other values: repeated, filled up, put side by side, counted out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.functions.array_functions import Elements, null_where
from millrace.kernel.columns.functions.distinct_arguments import Kernel
from millrace.kernel.columns.interval_values import plus_months
from millrace.kernel.columns.nested.nested_columns import lengths_of, list_of, over_columns, struct_of
from millrace.kernel.elements import INTERVAL, MONTHS

_MOST = 10_000_000
"""How many elements the arrays made of one batch may have."""


@over_columns
def _repeat(value: pa.Array, count: pa.Array) -> pa.Array:
    counts = np.maximum(np.asarray(count.fill_null(0)).astype(np.int64), 0)
    _check_room(counts)
    owners = pa.array(np.repeat(np.arange(len(value)), counts))
    return null_where(list_of(pa.array(counts), value.take(owners), pa.list_(value.type)), count)


def _check_room(counts: Any) -> None:
    if counts.sum() > _MOST:
        raise pa.ArrowInvalid(f"the arrays of one batch would have more than {_MOST:,} elements")


@over_columns
def _insert(lists: pa.Array, place: pa.Array, value: pa.Array) -> pa.Array:
    """Arrays with an element more at a place, filled up with nulls where they are too short."""
    elements = Elements(lists)
    given = np.asarray(place.fill_null(1)).astype(np.int64)
    if ((given == 0) & np.asarray(place.is_valid())).any():
        raise pa.ArrowInvalid("the place of an element is 0: places are counted from 1")
    target = np.where(given > 0, given - 1, elements.lengths + given + 1)
    ahead = np.maximum(-target, 0)
    target = np.maximum(target, 0)
    lengths = np.where(ahead > 0, ahead + elements.lengths + 1, np.maximum(target, elements.lengths) + 1)
    _check_room(lengths)
    starts = np.cumsum(lengths) - lengths
    shift = np.where(ahead[elements.owners] > 0, ahead[elements.owners] + 1, elements.places >= target[elements.owners])
    source = np.full(int(lengths.sum()), -1, np.int64)
    source[starts[elements.owners] + elements.places + shift] = np.arange(len(elements.values))
    source[starts + target] = len(elements.values) + np.arange(len(lists))
    values = pa.concat_arrays([elements.values, value]).take(pa.array(source, mask=source < 0))
    return null_where(list_of(pa.array(lengths), values, lists.type, lists.is_null()), place)


@over_columns
def _flatten(lists: pa.Array) -> pa.Array:
    outer = Elements(lists)
    inner = outer.values
    ends = np.concatenate([[0], np.cumsum(np.asarray(lengths_of(inner)))])
    lengths = ends[outer.starts + outer.lengths] - ends[outer.starts]
    holes = outer.any_of(np.asarray(inner.is_null()))
    found = list_of(pa.array(lengths), inner.flatten(), lists.type.value_type, lists.is_null())
    return pc.if_else(pa.array(holes), pa.scalar(None, found.type), found) if holes.any() else found


@over_columns
def _zip(names: pa.Array, *lists: pa.Array) -> pa.Array:
    """Structs of the elements at the same place; the names are the fields of a null."""
    lengths, _, columns = elements_at(lists)
    kind = pa.struct([(name, each.type) for name, each in zip(names.type.names, columns, strict=True)])
    return null_where(list_of(pa.array(lengths), struct_of(columns, kind), pa.list_(kind)), *lists)


def elements_at(lists: Sequence[pa.Array]) -> tuple[Any, Any, list[pa.Array]]:
    """The lengths of the longest of some arrays, their rows, and the elements at each place, null after the end."""
    parts = [Elements(each) for each in lists]
    nulls = np.logical_or.reduce([np.asarray(each.is_null()) for each in lists])
    lengths = np.where(nulls, 0, np.max([each.lengths for each in parts], axis=0))
    owners = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(owners)) - (np.cumsum(lengths) - lengths)[owners]
    return lengths, owners, [_at_places(each, owners, places) for each in parts]


def _at_places(elements: Elements, owners: Any, places: Any) -> pa.Array:
    ended = places >= elements.lengths[owners]
    return elements.values.take(pa.array(np.where(ended, 0, elements.starts[owners] + places), mask=ended))


@over_columns
def _sequence(start: pa.Array, stop: pa.Array, step: pa.Array | None = None) -> pa.Array:
    """Whole numbers, days or times from one to another, by a step; by default upwards or downwards by one."""
    kind = start.type
    one, other = (_integers(each) for each in (start, stop))
    steps = np.where(one <= other, 1, -1) if step is None else _steps(step, kind)
    nulls = [start, stop] if step is None else [start, stop, step]
    missing = np.logical_or.reduce([np.asarray(each.is_null()) for each in nulls])
    if (~missing & ((steps == 0) & (one != other) | (np.sign(other - one) * steps < 0))).any():
        raise pa.ArrowInvalid("the step of a sequence leads away from its end")
    by_months = step is not None and step.type == MONTHS
    apart = _months(stop) - _months(start) if by_months else other - one
    counts = np.where(missing, 0, np.abs(apart) // np.maximum(np.abs(steps), 1) + 1)
    _check_room(counts)
    owners = np.repeat(np.arange(len(counts)), counts)
    moved = (np.arange(len(owners)) - (np.cumsum(counts) - counts)[owners]) * steps[owners]
    if by_months:
        values = plus_months(start.take(pa.array(owners)), pc.cast(pa.array(moved), MONTHS))
        # Of the last month a day may be beyond the end.
        within = (other[owners] - _integers(values)) * np.sign(steps[owners]) >= 0
        counts, values = np.bincount(owners[within], minlength=len(counts)), values.filter(pa.array(within))
    else:
        values = _of_integers(pa.array(one[owners] + moved), kind)
    return null_where(list_of(pa.array(counts), values, pa.list_(kind)), *nulls)


def _months(times: pa.Array) -> Any:
    """The months of times since 1970."""
    days = _integers(pc.cast(times, pa.date32(), safe=False)).astype("datetime64[D]")
    return days.astype("datetime64[M]").astype(np.int64)


def _integers(values: pa.Array) -> Any:
    plain = pc.cast(values, pa.int32()) if pa.types.is_date(values.type) else values
    return np.asarray(pc.cast(plain, pa.int64()).fill_null(0))


def _of_integers(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return pc.cast(pc.cast(values, pa.int32()) if pa.types.is_date(kind) else values, kind)


def _steps(step: pa.Array, kind: pa.DataType) -> Any:
    found = _integers(step)
    if not pa.types.is_date(kind) or step.type != INTERVAL:
        return found
    days = found // 86_400_000_000
    if (days * 86_400_000_000 != found).any():
        raise pa.ArrowInvalid("a sequence of dates has a step of whole days")
    return days


BUILDING_FUNCTIONS: dict[str, Kernel] = {
    "array_repeat": _repeat,
    "array_insert": _insert,
    "flatten": _flatten,
    "arrays_zip": _zip,
    "sequence": _sequence,
}
