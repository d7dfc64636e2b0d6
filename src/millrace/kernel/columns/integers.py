"""Arrays of whole numbers: their order, their distinct values, ranges, sorted pairs, and room for more.

Orders come from numpy's sort of plain integers, which is many times as fast as its sort of indices or its search for
distinct values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]

_SPREAD = 4
"""Distinct numbers are found in a table if their range is at most this many times as large as their count."""


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


def dense(values: Integers) -> tuple[Integers, Integers]:
    """The distinct values in order, and the place of each value among them.

    >>> distinct, codes = dense(np.array([30, 10, 30]))
    >>> distinct.tolist(), codes.tolist()
    ([10, 30], [1, 0, 1])
    """
    if not len(values):
        return values, values
    if bool((values[1:] >= values[:-1]).all()):
        begins = starts(values)
        return values[begins], np.cumsum(begins) - 1
    least, greatest = int(values.min()), int(values.max())
    if greatest - least <= max(_SPREAD * len(values), 2**12):
        seen = np.zeros(greatest - least + 1, np.bool_)
        offsets = values - least
        seen[offsets] = True
        return np.flatnonzero(seen) + least, (np.cumsum(seen) - 1)[offsets]
    encoded = pa.array(values).dictionary_encode()
    distinct = encoded.dictionary.to_numpy()
    order = np.argsort(distinct)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return distinct[order], ranks[encoded.indices.to_numpy()]


def ranges(begins: Integers, counts: Integers) -> Integers:
    """The numbers from each begin on, as many as its count, one range after another.

    >>> ranges(np.array([10, 20]), np.array([2, 3])).tolist()
    [10, 11, 20, 21, 22]
    """
    before = np.cumsum(counts) - counts
    return np.repeat(begins - before, counts) + np.arange(int(counts.sum()))


def grown(numbers: npt.NDArray[Any], needed: int, filler: int | bool) -> npt.NDArray[Any]:
    """The array itself if it has `needed` places, else a copy that is doubled until it has, filled up.

    >>> grown(np.array([7, 8, 9]), 5, -1).tolist()
    [7, 8, 9, -1, -1, -1]
    """
    room = max(len(numbers), 1)
    while room < needed:
        room *= 2
    if room <= len(numbers):
        return numbers
    larger = np.full(room, filler, numbers.dtype)
    larger[: len(numbers)] = numbers
    return larger


class OrderedPairs:
    """Pairs of numbers sorted by the first and then the second, and where other pairs stand among them.

    64 bits might not hold both numbers of a pair, so each is first replaced by its place among the distinct ones.

    >>> pairs = OrderedPairs(np.array([1, 1, 7]), np.array([10, 30, 20]))
    >>> pairs.before(np.array([1, 1, 5, 7]), np.array([30, 31, 0, 21])).tolist()
    [1, 2, 2, 3]
    """

    def __init__(self, firsts: Integers, seconds: Integers) -> None:
        self._firsts = firsts[starts(firsts)]
        self._seconds = distinct(seconds)
        self._places = self._placed(firsts, seconds)

    def before(self, firsts: Integers, seconds: Integers) -> Integers:
        """How many pairs are less than each of some others."""
        return np.searchsorted(self._places, self._placed(firsts, seconds))

    def _placed(self, firsts: Integers, seconds: Integers) -> Integers:
        """One number per pair, in the order of the pairs."""
        above = np.searchsorted(self._firsts, firsts)
        known = above < np.searchsorted(self._firsts, firsts, side="right")
        return above * (len(self._seconds) + 1) + np.where(known, np.searchsorted(self._seconds, seconds), 0)
