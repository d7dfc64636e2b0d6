"""A queue of updates: the traces of 002, who is accepted, bounds, memory, shedding, saving, and several queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from millrace.errors import RequestError
from millrace.kernel.columns.expressions import Column
from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Punctuation
from millrace.kernel.state import Changes
from millrace.kernel.stores.row_blocks import RowBlocks
from millrace.kernel.updates.queue import Queue
from millrace.kernel.updates.queue_settings import POLICIES, Access, QueueSettings
from millrace.kernel.updates.update_queue import UpdateQueue
from tests.reference_updates import Row
from tests.unit.kernel.update_queues import Server, batch_of, check_counts, drained, queue_of, restored

SECOND = 1_000_000


def rows_of(*rows: tuple[int, int, str, int]) -> list[Row]:
    return [Row(arrival, time, key, value) for arrival, time, key, value in rows]


def entered(policy: str, rows: Sequence[Row], **options: object) -> UpdateQueue:
    queue = queue_of(policy, **options)
    queue.on_time(max(row.arrival for row in rows))
    list(queue.on_batch(0, batch_of(rows)))
    return queue


def values(queue: UpdateQueue) -> list[int]:
    return [row["v"] for row in drained(queue)]


# The traces of the paper


def test_staleness_drops_as_in_figure_2() -> None:
    """One key, an update every 2 ticks, 3 ticks a row: each delivery brings staleness down to the next arrival."""
    queue = queue_of()
    seen: list[tuple[int, float, float]] = []
    arrivals, now, at = list(range(0, 13, 2)), 0, 0

    def application(moment: int) -> float:
        return float(queue.staleness(moment).column("application_now")[0].as_py())

    while now < 12:
        while at < len(arrivals) and arrivals[at] <= now:
            queue.on_time(now)
            list(queue.on_batch(0, batch_of([Row(arrivals[at], arrivals[at], "a", at)])))
            at += 1
        list(queue.on_more(1))
        now += 3
        # What comes while a row is worked on enters before it is delivered, or at that moment.
        while at < len(arrivals) and arrivals[at] <= now:
            queue.on_time(now)
            list(queue.on_batch(0, batch_of([Row(arrivals[at], arrivals[at], "a", at)])))
            at += 1
        queue.on_time(now)
        before = application(now)
        queue.on_rest()
        seen.append((now, before, application(now)))
    # a is stale from 0, and b came at 2; then c at 4, e at 8 (d took the place of c), f at 10.
    assert seen == [(3, 3, 1), (6, 4, 2), (9, 5, 1), (12, 4, 2)]


FIGURE_6 = rows_of((0, 0, "IBM", 1), (1, 1, "MSFT", 2), (2, 2, "ORCL", 3), (3, 3, "IBM", 4))


def test_the_queues_of_figure_6() -> None:
    assert values(entered("append", FIGURE_6)) == [1, 2, 3, 4]
    assert values(entered("update_fifo", FIGURE_6)) == [2, 3, 4], "IBM goes to the end"
    assert values(entered("inplace", FIGURE_6)) == [4, 2, 3], "IBM keeps its place"


@pytest.mark.parametrize("load", [2, 5, 20])
def test_the_mean_of_one_key_is_as_figure_5_has_it(load: int) -> None:
    """An update a tick and `load` ticks a row: a queue staleness of (load - 1)² / (2 load), the application's about
    `load` above it."""
    rows = [Row(1000 * tick, tick, "a", tick) for tick in range(load * 50)]
    server = Server(queue_of(), 1000 * load).run(rows, rows[-1].arrival)
    metrics = server.queue.queue_metrics(rows[-1].arrival)
    assert metrics.queue_mean / 1000 == pytest.approx((load - 1) ** 2 / (2 * load), rel=0.1, abs=0.1)
    assert (metrics.application_mean - metrics.queue_mean) / 1000 == pytest.approx(load, rel=0.15)


# Who is accepted


def test_a_key_never_goes_back_in_time() -> None:
    queue = entered("inplace", rows_of((0, 10, "a", 1), (1, 9, "a", 2), (2, 10, "a", 3), (3, 8, "a", 4)))
    assert queue.queue_metrics(3).superseded == 3
    assert values(queue) == [3], "of equal times by one input the later one stays"
    queue = entered("inplace", rows_of((0, 10, "a", 1)))
    list(queue.on_more(1))
    list(queue.on_batch(0, batch_of(rows_of((1, 9, "a", 2)))))
    assert queue.held == 0 and queue.queue_metrics(1).superseded == 1


@pytest.mark.parametrize(("truth", "expected"), [(None, 1), (0, 1), (1, 2)])
def test_of_equal_times_by_two_inputs_the_one_at_hand_stays_or_the_truth(truth: int | None, expected: int) -> None:
    queue = queue_of(inputs=2, truth=truth)
    list(queue.on_batch(0, batch_of([Row(0, 9, "IBM", 1, 0)])))
    list(queue.on_batch(1, batch_of([Row(0, 9, "IBM", 2, 1)])))
    by_input = queue.queue_metrics(0).by_input
    assert [each.superseded for each in by_input] == ([0, 1] if expected == 1 else [1, 0])
    check_counts(queue)
    assert values(queue) == [expected]


def test_without_a_key_each_row_is_an_update_of_the_one_before() -> None:
    queue = UpdateQueue([], QueueSettings())
    list(queue.on_batch(0, batch_of(rows_of((0, 0, "a", 1), (1, 1, "b", 2)))))
    assert values(queue) == [2]
    assert queue.staleness(5).column_names[0] == "waiting"


def test_keys_that_are_null_or_of_several_columns_are_keys() -> None:
    queue = UpdateQueue(["k", "v"], QueueSettings())
    rows = [Row(0, 0, None, 1), Row(1, 1, None, 1), Row(2, 2, None, None), Row(3, 3, "a", 1)]
    list(queue.on_batch(0, batch_of(rows)))
    assert queue.held == 3 and queue.staleness(9).column_names[:2] == ["k", "v"]


# Letting go


def test_an_allowance_is_kept_until_the_input_ends() -> None:
    queue = entered("inplace", [Row(0, at, f"k{at}", at) for at in range(10)])
    queue.allowance = 3
    assert [len(each) for each in queue.on_more(None) if isinstance(each, Batch)] == [3]
    queue.on_rest()
    assert (queue.allowance, queue.due, queue.unfinished) == (0, True, False)
    list(queue.on_punctuation(Punctuation(END_OF_TIME)))
    assert values(queue) == [3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(("policy", "by_key"), [("append", False), ("inplace", True), ("auto", False)])
def test_a_queue_says_whether_keys_wait_or_rows(policy: str, by_key: bool) -> None:
    assert entered(policy, [Row(0, at, "k", at) for at in range(3)]).by_key == by_key


@pytest.mark.parametrize("policy", ["append", "inplace", "update_fifo"])
def test_bounds_wait_for_the_rows_that_wait(policy: str) -> None:
    queue = entered(policy, [Row(0, 10 + at, f"k{at}", at) for at in range(8)])
    assert list(queue.on_punctuation(Punctuation(100))) == [Punctuation(10)]
    bound = 10
    while queue.held:
        batch, *bounds = queue.on_more(1)
        assert isinstance(batch, Batch) and batch.until is None, "a bound that rides on rows is not sent"
        assert int(batch.times.min()) >= bound
        for each in bounds:
            assert isinstance(each, Punctuation) and each.until > bound
            bound = each.until
    assert bound == 100


def test_what_leaves_at_once_is_worth_a_moment_of_work() -> None:
    queue = entered("inplace", [Row(0, at, f"k{at}", at) for at in range(1000)])
    queue.learn_cost(1000.0)
    assert [len(each) for each in queue.on_more(None) if isinstance(each, Batch)] == [10]


def turns(queue: Queue, cost: int, many: int) -> list[int]:
    """How many rows leave in each of so many turns, if nobody says how many, and a row takes so long."""
    found, now = list[int](), queue.now
    for _ in range(many):
        queue.on_time(now)
        queue.allowance = queue.budget
        found.append(sum(len(each) for each in queue.on_more(None) if isinstance(each, Batch)))
        now += found[-1] * cost
        queue.on_time(now)
        queue.on_rest()
    return found


@pytest.mark.parametrize(
    ("cost", "options", "expected"),
    [
        (100_000, {}, [1] * 9),
        (1900, {}, [1, 2, 4, 5, 5, 5, 5, 5, 5]),
        (10, {}, [1, 2, 4, 8, 16, 32, 64, 128, 256]),
        (90_000, {"budget_time": 500_000}, [1, 2, 4, 5, 5, 5, 5, 5, 5]),
        (100_000, {"budget_rows": 7}, [7] * 9),
        (0, {}, [1, 1999, 0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_nobody_knows_what_the_first_rows_cost_so_there_are_few(
    cost: int, options: dict[str, Any], expected: list[int]
) -> None:
    rows = [Row(0, at, f"k{at}", at) for at in range(2000)]
    queue = entered("inplace", rows, **options)
    queue.careful = True
    assert turns(queue, cost, 9) == expected
    # In a time that the kernel is told nobody waits.
    assert turns(entered("inplace", rows, **options), cost, 1) == [options.get("budget_rows", 64)]


def test_what_a_row_costs_is_measured_from_letting_go_to_rest() -> None:
    queue = entered("inplace", [Row(0, at, f"k{at}", at) for at in range(10)])
    assert queue.row_cost is None
    queue.on_time(100)
    list(queue.on_more(4))
    queue.on_time(140)
    queue.on_rest()
    assert queue.row_cost == 10.0


# Memory


def test_memory_is_released_when_rows_leave_and_naive_memory_stays_with_its_keys() -> None:
    rows = [Row(at, at, f"k{at % 100}", at) for at in range(300)]
    released, naive = entered("inplace", rows), entered("inplace", rows, memory="naive")
    for queue in (released, naive):
        list(queue.on_more(60))
        queue.on_rest()
    metrics = [queue.queue_metrics(300) for queue in (released, naive)]
    assert [(each.used, each.allocated) for each in metrics] == [(40, 40), (40, 100)]
    assert values(naive) == values(released)
    again = batch_of([Row(300, 300, "k0", 300), Row(301, 301, "k0", 301)])
    for queue, allocated in ((released, 1), (naive, 100)):
        list(queue.on_batch(0, again))
        assert queue.queue_metrics(301).allocated == allocated, "the key's new row takes the place of its old one"
        list(queue.on_batch(0, batch_of([Row(302, 302, "k0", 302)])))
        assert queue.queue_metrics(302).allocated == allocated
        assert values(queue) == [302]


def test_naive_memory_is_memory_in_bytes() -> None:
    """20,000 keys whose rows have left: of what is kept for a key for ever nothing is a row, but for naive memory."""
    rows, size = [Row(0, 0, f"k{at}", at) for at in range(20_000)], {}
    for memory in ("released", "naive"):
        queue = UpdateQueue(["k"], QueueSettings(memory=memory))
        wide = batch_of(rows)
        text = pa.array(["x" * 200] * len(rows))
        list(queue.on_batch(0, Batch(wide.rows.append_column("text", text))))
        while queue.held:
            list(queue.on_more(4096))
        queue.on_rest()
        size[memory] = queue.state_bytes
    assert size["naive"] - size["released"] > 20_000 * 200


@pytest.mark.parametrize(("saved", "then"), [("released", "naive"), ("naive", "released"), ("naive", "naive")])
def test_rows_stay_when_another_memory_goes_on(saved: str, then: str) -> None:
    queue = entered("inplace", [Row(at, at, f"k{at}", at) for at in range(100)], memory=saved)
    list(queue.on_more(60))
    queue.on_rest()
    other = restored(queue, {}, QueueSettings(memory=then))
    kept = 60 if saved == then else 0
    assert [other.queue_metrics(100).used, other.queue_metrics(100).allocated] == [40, 40 + kept]
    list(other.on_batch(0, batch_of([Row(100, 100, "k0", 100), Row(101, 101, "k99", 101)])))
    assert values(other) == [*range(60, 99), 101, 100]
    assert other.queue_metrics(101).allocated == (0 if then == "released" else max(41, 40 + kept))


def test_naive_memory_goes_with_a_queue_that_appends() -> None:
    queue = entered("inplace", [Row(at, at, f"k{at}", at) for at in range(20)], memory="naive")
    list(queue.on_more(15))
    queue.on_rest()
    queue.configure(QueueSettings("append"))
    assert queue.queue_metrics(20).allocated == 5
    assert values(queue) == [15, 16, 17, 18, 19]


def test_effective_usage_is_measured_so_a_row_that_is_not_released_shows() -> None:
    def usage() -> list[float]:
        queue = entered("inplace", [Row(0, at, f"k{at}", at) for at in range(20)])
        for count in (1, 4):
            list(queue.on_more(count))
            queue.on_rest()
        metrics = queue.queue_metrics(1)
        return [metrics.used, metrics.allocated, metrics.effective_usage]

    assert usage() == [15, 15, 1.0]
    with patch.object(RowBlocks, "release", lambda blocks, entries: None):
        assert usage() == [15, 20, 0.75]


# Shedding


def test_shedding_keeps_a_share_of_the_rows_whatever_their_batches() -> None:
    rows = [Row(at, at, "a", at) for at in range(2000)]
    queue, other = entered("append_shed", rows, keep=0.25), queue_of("append_shed", keep=0.25)
    for row in rows:
        list(other.on_batch(0, batch_of([row])))
    assert 400 < queue.held < 600
    assert values(queue) == values(other)
    check_counts(queue)


def test_shedding_without_a_share_keeps_what_can_be_worked_off() -> None:
    """A row each 100 ms, and half a second of work for it: 19 of 100 are kept, and the first backlog is worked off."""
    rows = [Row(at * 100_000, at, f"k{at % 10}", at) for at in range(3000)]
    server = Server(queue_of("append_shed"), 500_000).run(rows, rows[-1].arrival)
    metrics = server.queue.queue_metrics(server.queue.now)
    assert metrics.shed / metrics.entered == pytest.approx(0.81, abs=0.03)
    assert metrics.waiting < 12
    check_counts(server.queue)


# Saving


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_a_long_run_with_restarts_gives_what_it_gives_without(policy: str) -> None:
    random = np.random.default_rng(3)
    shares = 1 / np.arange(1, 41) ** 0.9
    keys = random.choice(40, 2400, p=shares / shares.sum())
    rows = [Row(at * 100, at * 100 - int(random.integers(0, 500)), f"k{key}", at) for at, key in enumerate(keys)]
    cost = 1000 if policy == "auto" else 400
    expected = Server(queue_of(policy), cost).run(rows)
    segments: dict[int, pa.Table] = {}

    def between(served: int, queue: UpdateQueue) -> UpdateQueue:
        return restored(queue, segments) if served % 97 == 96 else queue

    found = Server(queue_of(policy), cost, between=between).run(rows)
    assert found.values() == expected.values()
    now = found.queue.now
    assert found.queue.queue_metrics(now) == expected.queue.queue_metrics(now)
    assert found.queue.staleness(now).equals(expected.queue.staleness(now))
    assert found.queue.queue_metrics(now).switches == (policy == "auto")


def test_a_save_costs_what_changed() -> None:
    queue = entered("inplace", [Row(0, at, f"k{at}", at) for at in range(20_000)])
    first = queue.changes()
    assert sum(table.num_rows for table in first.added.values()) >= 20_000
    list(queue.on_batch(0, batch_of([Row(1, 30_000, "k7", 1)])))
    list(queue.on_more(1))
    queue.on_rest()
    second = queue.changes()
    assert sum(table.num_rows for table in second.added.values()) < 50
    assert not second.removed


def test_what_a_queue_of_another_kind_has_saved_is_removed_and_no_number_used_again() -> None:
    queue, segments, numbers, at = queue_of("append"), dict[int, pa.Table](), set[int](), 0

    def save() -> Changes:
        changes = queue.changes()
        assert not numbers & set(changes.added)
        numbers.update(changes.added)
        for number in changes.removed:
            del segments[number]
        segments.update(changes.added)
        return changes

    for policy in ("append", "inplace", "append", "auto", "linecutting", "append"):
        queue.configure(QueueSettings(policy))
        save()
        for size in (400, 90, 20, 4):
            list(queue.on_batch(0, batch_of([Row(at, at + each, f"k{each}", at + each) for each in range(size)])))
            at += size
            changes = save()
        made = queue_of(policy)
        made.restore(Changes(dict(segments), (), changes.note))
        assert made.queue_metrics(at) == queue.queue_metrics(at)
    assert values(made) == values(queue)


def test_state_saved_by_another_kind_of_queue_is_changed_when_it_comes_back() -> None:
    rows = rows_of((0, 0, "a", 1), (1, 1, "b", 2), (2, 2, "a", 3), (3, 1, "a", 4))
    appended = restored(entered("append", rows), {}, QueueSettings("inplace"))
    assert appended.settings.policy == "inplace"
    assert appended.queue_metrics(3).superseded == 2
    assert values(appended) == [3, 2]
    updated = restored(entered("inplace", rows), {}, QueueSettings("append"))
    assert values(updated) == [3, 2]


# Settings


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"policy": "lifo"}, 'no queue is called "lifo"'),
        ({"memory": "swap"}, 'no memory is called "swap"'),
        ({"keep": 1.5}, "1.5 is not a share of rows to keep"),
        ({"budget_rows": 0}, "budget must be positive"),
        ({"policy": "append", "access": (Access(SECOND),)}, "queue = 'append' does not know when keys are read"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options: dict[str, object], fact: str) -> None:
    with pytest.raises(RequestError) as caught:
        QueueSettings(**options)  # type: ignore[arg-type]
    assert caught.value.fact == fact and caught.value.hint


def test_keys_cannot_be_read_every_nothing() -> None:
    with pytest.raises(RequestError, match="cannot be read every 0 seconds"):
        Access(0, Column("k"))


# Several queues


def together(costs: Sequence[int], keys: Sequence[int], choose: str) -> float:
    """The staleness of all keys of several queues before one server, with random updates, in key-seconds."""
    random, queues = np.random.default_rng(1), [queue_of() for _ in costs]
    turn, now, total = 0, 0, 0.0
    for _ in range(500):
        for queue, many in zip(queues, keys, strict=True):
            queue.on_time(now)
            chosen = random.integers(0, many, max(1, many // 8))
            list(queue.on_batch(0, _updates(chosen, now)))
        if choose == "urgency":
            at = int(np.argmax([queue.urgency(now) for queue in queues]))
        else:
            at = next(each % len(queues) for each in range(turn, turn + len(queues)) if queues[each % len(queues)].held)
        turn = at + 1
        list(queues[at].on_more(1))
        now += costs[at]
        queues[at].on_time(now)
        queues[at].on_rest()
    for queue in queues:
        metrics = queue.queue_metrics(now)
        total += metrics.queue_mean * metrics.keys
    return total / SECOND


def _updates(keys: npt.NDArray[np.int64], now: int) -> Batch:
    columns = {
        "k": pa.array([f"k{key}" for key in keys.tolist()]),
        "v": pa.array(keys),
        TIME: pa.array(np.full(len(keys), now)),
    }
    return Batch(pa.record_batch(columns))


@pytest.mark.slow
def test_queues_served_by_urgency_are_less_stale_together_than_in_turn() -> None:
    costs, keys = (1000, 3000, 10_000, 1000), (10, 100, 30, 200)
    assert together(costs, keys, "urgency") < 0.6 * together(costs, keys, "turn")
