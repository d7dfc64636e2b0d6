"""How many letters are to be changed, added or removed to make one text of another: `levenshtein`, over columns.

The table of distances has a row per letter of the one text and a column per letter of the other. Each of its rows is
computed for all pairs of texts at once; where a text is long, pair by pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.casts import Value
from millrace.kernel.columns.functions.distinct_arguments import by_distinct
from millrace.kernel.columns.nested.nested_columns import over_columns

_INT = pa.int32()
_SHORT = 64
"""The most letters of texts that are computed together: all take as long as the longest."""


def levenshtein(one: Value, other: Value, *most: Value) -> Value:
    """The distances of texts; -1 where they are more than `most`."""
    found = _distances(one, other)
    for limit in most:
        found = pc.if_else(pc.greater(found, limit), pa.scalar(-1, _INT), found)
    return found


@over_columns
def _distances(one: pa.Array, other: pa.Array) -> pa.Array:
    lengths = [np.asarray(pc.fill_null(pc.utf8_length(each), 0)) for each in (one, other)]
    if max(each.max(initial=0) for each in lengths) > _SHORT:
        return by_distinct(_INT)(_distance)(one, other)
    return pa.array(_together(one, other, *lengths), mask=np.asarray(one.is_null()) | np.asarray(other.is_null()))


def _together(one: pa.Array, other: pa.Array, rows: Any, columns: Any) -> Any:
    letters, others = _letters(one, rows), _letters(other, columns)
    steps = np.arange(others.shape[1] + 1, dtype=np.int32)
    row = np.tile(steps, (len(one), 1))
    found = np.where(rows == 0, columns, 0).astype(np.int32)
    for place in range(letters.shape[1]):
        changed = np.empty_like(row)
        changed[:, 0] = place + 1
        changed[:, 1:] = np.minimum(row[:, 1:] + 1, row[:, :-1] + (others != letters[:, place, None]))
        # A letter more costs one: the least of what stands before, and of so many letters more.
        row = np.minimum.accumulate(changed - steps, axis=1) + steps
        ends = np.flatnonzero(rows == place + 1)
        found[ends] = row[ends, columns[ends]]
    return found


def _letters(texts: pa.Array, lengths: Any) -> Any:
    """The code points of texts, a row each, filled up with zeros."""
    together = pa.ListArray.from_arrays(pa.array([0, len(texts)], _INT), pc.fill_null(texts, ""))
    whole = pc.binary_join(together, "")[0].as_py().encode("utf-32-le")
    found = np.zeros((len(texts), int(lengths.max(initial=0))), np.uint32)
    found[np.arange(found.shape[1]) < lengths[:, None]] = np.frombuffer(whole, np.uint32)
    return found


def _distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        previous, row[0] = row[0], place
        for column, second in enumerate(other, 1):
            cost = previous + (letter != second)
            previous, row[column] = row[column], min(cost, row[column] + 1, row[column - 1] + 1)
    return row[-1]
