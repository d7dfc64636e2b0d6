"""The order of arrays and structs: part by part, the first that differs decides; null before all, a beginning first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.columns.integers import Integers, dense
from millrace.kernel.columns.nested.nested_columns import entries_of, lengths_of

Leaf = Callable[[pa.Array], npt.NDArray[Any]]
"""Integers that compare as the values of a column do that is not nested."""


def nested_ranks(column: pa.Array, leaf: Leaf) -> npt.NDArray[Any]:
    """Integers that compare as nested values do, -1 for null; maps by their entries as they stand."""
    if pa.types.is_struct(column.type):
        found = _of_tuples([nested_ranks(part, leaf) for part in column.flatten()], len(column))
    elif pa.types.is_map(column.type):
        found = _of_lists(np.asarray(lengths_of(column)), nested_ranks(entries_of(column), leaf))
    elif pa.types.is_list(column.type):
        found = _of_lists(np.asarray(lengths_of(column)), nested_ranks(column.flatten(), leaf))
    else:
        return leaf(column)
    return np.where(np.asarray(column.is_valid()), found, -1) if column.null_count else found


def _of_tuples(parts: Sequence[npt.NDArray[Any]], count: int) -> Integers:
    """The place of each tuple among the distinct ones, in order."""
    if not parts:
        return np.zeros(count, np.int64)
    order = np.lexsort(parts[::-1])
    differs = np.zeros(count, np.bool_)
    for part in parts:
        ordered = part[order]
        differs[1:] |= ordered[1:] != ordered[:-1]
    found = np.empty(count, np.int64)
    found[order] = np.cumsum(differs)
    return found


def _of_lists(lengths: Integers, values: npt.NDArray[Any]) -> Integers:
    """The place of each list among the distinct ones, in order.

    The rank of what a list has from an element on is found for one, two, four, ... elements: that of so many, and that
    of as many behind them, give that of twice as many.
    """
    ends = np.cumsum(lengths)
    end, place = np.repeat(ends, lengths), np.arange(len(values))
    ranks, reach = dense(values.astype(np.int64))[1] + 1, 1
    while reach < lengths.max(initial=0):
        behind = np.minimum(place + reach, max(len(values) - 1, 0))
        ranks = _of_tuples([ranks, np.where(place + reach < end, ranks[behind], 0)], len(values)) + 1
        reach *= 2
    return np.where(lengths > 0, np.append(ranks, 0)[ends - lengths], 0)
