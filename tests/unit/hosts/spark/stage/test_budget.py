"""How many rows queues may let go in a micro-batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from millrace.hosts.spark.stage.budget import (
    FIRST_ROWS,
    MOST,
    SLICES,
    BatchBudget,
    RowCost,
    TriggerPace,
    WaitingQueue,
    even_share,
)

MILLISECOND = 1_000
SECOND = 1_000_000


def purse(
    pace: TriggerPace | None = None, *, place: int = 0, buckets: int = 1, turn: int = 0, free: bool = False
) -> BatchBudget:
    return BatchBudget(pace or TriggerPace(SECOND), place, buckets, turn, free=free)


def costing(micros: float, most: int = 10**9) -> RowCost:
    return RowCost(1000, 1000 * micros, most)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 100])
def test_buckets_share_a_budget_of_rows_and_all_of_them_get_a_turn(rows: int) -> None:
    got = [0, 0, 0]
    for turn in range(3):
        allowed = [
            purse(place=place, buckets=3, turn=turn).allowance(WaitingQueue("q", 10**6, RowCost(), rows), ())
            for place in range(3)
        ]
        assert sum(each or 0 for each in allowed) == rows
        got = [one + (each or 0) for one, each in zip(got, allowed, strict=True)]
    assert got == [rows, rows, rows]


def test_queues_of_one_query_share_its_rows() -> None:
    own = purse()
    first, second = (WaitingQueue("q", rows, RowCost(), 30, name=f"queue {rows}") for rows in (100, 10))
    assert own.next([first, second]) is first
    assert own.allowance(first, [first, second]) == 20
    own.spend(first, 20)
    assert own.next([first, second]) is second, "each has one turn"
    assert own.allowance(second, [first, second]) == 10
    own.spend(second, 10)
    assert own.next([first, second]) is None


def test_rows_that_one_query_does_not_let_go_are_not_for_another() -> None:
    own, first, second = purse(), WaitingQueue("q", 5, RowCost(), 30), WaitingQueue("r", 100, RowCost(), 40)
    own.spend(first, 5)
    assert own.allowance(second, []) == 40


def test_a_budget_of_time_becomes_rows_by_what_a_row_has_cost() -> None:
    queue = WaitingQueue("q", 10**6, costing(2 * MILLISECOND), budget_time=100 * MILLISECOND)
    assert purse().allowance(queue, []) == 50


def test_without_a_budget_work_takes_four_fifths_of_the_interval() -> None:
    queue = WaitingQueue("q", 10**6, costing(1 * MILLISECOND))
    assert purse(TriggerPace(500 * MILLISECOND)).allowance(queue, []) == 400


def test_where_micro_batches_are_too_long_queues_take_less_and_then_more_again() -> None:
    pace, share = TriggerPace(SECOND), MOST
    assert pace.kept(share, SECOND) == MOST
    for _ in range(20):
        share = pace.kept(share, round((share + 0.5) * SECOND))
    assert 0.45 <= share <= 0.61, "half a second is Spark's"
    for _ in range(20):
        share = pace.kept(share, 10 * SECOND)
    assert share == 0.2
    for _ in range(20):
        share = pace.kept(share, SECOND // 2)
    assert share == MOST
    assert TriggerPace().kept(0.5, SECOND) == 0.5, "a run that ends by itself has no interval"
    queue = WaitingQueue("q", 10**6, costing(1 * MILLISECOND))
    assert BatchBudget(pace, 0, 1, 0, free=False, share=0.3).allowance(queue, []) == 300


def test_buckets_that_share_a_core_share_the_time() -> None:
    queue = WaitingQueue("q", 10**6, costing(1 * MILLISECOND))
    assert purse(TriggerPace.of(500 * MILLISECOND, cores=2, buckets=8)).allowance(queue, []) == 100
    assert purse(TriggerPace.of(500 * MILLISECOND, cores=8, buckets=2)).allowance(queue, []) == 400


def test_a_row_that_takes_longer_than_the_budget_leaves_all_the_same() -> None:
    assert purse().allowance(WaitingQueue("q", 5, costing(10 * SECOND)), []) == 1


def test_a_run_that_ends_by_itself_has_no_limit_but_a_budget_that_was_asked_for() -> None:
    own = purse(free=True)
    assert own.allowance(WaitingQueue("q", 10**6, costing(SECOND)), []) is None
    assert own.allowance(WaitingQueue("q", 10**6, costing(SECOND), budget_rows=9), []) == 9
    assert own.allowance(WaitingQueue("q", 10**6, costing(SECOND), budget_time=3 * SECOND), []) == 3


def test_the_first_rows_are_few_and_then_at_most_twice_as_many() -> None:
    cost, allowed = RowCost(), []
    for _ in range(4):
        allowed.append(purse().allowance(WaitingQueue("q", 10**9, cost), []))
        cost.learn(allowed[-1] or 0, micros=1.0)
    assert allowed == [FIRST_ROWS, 2 * FIRST_ROWS, 4 * FIRST_ROWS, 8 * FIRST_ROWS]


def test_rows_count_alike_however_many_there_were_at_once() -> None:
    cost = RowCost()
    cost.learn(1000, 1000 * MILLISECOND)
    cost.learn(1, 500 * MILLISECOND)
    assert cost.row == pytest.approx(1000 * MILLISECOND * 1.2 / 701, rel=0.01)
    cost.learn(0, 500 * MILLISECOND)
    assert cost.row == pytest.approx(1000 * MILLISECOND * 1.2 / 701, rel=0.01)


def test_what_costs_more_than_before_is_noticed() -> None:
    cost = RowCost()
    cost.learn(1000, 1000.0)
    for _ in range(10):
        cost.learn(1000, 1000.0 * MILLISECOND)
    assert cost.row == pytest.approx(MILLISECOND, rel=0.05)


def let_go(own: BatchBudget, *queues: WaitingQueue) -> dict[str, int]:
    """How many rows leave each queue, by name, if none becomes less urgent."""
    held = {each.name: each.rows for each in queues}
    while (waiting := own.next(due := [each for each in queues if held[each.name]])) is not None:
        rows = min(held[waiting.name], own.allowance(waiting, due) or 0)
        held[waiting.name] -= rows
        own.spend(waiting, rows)
    return {each.name: each.rows - held[each.name] for each in queues}


def test_the_most_urgent_queue_lets_go_and_what_it_does_not_need_is_for_others() -> None:
    slow = WaitingQueue("q", 10**6, costing(1000), name="slow", urgency=1.0)
    small = WaitingQueue("r", 100, costing(1000), name="small", urgency=2.0)
    assert let_go(purse(), slow, small) == {"slow": 700, "small": 100}
    assert let_go(purse(), slow, replace(small, rows=10**6)) == {"slow": 0, "small": 800}


def test_time_that_queues_share_is_cut_into_slices() -> None:
    own, first = purse(), WaitingQueue("q", 10**6, costing(1000), name="a", urgency=1.0)
    assert own.allowance(first, [first, replace(first, name="b")]) == 800 // SLICES
    assert own.allowance(first, [first]) == 800, "alone it has all of it"


def test_a_queue_that_gains_nothing_by_its_next_row_has_one_slice() -> None:
    urgent = WaitingQueue("q", 10**6, costing(1000), name="urgent", urgency=1.0)
    stuck = replace(urgent, name="stuck", urgency=0.0)
    assert let_go(purse(), urgent, stuck) == {"urgent": 750, "stuck": 50}


def test_a_row_that_costs_more_than_is_left_waits_for_its_turn() -> None:
    cheap = WaitingQueue("q", 10**6, costing(MILLISECOND), name="cheap", urgency=2.0)
    dear = WaitingQueue("r", 10, costing(10 * SECOND), name="dear", urgency=1.0)
    assert let_go(purse(), cheap, dear) == {"cheap": 800, "dear": 0}
    assert let_go(purse(), cheap, replace(dear, urgency=3.0)) == {"cheap": 0, "dear": 1}


def test_a_query_with_a_budget_of_its_own_takes_no_time_of_others() -> None:
    with_budget = WaitingQueue("q", 10**6, costing(1000), budget_time=50 * MILLISECOND, name="own", urgency=1.0)
    other = WaitingQueue("r", 10**6, costing(1000), name="other", urgency=2.0)
    assert let_go(purse(), with_budget, other) == {"own": 50, "other": 800}


@pytest.mark.parametrize(
    ("amount", "others", "share"),
    [(90, [], 90), (90, [90], 45), (90, [10], 80), (90, [10, 100], 40), (90, [100, 10], 40), (0, [5], 0), (-5, [], 0)],
)
def test_an_even_share(amount: float, others: list[float], share: float) -> None:
    assert even_share(amount, others) == share
