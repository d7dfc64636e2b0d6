"""One to one by turns: who takes which place of a queue, if each takes the first that is left to him.

Who comes may take the places up to a limit of his own, but none that is too old for him; neither ever goes back from
one to the next. So how far a queue is used up after him is `min(max(before, old) + 1, limit)`. Such functions, applied
one after another, are again a sum that is kept between two bounds: all queues are worked off in as many steps as the
longest row of comers has doublings. Where nothing is too old a running minimum will do.
"""

from __future__ import annotations

import numpy as np

from millrace.kernel.elements import Mask
from millrace.kernel.stores.keyed_runs import Places


def turns(first: Mask, limits: Places, old: Places | None = None) -> tuple[Places, Places]:
    """The place of its queue that each comer takes, -1 for none, and how much of the queue is used up after him.

    `first` says where those of another queue begin.

    >>> taken, used = turns(np.array([True, False, False]), np.array([1, 1, 3]))
    >>> taken.tolist(), used.tolist()
    ([0, -1, 1], [1, 1, 2])
    """
    if not len(first):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    begins = np.flatnonzero(first)
    places = np.arange(len(first)) - np.repeat(begins, np.diff(begins, append=len(first)))
    used = _counted(first, places, limits) if old is None else _clamped(places, limits, old)
    before = np.where(first, 0, np.roll(used, 1))
    left = before if old is None else np.maximum(before, old)
    return np.where(left < limits, left, -1), used


def _counted(first: Mask, places: Places, limits: Places) -> Places:
    """How much is used up after each when nothing is too old."""
    count = places + 1
    # Each queue lies below the one before it, by more than anything can differ: so the running minimum begins anew.
    below = (np.cumsum(first) - 1) * (len(first) + 1)
    missed: Places = np.minimum.accumulate(np.minimum(limits - count, 0) - below) + below
    return count + missed


def _clamped(places: Places, limits: Places, old: Places) -> Places:
    """How much is used up after each: of what one adds and the bounds he sets, of two, of four, and so on."""
    more, high = np.ones(len(places), np.int64), limits.copy()
    low = np.minimum(old + 1, limits)
    step, longest = 1, int(places.max())
    while step <= longest:
        at = np.flatnonzero(places >= step)
        before, mine, lowest, highest = at - step, more[at], low[at], high[at]
        # All of the step before is read before any of it is replaced.
        added = more[before] + mine
        lower = np.clip(low[before] + mine, lowest, highest)
        higher = np.clip(high[before] + mine, lowest, highest)
        more[at], low[at], high[at] = added, lower, higher
        step *= 2
    return np.clip(more, low, high)
