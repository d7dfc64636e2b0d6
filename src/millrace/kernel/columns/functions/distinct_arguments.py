"""Functions for which there is no kernel over columns: computed in Python, once for each distinct row of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

Value = Any  # pa.Array | pa.Scalar
Kernel = Callable[..., Value]


def by_distinct(kind: pa.DataType, *, nulls: bool = False) -> Callable[[Callable[..., Any]], Kernel]:
    """A function of Python's values over columns, once for each distinct row of its arguments.

    Where one of them is null the value is null; with `nulls` the function is called for these too.

    >>> by_distinct(pa.int64())(lambda one, other: one + other)(pa.array([1, None, 1]), pa.scalar(2)).to_pylist()
    [3, None, 3]
    """

    def decorate(function: Callable[..., Any]) -> Kernel:
        def of_row(*row: Any) -> Any:
            return None if not nulls and any(each is None for each in row) else function(*row)

        @wraps(function)
        def compute(*values: Value) -> Value:
            columns = [_whole(each) for each in values if not isinstance(each, pa.Scalar)]
            if not columns:
                return pa.scalar(of_row(*(each.as_py() for each in values)), kind)
            distinct, places = distinct_rows(columns)
            given = iter(distinct)
            parts = [
                repeat(each.as_py()) if isinstance(each, pa.Scalar) else next(given).to_pylist() for each in values
            ]
            return pa.array([of_row(*row) for row in zip(*parts, strict=False)], kind).take(places)

        compute.by_distinct = True  # type: ignore[attr-defined]
        return compute

    return decorate


def _whole(column: Value) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def distinct_rows(columns: Sequence[pa.Array]) -> tuple[list[pa.Array], pa.Array]:
    """The distinct rows of some columns, and where the row of each is among them."""
    if pa.types.is_nested(columns[0].type) or any(pa.types.is_nested(each.type) for each in columns):
        return list(columns), pa.array(np.arange(len(columns[0])))
    encoded = [each.dictionary_encode(null_encoding="encode") for each in columns]
    if len(encoded) == 1:
        return [encoded[0].dictionary], encoded[0].indices
    codes = np.zeros(len(columns[0]), np.int64)
    for each in encoded:
        codes = codes * max(len(each.dictionary), 1) + np.asarray(each.indices)
        _, codes = np.unique(codes, return_inverse=True)
    _, first, places = np.unique(codes, return_index=True, return_inverse=True)
    return [each.take(pa.array(first)) for each in columns], pa.array(places)


def with_constants(fast: Kernel, slow: Kernel) -> Kernel:
    """A kernel that takes plain constants after its first argument; another one where these are columns or null."""

    @wraps(slow)
    def compute(first: Value, *others: Value) -> Value:
        constant = all(isinstance(each, pa.Scalar) and each.is_valid for each in others)
        if isinstance(first, pa.Scalar) or not constant:
            return slow(first, *others)
        found = fast(first, *(each.as_py() for each in others))
        return slow(first, *others) if found is None else found

    return compute
