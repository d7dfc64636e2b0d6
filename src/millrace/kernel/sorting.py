"""Orders of whole numbers.

All by numpy's sort of plain integers, which is many times as fast as its sort of indices or its search for distinct
values.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


def distinct(numbers: Integers) -> Integers:
    """The distinct numbers, in order."""
    ordered = np.sort(numbers)
    return ordered[starts(ordered)]


def starts(ordered: Integers) -> npt.NDArray[np.bool_]:
    """Which numbers of an order differ from the one before."""
    return np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]


def stable_order(codes: Integers) -> Integers:
    """The places of small numbers in their order; equal ones keep theirs.

    >>> stable_order(np.array([1, 0, 1, 0])).tolist()
    [1, 3, 0, 2]
    """
    count = max(len(codes), 1)
    return np.sort(codes * count + np.arange(len(codes))) % count


def order_within(codes: Integers, values: npt.NDArray[np.float64]) -> Integers:
    """The places in order of the codes, those of equal codes by value, NaN last."""
    by_value = np.argsort(values)
    return by_value[stable_order(codes[by_value])]
