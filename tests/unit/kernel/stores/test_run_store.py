from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from millrace.kernel.state import Changes
from millrace.kernel.stores.run_store import RowRun, RunStore


def run(count: int) -> RowRun:
    return RowRun(pa.table({"v": pa.array([0] * count, pa.int64())}))


def concatenated(runs: Sequence[RowRun]) -> RowRun:
    return RowRun(pa.concat_tables([each.table for each in runs]))


def sizes(store: RunStore[RowRun]) -> list[int]:
    return [len(each) for each in store.runs]


@pytest.mark.parametrize("whole", [False, True])
def test_a_row_is_merged_a_logarithmic_number_of_times(whole: bool) -> None:
    written = 0

    def merge(runs: Sequence[RowRun]) -> RowRun:
        nonlocal written
        written += sum(map(len, runs))
        return concatenated(runs)

    store: RunStore[RowRun] = RunStore(merge, whole=whole)
    for _ in range(1000):
        store.add(run(1))
    assert len(store) == 1000 and len(store.runs) <= 10
    assert all(older > 2 * newer for older, newer in zip(sizes(store), sizes(store)[1:], strict=False))
    assert written <= (8 if whole else 11) * 1000


def test_no_run_of_more_than_the_most_rows_is_made() -> None:
    store: RunStore[RowRun] = RunStore(concatenated, whole=True, most=10)
    for _ in range(40):
        store.add(run(1))
    assert max(sizes(store)) <= 10 and len(store) == 40


def test_a_merge_that_leaves_nothing_removes_the_runs() -> None:
    store: RunStore[RowRun] = RunStore(lambda runs: None)
    for count in (8, 2, 1):
        store.add(run(count))
    assert sizes(store) == [8]
    store.merge_similar()
    store.replace(store.runs)
    assert sizes(store) == [] and len(store) == 0


def test_runs_that_lost_rows_are_merged_wherever_they_are() -> None:
    lost = {"rows": 0}

    class Shrinking(RowRun):
        def __len__(self) -> int:
            return super().__len__() - (lost["rows"] if super().__len__() == 20 else 0)

    store: RunStore[RowRun] = RunStore(concatenated)
    store.add(Shrinking(run(20).table))
    store.add(run(5))
    store.add(run(1))
    lost["rows"] = 12
    store.merge_similar()
    assert [each.table.num_rows for each in store.runs] == [25, 1]


def test_all_neighbours_of_similar_size_become_one_run() -> None:
    store: RunStore[RowRun] = RunStore(concatenated, whole=True)
    saved = {number: run(count).table for number, count in enumerate((50, 2, 2, 2))}
    store.restore(Changes(saved, (), {"runs": [*saved], "next": 4}), RowRun)
    store.merge_similar()
    assert sizes(store) == [50, 6]


def test_a_save_holds_what_came_and_what_went_and_the_order_of_the_runs() -> None:
    store: RunStore[RowRun] = RunStore(concatenated)
    for count in (20, 6, 2):
        store.add(run(count))
    first = store.changes({"own": 7})
    assert (sorted(first.added), first.removed, first.note["own"]) == ([0, 1, 2], (), 7)
    store.replace(store.runs[:2])
    second = store.changes({})
    assert (sorted(second.added), second.removed, second.note["runs"]) == ([3], (0, 1), [3, 2])
    restored: RunStore[RowRun] = RunStore(concatenated)
    restored.restore(Changes({**second.added, 2: first.added[2]}, (), second.note), RowRun)
    assert sizes(restored) == [26, 2]
    restored.add(run(1))
    assert sizes(restored) == [26, 3] and sorted(restored.changes({}).added) == [4]
