"""The order-agnostic join as an operator: what it keeps (004 section 5.3), promises and waits for."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, TIME, Batch, Element, JointPunctuation, Punctuation
from millrace.kernel.joins.any_order.join import Join
from millrace.kernel.joins.sides import JoinTime, Side
from millrace.kernel.relational.merge import Merge
from tests.unit.kernel.check_by_input import Driven, last_bound

MINUTE = 60_000_000
PER_MINUTE = 60


def rows(port: int, times: Sequence[int], keys: Sequence[int] | None = None) -> Batch:
    """Rows, by default with the second of the minute as their key."""
    keys = keys or [time // (MINUTE // PER_MINUTE) % PER_MINUTE for time in times]
    columns = {f"k{port}": pa.array(keys), f"ts{port}": pa.array(times), TIME: pa.array(times)}
    return Batch(pa.record_batch(columns))


def join(first: Side, second: Side, time: JoinTime = "max", *, joint: bool = False) -> Driven:
    schemas = [pa.schema([(f"k{port}", pa.int64()), (f"ts{port}", pa.int64())]) for port in (0, 1)]
    return Driven(lambda: Join(schemas, (first, second), None, time, joint=joint))


def minute_of(minute: int) -> list[int]:
    """The times of the rows of a minute, from its beginning on."""
    return [minute * MINUTE + step * MINUTE // PER_MINUTE for step in range(PER_MINUTE)]


def kept(driven: Driven, port: int) -> float:
    """How many minutes of an input a join keeps."""
    assert isinstance(driven.operator, Join)
    return len(driven.operator.core.stores[port]) / PER_MINUTE


# 004 Fig. 5: S0.ts - 2 <= S1.ts <= S0.ts + 2, in minutes; rows of S0 are up to five minutes late, S1 is in order.


def test_figure_5a_a_join_in_order_keeps_seven_minutes_of_s1_and_a_sort_five_of_s0() -> None:
    driven, sort = join(Side(("k0",), 2 * MINUTE), Side(("k1",), 2 * MINUTE)), Merge()
    for minute in range(30):
        on_time, late = minute_of(minute)[:-1], minute_of(minute - 5)[-1:]
        driven.step(1, rows(1, minute_of(minute)))
        driven.step(1, Punctuation((minute + 1) * MINUTE))
        in_order = [*sort.on_batch(0, rows(0, on_time + late))]
        in_order += sort.on_punctuation(Punctuation((minute + 1 - 5) * MINUTE))
        for element in in_order:
            driven.step(0, element)
    assert sort.held / PER_MINUTE == pytest.approx(5, abs=0.1)
    assert kept(driven, 0) == 0
    assert kept(driven, 1) == pytest.approx(7, abs=0.1)


def test_figure_5b_a_join_in_any_order_keeps_seven_minutes_of_s1_and_two_of_s0() -> None:
    driven = join(Side(("k0",), 2 * MINUTE), Side(("k1",), 2 * MINUTE))
    for minute in range(30):
        on_time, late = minute_of(minute)[:-1], minute_of(minute - 5)[-1:]
        driven.step(1, rows(1, minute_of(minute)))
        driven.step(1, Punctuation((minute + 1) * MINUTE))
        driven.step(0, rows(0, on_time + late))
        driven.step(0, Punctuation((minute + 1 - 5) * MINUTE))
    assert kept(driven, 0) == pytest.approx(2, abs=0.1)
    assert kept(driven, 1) == pytest.approx(7, abs=0.1)


def test_figure_5_both_evaluations_give_the_same_rows() -> None:
    in_order, any_order, sort = (
        join(Side(("k0",), 2 * MINUTE), Side(("k1",), 2 * MINUTE)),
        join(Side(("k0",), 2 * MINUTE), Side(("k1",), 2 * MINUTE)),
        Merge(),
    )
    for minute in range(12):
        fed = rows(0, minute_of(minute)[:-1] + minute_of(minute - 5)[-1:])
        for driven in (in_order, any_order):
            driven.step(1, rows(1, minute_of(minute)))
            driven.step(1, Punctuation((minute + 1) * MINUTE))
        any_order.step(0, fed)
        for element in [*sort.on_batch(0, fed), *sort.on_punctuation(Punctuation((minute + 1 - 5) * MINUTE))]:
            in_order.step(0, element)
    for element in sort.on_punctuation(Punctuation(END_OF_TIME)):
        in_order.step(0, element)
    assert pairs(in_order.found) == pairs(any_order.found)


def pairs(elements: Sequence[Element]) -> list[tuple[int, int]]:
    found = [row for each in elements if isinstance(each, Batch) for row in each.rows.to_pylist()]
    return sorted((row["ts0"], row["ts1"]) for row in found)


# 004 Fig. 6: S0.ts - 3 <= S1.ts <= S0.ts + 2, both inputs have come to minute 6, results ordered on S0.ts.


def test_figure_6_an_ordered_output_would_hold_the_results_of_minutes_4_to_6_of_s0() -> None:
    driven, sort = join(Side(("k0",), 2 * MINUTE), Side(("k1",), 3 * MINUTE), 0), Merge()
    left: list[Element] = []
    for minute in range(6):
        for port in (0, 1):
            made = driven.step(port, rows(port, minute_of(minute)))
            made += driven.step(port, Punctuation((minute + 1) * MINUTE))
            for element in made:
                left += sort.on_batch(0, element) if isinstance(element, Batch) else sort.on_punctuation(element)
    assert last_bound(driven.found) == 4 * MINUTE
    out = pairs(left)
    held = sorted(set(pairs(driven.found)) - set(out))
    assert out and max(first for first, _ in out) <= 4 * MINUTE
    assert held and min(first for first, _ in held) > 4 * MINUTE and len(held) == sort.held


# Bounds (papers: the bounds out of a join)


@pytest.mark.parametrize(("time", "bound"), [("max", 100), (0, 90), (1, 85), ("min", 85)])
def test_bound_of_results_follows_from_both_bounds_and_what_is_kept(time: JoinTime, bound: int) -> None:
    driven = join(Side(("k0",), 20), Side(("k1",), 30), time)
    driven.step(0, rows(0, [40, 90, 110]))
    driven.step(1, rows(1, [60, 85, 130]))
    driven.step(0, Punctuation(100))
    driven.step(1, Punctuation(110))
    assert last_bound(driven.found) == bound


def test_bound_passes_rows_that_were_let_go_in_the_middle_of_a_run() -> None:
    driven = join(Side(("k0",), 20), Side(("k1",), 0), 0)
    driven.step(0, rows(0, list(range(2000))))
    driven.operator.changes()
    driven.step(0, Punctuation(5000))
    driven.step(1, Punctuation(1000))
    assert last_bound(driven.found) == 980
    assert driven.operator.held == 1020


def test_pairs_of_times_are_promised_when_either_bound_has_advanced() -> None:
    driven = join(Side(("k0",), 20), Side(("k1",), 30), joint=True)
    assert not any(isinstance(each, JointPunctuation) for each in driven.step(0, Punctuation(10)))
    assert JointPunctuation((10, 5)) in driven.step(1, Punctuation(5))
    assert JointPunctuation((10, 7)) in driven.step(1, Punctuation(7))


def test_ets_leaves_as_an_ets() -> None:
    driven = join(Side(("k0",), 20), Side(("k1",), 30))
    driven.step(0, Punctuation(10))
    assert list(driven.operator.on_bound(1, Punctuation(8, ets=True))) == [Punctuation(8, ets=True)]


def test_bound_that_did_not_advance_is_not_sent_again() -> None:
    driven = join(Side(("k0",), 20), Side(("k1",), 30))
    driven.step(0, Punctuation(10))
    assert driven.step(1, Punctuation(15)) == [Punctuation(10)]
    assert driven.step(1, Punctuation(20)) == []


# Outer rows


def outer_join() -> Driven:
    return join(Side(("k0",), 20, outer=True), Side(("k1",), 30, outer=True))


def test_unmatched_row_waits_for_the_bound_that_proves_it_and_is_given_once() -> None:
    driven = outer_join()
    driven.step(0, rows(0, [100], [1]))
    assert driven.operator.wants() == [{1: 121}]
    driven.step(0, Punctuation(150))
    assert driven.step(1, Punctuation(120)) == [Punctuation(100)]
    released, bound = driven.step(1, Punctuation(121))
    assert isinstance(released, Batch)
    assert released.rows.to_pylist() == [{"k0": 1, "ts0": 100, "k1": None, "ts1": None, TIME: 100}]
    assert bound == Punctuation(121)
    assert driven.operator.wants() == []
    assert driven.step(1, Punctuation(END_OF_TIME)) == [Punctuation(150)]


def test_matched_row_waits_for_nothing() -> None:
    driven = outer_join()
    driven.step(0, rows(0, [100], [1]))
    driven.step(1, rows(1, [110], [1]))
    assert driven.operator.wants() == []
    assert pairs([*driven.step(0, Punctuation(500)), *driven.step(1, Punctuation(500))]) == []


def test_row_that_can_match_nothing_is_given_at_once() -> None:
    driven = outer_join()
    driven.step(1, Punctuation(200))
    (released,) = driven.step(0, rows(0, [100], [1]))
    assert isinstance(released, Batch) and released.rows.to_pylist()[0]["k1"] is None
    assert driven.operator.held == 0


def test_each_side_waits_for_the_other() -> None:
    driven = outer_join()
    driven.step(0, rows(0, [100, 90], [1, 3]))
    driven.step(1, rows(1, [105], [2]))
    assert driven.operator.wants() == [{1: 111}, {0: 136}]


def test_inner_join_waits_for_nothing_and_holds_nothing_back() -> None:
    driven = join(Side(("k0",), 20), Side(("k1",), 30))
    driven.step(0, rows(0, [100], [1]))
    assert not driven.operator.holds and driven.operator.wants() == []
    assert outer_join().operator.holds


# What bounds a promise needs


@pytest.mark.parametrize(("time", "needed"), [("max", (95, 95)), (0, (95, 111)), (1, (None, 95)), ("min", (95, 111))])
def test_promise_needs_bounds_past_the_rows_that_hold_it_back(time: JoinTime, needed: tuple[int | None, int]) -> None:
    driven = join(Side(("k0",), 20), Side(("k1",), 30), time)
    driven.step(0, rows(0, [90, 100]))
    driven.step(1, rows(1, [96]))
    assert (driven.operator.required(95, 0), driven.operator.required(95, 1)) == needed
    assert driven.operator.required(END_OF_TIME, 0) == END_OF_TIME


def test_promise_of_an_outer_join_needs_its_unmatched_rows_to_be_proven() -> None:
    driven = outer_join()
    driven.step(0, rows(0, [90], [1]))
    assert driven.operator.required(95, 1) == 111
    driven.step(1, rows(1, [100], [1]))
    assert driven.operator.required(95, 1) == 95


def test_window_without_end_is_let_go_at_the_end_of_the_stream() -> None:
    driven = join(Side(("k0",), 2**62, outer=True), Side(("k1",), 2**62))
    driven.step(0, rows(0, [2**62, 2**62 + 1]))
    driven.step(0, Punctuation(END_OF_TIME))
    released, bound = driven.step(1, Punctuation(END_OF_TIME))
    assert isinstance(released, Batch) and len(released) == 2
    assert bound == Punctuation(END_OF_TIME)
    assert driven.operator.held == 0 and driven.operator.wants() == []


def test_memory_is_told() -> None:
    driven = join(Side(("k0",), 20), Side(("k1",), 30))
    assert driven.operator.state_bytes == 0
    driven.step(0, rows(0, list(range(2000))))
    assert driven.operator.state_bytes >= 2000 * 24
    assert driven.told.get(0, NO_BOUND) == NO_BOUND


def test_rows_without_a_match_leave_one_for_each_row_that_comes() -> None:
    """A hundred rows of S0 match nothing: the bound of S1 that shows it lets all of them leave at once, or none yet."""
    sides = Side(("k0",), MINUTE, outer=True), Side(("k1",), MINUTE)
    schemas = [pa.schema([(f"k{port}", pa.int64()), (f"ts{port}", pa.int64())]) for port in (0, 1)]
    bursts = {}
    for delay in (0, 5 * MINUTE):
        driven = Driven(lambda delay=delay: Join(schemas, sides, delay=delay))  # type: ignore[misc]
        driven.step(0, rows(0, list(range(100)), [1] * 100))
        driven.step(1, Punctuation(MINUTE))
        driven.step(0, Punctuation(3 * MINUTE))
        left = [len(batches(driven.step(1, Punctuation(2 * MINUTE))))]
        left += [len(batches(driven.step(1, rows(1, [2 * MINUTE + each], [2])))) for each in range(40)]
        left.append(len(batches(driven.step(1, Punctuation(6 * MINUTE + 100)))))
        assert sum(left) == 100
        assert last_bound(driven.found) == 3 * MINUTE
        bursts[delay] = left
    assert bursts[0] == [100, *[0] * 40, 0]
    assert bursts[5 * MINUTE] == [0, *[1] * 40, 60]


def test_a_bound_that_goes_far_at_once_makes_rows_leave_whose_time_is_over_and_no_others() -> None:
    sides = Side(("k0",), MINUTE, outer=True), Side(("k1",), MINUTE)
    schemas = [pa.schema([(f"k{port}", pa.int64()), (f"ts{port}", pa.int64())]) for port in (0, 1)]
    driven = Driven(lambda: Join(schemas, sides, delay=5 * MINUTE))
    driven.step(0, rows(0, [each * MINUTE for each in range(20)], [1] * 20))
    # What came up to 8 could have had a match up to 9, and 14 is less than five minutes later for what came from 8 on.
    assert len(batches(driven.step(1, Punctuation(14 * MINUTE)))) == 8
    assert [batches(driven.step(1, rows(1, [15 * MINUTE], [2]))) for _ in range(6)] == [
        [minute * MINUTE] for minute in range(8, 13)
    ] + [[]]
    assert batches(driven.step(1, Punctuation(END_OF_TIME))) == [minute * MINUTE for minute in range(13, 20)]


def batches(elements: Sequence[Element]) -> list[int]:
    return [time for each in elements if isinstance(each, Batch) for time in each.times.tolist()]
