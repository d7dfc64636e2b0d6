"""The rows that enter a queue together: which of them are accepted, and how they lie by key.

Rules:
- A row is accepted if it is newer than all accepted rows of its key before it, or as new and by the input that brought
  the newest one, or by the declared source of truth. So a key never goes back in time (002 section 3.2, papers 26).
- All of it is as if the rows had come one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from millrace.kernel.columns.integers import Integers, stable_order, starts
from millrace.kernel.elements import Mask, Times
from millrace.kernel.updates.key_cells import NONE, KeyCells


@dataclass(frozen=True)
class UpdateBatch:
    """Accepted rows in their order: the key of each, when it arrived, and where in the batch it stands."""

    keys: Integers
    arrived: Times
    rows: Integers
    port: int = 0

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def order(self) -> Integers:
        """The rows key by key; those of a key in their order."""
        return stable_order(self.keys)

    @cached_property
    def begins(self) -> Integers:
        """Where each key begins in that order."""
        return np.flatnonzero(starts(self.keys[self.order]))

    @cached_property
    def counts(self) -> Integers:
        """How many rows each key has."""
        return np.diff(self.begins, append=len(self.keys))

    @cached_property
    def first(self) -> Integers:
        """The first row of each key."""
        return self.order[self.begins]

    @cached_property
    def last(self) -> Integers:
        """The last row of each key."""
        return self.order[self.begins + self.counts - 1]

    @cached_property
    def distinct(self) -> Integers:
        """The keys, each once, as `first`, `last` and `counts` have them."""
        return self.keys[self.first]

    @cached_property
    def nth(self) -> Integers:
        """The number of each row among those of its key, from 0 on, in `order`."""
        return np.arange(len(self.keys)) - np.repeat(self.begins, self.counts)


def accepted(cells: KeyCells, keys: Integers, times: Times, port: int, truth: int | None) -> Mask:
    """Which rows of a batch are newer than what came before them."""
    last = cells["last"][keys]
    if port == truth:
        floor = last
    else:
        known = last != NONE
        floor = last + (known & (cells["port"][keys] != port))
    found: Mask = times >= floor
    if len(times) > 1 and not bool((times[1:] >= times[:-1]).all()):
        found &= times >= _greatest_before(keys, times)
    return found


def _greatest_before(keys: Integers, times: Times) -> Times:
    """The greatest time of the rows of the same key up to each row, itself among them."""
    order = stable_order(keys)
    distinct, reached = reached_times(times[order], starts(keys[order]))
    greatest = np.empty_like(times)
    greatest[order] = distinct[reached % len(distinct)]
    return greatest


def reached_times(times: Times, begins: Mask) -> tuple[Times, Integers]:
    """The distinct times in order; for each row the greatest of its group so far, as its place in them.

    Groups follow each other, and begin where it says. Places are numbered on from group to group, so that they are in
    order.
    """
    distinct, ranks = np.unique(times, return_inverse=True)
    return distinct, np.maximum.accumulate((np.cumsum(begins) - 1) * len(distinct) + ranks)


def hashed_shares(first: int, count: int) -> npt.NDArray[np.float64]:
    """A number between 0 and 1 for each of `count` numbers from `first` on, spread evenly and always the same."""
    mixed = np.arange(first, first + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    shares: npt.NDArray[np.float64] = (mixed ^ (mixed >> np.uint64(31))) / np.float64(2**64)
    return shares
