"""The switch between append and update behaviour, by load (002 section 8)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.elements import Batch
from millrace.kernel.updates.load import HIGH, LOW, MOST, PERIOD, Load, Switch
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.kernel.updates.update_queue import UpdateQueue
from tests.reference_updates import Row
from tests.unit.kernel.update_queues import Server, batch_of, check_counts, drained, queue_of, restored

SECOND = 1_000_000
COST = 10_000


def at_rates(rates: Sequence[float], seconds: int, keys: int = 50) -> list[Row]:
    """Rows of random keys, with so many times the load that a server can take, one after another."""
    random, rows, now = np.random.default_rng(5), list[Row](), 0
    for rate in rates:
        end = now + seconds * SECOND
        while now < end:
            now += max(1, int(random.exponential(COST / rate)))
            rows.append(Row(now, now, f"k{random.integers(keys)}", len(rows)))
    return rows


def switched(rows: Sequence[Row]) -> tuple[Server, list[tuple[int, bool]]]:
    """A run with a queue that switches by itself, and when it did: whether it appends from then on."""
    seen: list[tuple[int, bool]] = []

    def between(served: int, queue: UpdateQueue) -> UpdateQueue:
        appends = queue._switch.appends
        if not seen or seen[-1][1] != appends:
            seen.append((queue.now // SECOND, appends))
        return queue

    return Server(queue_of("auto"), COST, between=between).run(rows), seen


def test_it_appends_while_it_keeps_up() -> None:
    rows = at_rates([0.5], 30)
    server, seen = switched(rows)
    assert [appends for _, appends in seen] == [True]
    assert server.values() == [row.value for row in rows], "every row leaves"


@pytest.mark.slow
def test_it_updates_under_load_and_appends_again_when_that_is_over() -> None:
    rows = at_rates([0.5, 4.0, 0.4], 20)
    server, seen = switched(rows)
    assert [appends for _, appends in seen] == [True, False, True]
    assert 20 <= seen[1][0] <= 23 and 44 <= seen[2][0] <= 50
    metrics = server.queue.queue_metrics(server.queue.now)
    assert metrics.switches == 2 and metrics.superseded > 1000
    check_counts(server.queue)
    last = {row.key: row.value for row in rows}
    assert {each.row.key: each.row.value for each in server.deliveries} == last


@pytest.mark.slow
def test_it_does_not_oscillate_under_a_load_that_rises_and_falls() -> None:
    rows = at_rates([0.4, 1.5] * 10, 8)
    _, seen = switched(rows)
    assert len(seen) - 1 <= 6, "far fewer switches than the 20 changes of the load"


@pytest.mark.slow
def test_a_load_just_below_and_above_one_does_not_make_it_switch_back() -> None:
    rows = at_rates([0.9, 1.1] * 5, 5)
    _, seen = switched(rows)
    assert len(seen) <= 2


def test_a_switch_turns_at_the_marks() -> None:
    switch = Switch()
    assert not switch.look(0, HIGH // COST, COST, 5.0)
    assert switch.look(0, HIGH // COST + 1, COST, 5.0)
    assert not switch.look(SECOND, 0, COST, LOW - 0.01)
    assert not switch.look(3 * SECOND, 0, COST, LOW + 0.01), "the calm begins anew"
    assert not switch.look(4 * SECOND, 0, COST, 0.1)
    assert not switch.look(9 * SECOND, 1, COST, 0.1), "something waits"
    assert switch.look(9 * SECOND, 0, COST, 0.1)
    assert switch.look(9 * SECOND, MOST + 1, None, 0.1), "too many rows, whatever they cost"
    assert switch.switches == 3


def test_the_load_is_what_comes_times_what_it_costs() -> None:
    load = Load()
    load.tick(0, None, 0)
    for second in range(1, 20):
        load.come(300)
        load.tick(second * PERIOD, float(COST), 0)
    assert load.load == 3.0 and round(load.keep, 3) == 0.317
    load.tick(1000 * PERIOD, float(COST), 0)
    assert load.load < 0.1 and load.keep == 1.0


@pytest.mark.parametrize(("waiting", "kept"), [(0, 0.475), (100, 0.425), (400, 0.275), (2000, 0.0)])
def test_of_twice_as_many_rows_as_can_be_worked_off_fewer_are_kept_the_more_wait(waiting: int, kept: float) -> None:
    load = Load()
    load.tick(0, None, 0)
    load.come(200)
    load.tick(PERIOD, float(COST), waiting)
    assert load.keep == pytest.approx(kept)


def test_with_a_budget_a_row_takes_its_part_of_a_turn() -> None:
    load = Load()
    for turn in range(10):
        load.leave(turn * 160_000, 3, 100, spent=True)
    assert load.each(10.0, 3, None) == pytest.approx(160_000 / 3)
    assert load.each(10.0, None, 20_000) == pytest.approx(80.0), "20 ms of work in each 160"
    assert load.each(10.0, None, None) == 10.0
    assert load.each(10.0, None, 400_000) == 10.0, "the budget is more than there is time"
    load.leave(10 * 160_000, 20, 0, spent=False)
    assert load.each(10.0, 3, None) == 8_000.0, "it has run empty: no row takes longer than that"
    load.leave(3600 * SECOND, 1, 0, spent=False)
    assert load.each(10.0, 3, None) == 8_000.0, "an idle hour says nothing"


def test_auto_with_a_budget_updates_when_that_would_take_long() -> None:
    rows = [Row(0, time, f"k{time % 12}", time) for time in range(240)]
    queue = UpdateQueue(["k"], QueueSettings("auto", budget_rows=3))
    queue.learn_cost(10.0)
    queue.on_time(0)
    list(queue.on_batch(0, batch_of(rows)))
    turns = 0
    while queue.held:
        queue.on_time(turns * 160_000)
        queue.allowance = 3
        assert sum(len(each) for each in queue.on_more(None) if isinstance(each, Batch)) <= 3
        queue.on_rest()
        turns += 1
    metrics = queue.queue_metrics(turns * 160_000)
    assert (metrics.switches, turns) == (1, 6), "two turns to learn how long one takes, four for twelve keys"


def test_from_append_to_update_the_newest_of_each_key_stays_where_its_first_row_stood() -> None:
    rows = [Row(at, time, key, at) for at, (time, key) in enumerate([(0, "a"), (1, "b"), (2, "a"), (1, "a"), (3, "c")])]
    queue = queue_of("append")
    list(queue.on_batch(0, batch_of(rows)))
    queue.configure(QueueSettings("inplace"))
    check_counts(queue)
    assert queue.queue_metrics(4).superseded == 2
    assert [row["v"] for row in drained(queue)] == [2, 1, 4]


def test_from_update_to_append_the_order_stays() -> None:
    rows = [Row(at, at, key, at) for at, key in enumerate("abac")]
    queue = queue_of("inplace")
    list(queue.on_batch(0, batch_of(rows)))
    queue.configure(QueueSettings("append"))
    list(queue.on_batch(0, batch_of([Row(9, 9, "b", 9)])))
    assert [row["v"] for row in drained(queue)] == [2, 1, 3, 9]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("count", [1, 10])
def test_from_append_to_auto_no_key_goes_back_in_time(restarts: bool, count: int) -> None:
    times = [(10, "a"), (5, "a"), (3, "b"), (2, "b"), (12, "a"), (4, "b"), (1, "b")]
    queue, segments = queue_of("append"), dict[int, pa.Table]()
    list(queue.on_batch(0, batch_of([Row(at, time, key, at) for at, (time, key) in enumerate(times)])))
    list(queue.on_more(1))
    queue.on_rest()
    # What was saved under the old numbers is out of date, too.
    queue = restored(queue, segments)
    if restarts:
        queue = restored(queue, segments, QueueSettings("auto"))
    else:
        queue.configure(QueueSettings("auto"))
    check_counts(queue)
    assert (queue.held, queue.queue_metrics(9).superseded) == (3, 3)
    queue = restored(queue, segments)
    assert queue.staleness(9).column("queue_now").to_pylist() == [5, 7], "since 12 of a came at 4, and b at 2"
    queue.allowance, found = None, list[int]()
    while queue.held:
        for batch in queue.on_more(count):
            found += [row["v"] for row in batch.rows.to_pylist()]  # type: ignore[union-attr]
        queue.on_time(20)
        queue.on_rest()
    assert found == [2, 4, 5]
    assert queue.staleness(30).column("application_now").to_pylist() == [0, 0]


@pytest.mark.parametrize("then", ["inplace", "update_fifo", "linecutting", "linecutting_as_printed"])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_shed_makes_keys_stale_under_an_update_policy_too(then: str, count: int, restarts: bool) -> None:
    queue = queue_of("append_shed", keep=1.0)
    list(queue.on_batch(0, batch_of([Row(0, at, key, at) for at, key in enumerate("abc")])))
    queue.configure(QueueSettings("append_shed", keep=1e-9))
    list(queue.on_batch(0, batch_of([Row(5, 5, "a", 5), Row(6, 6, "b", 6)])))
    queue.configure(QueueSettings(then))
    queue = restored(queue, {}) if restarts else queue
    list(queue.on_batch(0, batch_of([Row(7, 7, "b", 7)])))
    queue.on_time(8)
    while queue.held:
        list(queue.on_more(count))
        queue.on_rest()
    assert queue.queue_metrics(10).shed == 2
    assert queue.staleness(10).column("application_now").to_pylist() == [5, 0, 0], "a newer row than a's came at 5"
    list(queue.on_batch(0, batch_of([Row(11, 11, "a", 11)])))
    assert queue.staleness(13).column("queue_now").to_pylist() == [8, 0, 0]
    list(queue.on_more(count))
    queue.on_rest()
    assert queue.staleness(13).column("application_now").to_pylist() == [0, 0, 0]


def test_what_was_shed_is_remembered_from_append_to_update_and_back() -> None:
    queue = queue_of("append_shed", keep=1.0)
    list(queue.on_batch(0, batch_of([Row(0, 0, "a", 0)])))
    queue.configure(QueueSettings("append_shed", keep=1e-9))
    list(queue.on_batch(0, batch_of([Row(5, 5, "a", 5)])))
    queue.configure(QueueSettings("inplace"))
    queue.configure(QueueSettings("append"))
    list(queue.on_more(1))
    queue.on_rest()
    assert queue.staleness(10).column("application_now").to_pylist() == [5]
