from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.columns.expressions import Column
from millrace.kernel.elements import NO_BOUND
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.order import Order, PartitionState
from millrace.kernel.progress.partition_progress import PartitionProgress
from millrace.kernel.progress.partitioned_order import Partitioned
from millrace.kernel.progress.time_contract import TimeContract

TIMESTAMP = pa.timestamp("us", tz="UTC")


def times(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64()).cast(TIMESTAMP)


def rows(*values: int, **columns: Any) -> pa.RecordBatch:
    return pa.record_batch({"ts": times(*values), **columns})


def test_a_row_may_trail_by_as_many_rows_as_declared() -> None:
    ingress = Ingress(TimeContract("external", "ts", rows=2))
    admission = ingress.admit(rows(50, 10, 20, 60, 30, 49), now=0)
    assert admission.admitted.times.tolist() == [50, 10, 20, 60]
    assert admission.late.times.tolist() == [30, 49]
    assert admission.bounds.tolist() == [NO_BOUND, NO_BOUND, 50, 60]


def test_rows_are_counted_across_batches() -> None:
    ingress = Ingress(TimeContract("external", "ts", rows=3))
    bounds = []
    for time in (50, 10, 20, 60, 55, 70):
        ingress.admit(rows(time), now=0)
        bounds.append(ingress.bound)
    assert bounds == [NO_BOUND, NO_BOUND, NO_BOUND, 50, 50, 50]
    assert ingress.admit(rows(50), now=0).bounds[-1] == 60


def test_a_stream_that_trails_by_no_row_is_ordered() -> None:
    admission = Ingress(TimeContract("external", "ts", rows=0)).admit(rows(5, 7, 6, 7), now=0)
    assert admission.admitted.times.tolist() == [5, 7, 7]
    assert admission.bounds.tolist() == [5, 7, 7]


def test_more_rows_than_the_stream_has_promise_nothing() -> None:
    ingress = Ingress(TimeContract("external", "ts", rows=100))
    for time in (30, 20, 10):
        assert len(ingress.admit(rows(time), now=0).admitted) == 1
    assert ingress.bound == NO_BOUND


def test_a_source_promises_by_a_time_in_its_rows() -> None:
    ingress = Ingress(TimeContract("external", "ts", punctuation=Column("until")))
    admission = ingress.admit(rows(9, 3, 8, 7, 7, until=times(None, 5, 8, None, 6)), now=0)
    assert admission.admitted.times.tolist() == [9, 3, 8], "a promise holds for the rows after it"
    assert admission.bounds.tolist() == [NO_BOUND, 5, 8]
    assert (ingress.bound, ingress.late) == (8, 2)


def test_a_source_promises_by_marking_rows() -> None:
    ingress = Ingress(TimeContract("external", "ts", punctuation=Column("mark")))
    admission = ingress.admit(rows(9, 3, 8, 2, 5, mark=[False, True, None, True, True]), now=0)
    assert admission.admitted.times.tolist() == [9, 3, 8, 5]
    assert admission.bounds.tolist() == [NO_BOUND, 3, 3, 5]


def test_the_bound_is_the_least_of_all_partitions_seen_so_far() -> None:
    ingress = Ingress(TimeContract("external", "ts", 1, partitions=("k",)))
    admission = ingress.admit(rows(10, 20, 25, 12, 30, 15, 26, k=["a", "a", "b", "b", "a", "b", "b"]), now=0)
    assert admission.bounds.tolist() == [9, 19, 19, 24, 25]
    assert admission.late.times.tolist() == [12, 15]
    assert ingress.bound == 25


def test_a_partition_that_turns_up_behind_does_not_take_the_bound_back() -> None:
    ingress = Ingress(TimeContract("external", "ts", partitions=("k",)))
    ingress.admit(rows(100, k=["a"]), now=0)
    admission = ingress.admit(rows(40, 200, 90, 150, k=["b", "a", "b", "b"]), now=0)
    assert admission.late.times.tolist() == [40, 90]
    assert admission.bounds.tolist() == [100, 150]


def test_a_partition_has_its_own_promises() -> None:
    ingress = Ingress(TimeContract("external", "ts", punctuation=Column("mark"), partitions=("k",)))
    admission = ingress.admit(rows(10, 20, 12, 18, k=["a", "b", "b", "b"], mark=[True, False, True, True]), now=0)
    assert admission.bounds.tolist() == [10, 10, 10, 10]
    assert ingress.admit(rows(30, k=["a"], mark=[True]), now=0).bounds.tolist() == [18]


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([1, 2, None, 1], pa.int32()),
        pa.array([True, False, None, True]),
        pa.array([1.5, -0.0, None, 1.5]),
        times(1, 2, None, 1),
        pa.array([1, 2, None, 1], pa.date32()),
    ],
)
def test_partitions_of_any_type_are_found_again_after_a_restore(keys: pa.Array) -> None:
    contract = TimeContract("external", "ts", partitions=("k", "j"))
    ingress, again = Ingress(contract), Ingress(contract)
    ingress.admit(rows(1, 2, 3, 4, k=keys, j=["x", "x", "x", "y"]), now=0)
    again.restore(json.loads(json.dumps(ingress.save())))
    for edge in (ingress, again):
        edge.admit(rows(11, 12, 13, 14, k=keys, j=["x", "x", "x", "y"]), now=0)
    assert again.bound == ingress.bound == 11
    assert again.save() == ingress.save()


def test_files_read_side_by_side_are_as_far_as_the_least_partition_of_all() -> None:
    contract = TimeContract("external", "ts", partitions=("k",))
    low = [Ingress(contract), Ingress(contract)]
    low[0].admit(rows(100, k=["a"]), now=1)
    low[1].admit(rows(50, 60, k=["b", "a"]), now=1)
    high = Ingress(contract)
    high.follow([edge.progress() for edge in low])
    assert high.bound == 50, "neither file knows the other's partition"
    assert high.order.slowest(9) == [PartitionState(("b",), 50, 1, 50), PartitionState(("a",), 100, 1, 100)]


def test_a_file_that_is_read_alone_keeps_its_bound() -> None:
    contract = TimeContract("external", "ts", partitions=("k",))
    low, high = Ingress(contract), Ingress(contract)
    low.admit(rows(100, 40, k=["a", "b"]), now=1)
    high.follow([low.progress()])
    assert high.bound == low.bound == 100, "though the partition that came later is behind it"


def test_the_slowest_partitions_are_known_the_last_first() -> None:
    order, seen = Partitioned(("k",), 0, None), PartitionProgress()
    bounds = np.array([40, 10, 30, 20, 50])
    codes = seen.numbers_of([f'["{key}"]' for key in "abcde"])
    seen.see(codes, bounds + 50, now=7)
    seen.allowed[codes] = bounds
    order.restore({"partitions": [seen.whole()]})
    assert order.parts == 5
    assert order.slowest(2) == [PartitionState(("b",), 60, 7, 10), PartitionState(("d",), 70, 7, 20)]
    assert [part.bound for part in order.slowest(9)] == [10, 20, 30, 40, 50]
    assert Order().slowest(3) == []


def tuned(before: TimeContract, after: TimeContract, *seen: pa.RecordBatch) -> Ingress:
    """The edge of a stream that goes on with another contract after some rows."""
    edge, again = Ingress(before), Ingress(after)
    for batch in seen:
        edge.admit(batch, now=0)
    again.restore(json.loads(json.dumps(edge.save())))
    assert again.bound == edge.bound
    return again


BY_TIME, BY_ROWS = TimeContract("external", "ts", 5), TimeContract("external", "ts", rows=1)
PROMISED = TimeContract("external", "ts", punctuation=Column("until"))


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("before", "after", "seen", "come", "bounds"),
    [
        pytest.param(BY_TIME, {"disorder": 20}, [100], [104, 120, 96], [95, 100, 100], id="more disorder"),
        pytest.param(BY_TIME, {"disorder": 2}, [100], [97, 101], [98, 99], id="less disorder"),
        pytest.param(BY_TIME, {"rows": 2}, [100], [101, 102, 103], [95, 95, 101], id="by rows from now on"),
        pytest.param(BY_ROWS, {"rows": None, "disorder": 10}, [100, 101], [105, 112], [100, 102], id="by time again"),
        pytest.param(BY_ROWS, {"rows": 3}, [100, 101, 102], [103, 104, 105], [101, 101, 102], id="more rows"),
        pytest.param(BY_ROWS, {"rows": 0}, [100, 101, 102], [103, 104], [103, 104], id="fewer rows"),
        pytest.param(BY_TIME, {"punctuation": PROMISED.punctuation}, [100], [99, 110], [95, 95], id="promises"),
        pytest.param(PROMISED, {"punctuation": None}, [100], [101], [101], id="no promises"),
    ],
)
def test_a_bound_goes_on_from_where_it_was_by_another_rule(
    before: TimeContract, after: dict[str, Any], seen: list[int], come: list[int], bounds: list[int], at_once: bool
) -> None:
    def promising(*values: int) -> pa.RecordBatch:
        return rows(*values, until=times(*[None] * len(values)))

    edge = tuned(before, replace(before, **after), promising(*seen))
    if at_once:
        edge.admit(promising(*come), now=0)
        assert edge.bound == bounds[-1]
        return
    for time, bound in zip(come, bounds, strict=True):
        edge.admit(promising(time), now=0)
        assert edge.bound == bound


def test_partitions_go_on_from_where_they_were_by_another_rule() -> None:
    parted = TimeContract("external", "ts", 5, partitions=("k",))
    seen = rows(90, 100, k=["b", "a"])
    looser = tuned(parted, replace(parted, disorder=20), seen)
    for time, key, bound in ((100, "b", 85), (130, "a", 85), (120, "b", 100)):
        looser.admit(rows(time, k=[key]), now=0)
        assert looser.bound == bound
    fresh = Ingress(parted)
    fresh.admit(rows(1, 2, 3, k=["a", "a", "a"]), now=0)
    assert looser.disorder.save() == fresh.disorder.save(), "none of them came behind another of its partition"
    tighter = tuned(parted, replace(parted, disorder=0), seen)
    tighter.admit(rows(89, k=["b"]), now=0)
    assert tighter.bound == 90 and tighter.late == 0


def test_a_further_time_goes_on_by_another_disorder() -> None:
    flows = TimeContract("external", "ts", also=(("start", 5),))
    edge = tuned(flows, replace(flows, also=(("start", 20),)), rows(100, start=times(80)))
    edge.admit(rows(110, 111, 130, start=times(74, 75, 99)), now=0)
    assert (edge.late, edge.outlets["start"].bound) == (1, 79)
