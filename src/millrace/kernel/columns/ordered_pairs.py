"""Pairs of whole numbers in order, and where others stand among them.

The two are never put into one number as they are, which 64 bits might not hold: each is replaced by its place among
the distinct ones first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from millrace.kernel.columns.sorting import distinct, starts

Numbers = npt.NDArray[np.int64]


class OrderedPairs:
    """Pairs that are sorted by the first number, and then by the second.

    >>> pairs = OrderedPairs(np.array([1, 1, 7]), np.array([10, 30, 20]))
    >>> pairs.before(np.array([1, 1, 5, 7]), np.array([30, 31, 0, 21])).tolist()
    [1, 2, 2, 3]
    """

    def __init__(self, firsts: Numbers, seconds: Numbers) -> None:
        self._firsts = firsts[starts(firsts)]
        self._seconds = distinct(seconds)
        self._places = self._placed(firsts, seconds)

    def before(self, firsts: Numbers, seconds: Numbers) -> Numbers:
        """How many pairs are less than each of some others."""
        return np.searchsorted(self._places, self._placed(firsts, seconds))

    def _placed(self, firsts: Numbers, seconds: Numbers) -> Numbers:
        """One number a pair, in the order of the pairs."""
        above = np.searchsorted(self._firsts, firsts)
        known = above < np.searchsorted(self._firsts, firsts, side="right")
        return above * (len(self._seconds) + 1) + np.where(known, np.searchsorted(self._seconds, seconds), 0)
