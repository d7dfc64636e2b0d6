from __future__ import annotations

import pyarrow as pa

from millrace.kernel.elements import concat_tables
from millrace.kernel.stores.sorted_runs import SortedRuns


def runs_of(*batches: list[int]) -> SortedRuns:
    runs = SortedRuns("key", concat_tables)
    for keys in batches:
        runs.add(pa.table({"key": keys}))
    return runs


def test_keys_are_counted_over_all_runs() -> None:
    runs = runs_of([5, 1, 5, 3, 3, 3, 9], [3], [-2])
    keys, counts = runs.counts()
    assert (keys.tolist(), counts.tolist()) == ([-2, 1, 3, 5, 9], [1, 1, 4, 2, 1])
    runs.drop(3)
    keys, counts = runs.counts()
    assert (keys.tolist(), counts.tolist()) == ([5, 9], [2, 1])


def test_the_least_key_is_known_for_when_rows_have_been_released() -> None:
    runs = runs_of([5, 1, 5, 3, 3, 3, 9], [4], [-2])
    assert [runs.least_after(count) for count in range(10)] == [-2, 1, 3, 3, 3, 4, 5, 5, 9, None]
    assert runs_of().least_after(0) is None


def test_what_is_added_after_clearing_is_kept_through_a_restore() -> None:
    runs = runs_of([1, 2, 3])
    runs.drop(2)
    runs.clear()
    assert len(runs) == 0 and runs.least() is None
    runs.add(pa.table({"key": [1]}))
    restored = runs_of()
    restored.restore(runs.changes())
    assert restored.least() == 1
