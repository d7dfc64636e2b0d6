from __future__ import annotations

import numpy as np
import pytest

from millrace.kernel.joins.sequences.fifo_runs import places_taken


def one_by_one(first: list[bool], limits: list[int], old: list[int]) -> tuple[list[int], list[int]]:
    taken, used, front = [], [], 0
    for begins, limit, passed in zip(first, limits, old, strict=True):
        front = max(0 if begins else front, passed)
        taken.append(front if front < limit else -1)
        front += front < limit
        used.append(front)
    return taken, used


@pytest.mark.parametrize("seed", range(40))
def test_all_queues_together_give_what_one_comer_after_another_gives(seed: int) -> None:
    random = np.random.default_rng(seed)
    parts = []
    for count in random.integers(1, 40, int(random.integers(1, 8))):
        limits = np.sort(random.integers(0, 30, count))
        old = np.maximum.accumulate(np.minimum(random.integers(0, 30, count), limits)) * int(seed % 2)
        parts.append((np.arange(count) == 0, limits, old))
    first, limits, old = (np.concatenate(each) for each in zip(*parts, strict=True))
    taken, used = places_taken(first, limits, old if seed % 2 else None)
    assert (taken.tolist(), used.tolist()) == one_by_one(first.tolist(), limits.tolist(), old.tolist())


def test_nobody_comes() -> None:
    empty = np.empty(0, np.int64)
    assert [len(each) for each in places_taken(empty.astype(np.bool_), empty)] == [0, 0]
