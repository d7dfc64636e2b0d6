"""Group rows by several columns and aggregate, faster than a hash of whole keys.

Each key column is encoded by its distinct values, and the codes of a row are folded into one number: its place in an
array, where numbers are aggregated directly. Where places would be too sparse, they are encoded once more. Functions
without such a form (the least of texts, say) are left to Arrow's hash aggregation, over the places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Places = npt.NDArray[np.int64]
Call = tuple[str | None, str]
"""An input column and a function (count, sum, min, max); None counts all rows."""

_SPARSE = 4
"""Places a row, above which an array is too sparse."""
_PLACE = "__place"
_OPTIONS = {"count": pc.CountOptions(mode="only_valid"), "sum": pc.ScalarAggregateOptions(min_count=1)}


def group(rows: pa.Table, by: Sequence[str], calls: Sequence[Call], names: Sequence[str]) -> pa.Table:
    """One row a group: the columns `by`, then the results of `calls` under `names`."""
    places, room = _places([rows.column(name) for name in by], rows.num_rows)
    member = np.full(room, -1, np.int64)
    member[places] = np.arange(rows.num_rows)
    taken = np.flatnonzero(member >= 0)
    keys = rows.select(list(by)).take(pa.array(member[taken]))
    if all(column is None or _is_number(rows.schema.field(column).type) for column, _ in calls):
        results = [_direct(rows, call, places, room, taken) for call in calls]
    else:
        results = _hashed(rows, calls, places)
    return pa.Table.from_arrays([*keys.columns, *results], names=[*by, *names])


def codes_of(columns: Sequence[pa.Array], count: int) -> tuple[Places, Places]:
    """Each row's group by number, numbered as they first turn up, and the first row of each."""
    places, _ = _places([pa.chunked_array([column]) for column in columns], count)
    codes, size = _encoded(pa.array(places))
    first = np.empty(size, np.int64)
    first[codes[::-1]] = np.arange(count)[::-1]
    return codes, first


def _places(columns: Sequence[pa.ChunkedArray], count: int) -> tuple[Places, int]:
    """Each row's place, the same for rows of equal columns, and how many places there are."""
    enough = max(_SPARSE * count, 2**16)
    places, room = np.zeros(count, np.int64), 1
    for column in columns:
        codes, size = _encoded(column.combine_chunks())
        places, room = (codes, size) if room == 1 else (places * size + codes, room * size)
        if room > enough:
            places, room = _encoded(pa.array(places))
    return places, room


def _encoded(column: pa.Array) -> tuple[Places, int]:
    """Each value's number among the distinct ones, and how many there are; null is one of them."""
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _direct(rows: pa.Table, call: Call, places: Places, room: int, taken: Places) -> pa.Array:
    """One result of a call for each place that is taken."""
    column, function = call
    if column is None:
        return pa.array(np.bincount(places, minlength=room)[taken])
    values = rows.column(column).combine_chunks()
    if values.null_count:
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        values, places = values.drop_null(), places[valid]
    counts = np.bincount(places, minlength=room)[taken]
    if function == "count":
        return pa.array(counts)
    folded = _folded(values, function, places, room)[taken]
    return pa.array(folded, mask=counts == 0)


def _folded(values: pa.Array, function: str, places: Places, room: int) -> npt.NDArray[Any]:
    """Values folded into their places; a place without values holds anything."""
    numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    floating = pa.types.is_floating(values.type)
    if function == "sum":
        if not floating:
            _check_room(numbers, places)
        totals = np.zeros(room, np.float64 if floating else np.int64)
        np.add.at(totals, places, numbers.astype(totals.dtype, copy=False))
        return totals
    found = np.empty(room, numbers.dtype)
    # Any value of a place will do as a start, and so no limits of types and no infinities are needed.
    found[places] = numbers
    choose = {"min": np.fmin, "max": np.fmax}[function]
    choose.at(found, places, numbers)
    return found


def _check_room(numbers: npt.NDArray[Any], places: Places) -> None:
    """Refuse sums that 64 bits cannot hold; looked at closely only where the numbers are large."""
    if len(numbers) and max(-int(numbers.min()), int(numbers.max())) * len(numbers) >= 2**63:
        totals = np.bincount(places, weights=numbers)
        if (np.abs(totals) >= 2.0**63).any():
            raise pa.ArrowInvalid("overflow in a sum")


def _hashed(rows: pa.Table, calls: Sequence[Call], places: Places) -> list[pa.ChunkedArray]:
    """The results of all calls by Arrow, in order of place."""
    specs = [
        ([], "count_all", None) if column is None else (column, function, _OPTIONS.get(function))
        for column, function in calls
    ]
    grouped = rows.append_column(_PLACE, pa.array(places)).group_by(_PLACE).aggregate(specs).sort_by(_PLACE)
    return grouped.columns[1:]
