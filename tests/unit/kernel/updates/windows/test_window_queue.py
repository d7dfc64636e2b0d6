from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.kernel.columns.expressions import Column
from millrace.kernel.elements import (
    ARRIVED,
    END_OF_TIME,
    MARK,
    RESERVED,
    TIME,
    Batch,
    GroupPunctuation,
    Punctuation,
    without_reserved,
)
from millrace.kernel.relational.project import Project
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.kernel.updates.windows.window_queue import WindowQueue
from tests.unit.kernel.window_queues import Server, batch_of, queue_of


def served(length: int, slide: int, cost: int, mode: str, ticks: int, close: str = "own") -> Server:
    """One key, one row a tick, windows that close with the row of their last tick."""
    server = Server(queue_of(length, slide, mode, 1 if close == "own" else None), cost)
    server.now = 1
    for now in range(1, ticks + 1):
        server.tick([("a", now, now)], now + 1 if close == "bound" else None)
        server.queue.check(in_step=True)
    return server


@pytest.mark.parametrize("close", ["own", "bound"])
def test_the_trace_of_figure_12_with_eager_windows(close: str) -> None:
    # Committed at 1, rows 1, 2 and 3 take two ticks each; at 7 the newest window is the one that row 7 starts.
    assert served(3, 1, 2, "eager", 25, close).results == [(1, 7), (7, 13), (13, 19), (19, 25)]


@pytest.mark.parametrize("close", ["own", "bound"])
def test_the_trace_of_figure_12_with_lazy_windows(close: str) -> None:
    # The window that ends with row 1 holds that row alone, and is there first; then [1, 4) is complete at 3.
    assert served(3, 1, 2, "lazy", 27, close).results == [(-1, 3), (1, 9), (7, 15), (13, 21), (19, 27)]


def test_eager_waits_from_window_starters_and_is_stale_from_closers() -> None:
    server = served(3, 1, 2, "eager", 6)
    (key,) = server.queue.staleness(6).to_pylist()
    # Row 2 starts a window while [1, 4) is under processing. [-1, 2) closes with row 1, and nothing is delivered yet.
    assert (key["waiting"], key["queue_now"], key["application_now"]) == (True, 4.0, 5.0)
    server.tick([("a", 7, 7)], None)
    (key,) = server.queue.staleness(7).to_pylist()
    # [1, 4) is delivered and [7, 10) committed: nothing waits. [2, 5), which closed with row 4, is newer.
    assert (key["waiting"], key["queue_now"], key["application_now"]) == (False, 0.0, 3.0)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 2, 5, 10])
def test_tumbling_eager_windows_are_stale_by_half_a_tick_each(length: int) -> None:
    ticks = 50 * length
    server = served(length, length, 1, "eager", ticks)
    assert server.queue.queue_metrics(ticks + 1).application_mean == pytest.approx(0.5 / length, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 2, 5, 10])
def test_tumbling_lazy_windows_are_stale_by_half_their_length(length: int) -> None:
    ticks = 50 * length
    server = served(length, length, 1, "lazy", ticks)
    assert server.queue.queue_metrics(ticks + 1).application_mean == pytest.approx(length / 2, rel=0.05)


@pytest.mark.slow
def test_overlapping_windows_under_update_semantics_are_fresher_than_all_or_random_ones() -> None:
    means = {
        mode: served(6, 1, 1, mode, 400).queue.queue_metrics(401).application_mean
        for mode in ("eager", "lazy", "random", "every")
    }
    assert means["eager"] < means["lazy"] < means["random"] < means["every"]


def test_all_windows_are_reported_in_order_each_with_all_its_rows() -> None:
    server = served(3, 1, 1, "every", 6)
    server.end()
    assert [start for start, _ in server.results] == [-1, 0, 1, 2, 3, 4, 5, 6]
    counts = {mark: 0 for kind, mark, *_ in server.log if kind == "row"}
    for kind, mark, *_ in server.log:
        counts[mark] += kind == "row"
    assert sorted(counts.values()) == [1, 1, 2, 2, 3, 3, 3, 3]
    metrics = server.queue.queue_metrics(server.now)
    assert (metrics.entered, metrics.let_go, metrics.superseded, metrics.shed, metrics.waiting) == (6, 6, 0, 0, 0)


def test_random_windows_are_the_same_when_rows_come_again() -> None:
    first, again = (served(4, 2, 1, "random", 60) for _ in range(2))
    assert first.results == again.results
    metrics = first.queue.queue_metrics(first.now)
    assert metrics.shed and metrics.entered == metrics.let_go + metrics.shed + metrics.waiting


def test_a_key_under_processing_is_served_before_the_next_one_is_committed() -> None:
    queue = queue_of(3, 3, "eager", 1)
    server = Server(queue, 1)
    server.tick([("a", 0, 0), ("b", 0, 1)], None)
    # Row 0 of "a" has left by then, and row 1 makes it READY again: it is served before "b" is committed.
    server.tick([("a", 1, 2), ("b", 1, 3)], None)
    server.tick([("c", 2, 4), ("a", 2, 5)], None)
    server.end()
    assert server.rows == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("c", 2)]


def test_rows_out_of_order_join_the_window_under_processing() -> None:
    queue = queue_of(10, 10)
    server = Server(queue, 1)
    server.tick([("a", 5, 0)], 0)
    server.tick([], None)
    server.tick([("a", 3, 1)], 2)
    server.tick([("a", 12, 2)], 10)
    server.tick([("a", 11, 3)], 11)
    server.end()
    assert [entry[1:] for entry in server.log if entry[0] == "row"] == [
        (0, "a", 5, 0),
        (0, "a", 3, 1),
        (1, "a", 12, 2),
        (1, "a", 11, 3),
    ]
    assert queue.queue_metrics(server.now).superseded == 0


def test_with_own_closing_older_rows_are_superseded() -> None:
    queue = queue_of(10, 10, "lazy", 2)
    for row in (("a", 5, 0), ("a", 3, 1), ("a", 5, 2), ("a", 8, 3), ("a", 9, 4)):
        list(queue.on_batch(0, batch_of([row])))
    # 3 is older than 5; 8 promises that nothing follows before 10, so the window is closed for 9.
    assert queue.queue_metrics(0).superseded == 2
    assert queue.queue_metrics(0).waiting == 3


def test_rows_in_no_window_are_superseded() -> None:
    queue = queue_of(2, 5)
    list(queue.on_batch(0, batch_of([("a", 1, 0), ("a", 3, 1), ("a", 6, 2)])))
    metrics = queue.queue_metrics(0)
    assert (metrics.entered, metrics.superseded, metrics.waiting) == (3, 2, 1)


def test_the_source_of_truth_replaces_a_row_of_the_same_time_that_has_not_left() -> None:
    queue = WindowQueue(["k"], 10, 10, QueueSettings(), inputs=2, truth=1)
    list(queue.on_batch(0, batch_of([("a", 5, 0), ("b", 5, 1)])))
    list(queue.on_batch(1, batch_of([("a", 5, 10), ("a", 4, 11), ("b", 4, 12)])))
    list(queue.on_batch(0, batch_of([("a", 5, 2), ("a", 6, 3)])))
    queue.check()
    restored = WindowQueue(["k"], 10, 10, QueueSettings(), inputs=2, truth=1)
    restored.restore(queue.changes())
    for each in (queue, restored):
        list(each.on_punctuation(Punctuation(END_OF_TIME)))
        (batch,) = (element for element in each.on_more(None) if isinstance(element, Batch))
        rows = zip(batch.rows.column("k").to_pylist(), batch.rows.column("v").to_pylist(), strict=True)
        assert sorted(rows) == [("a", 3), ("a", 10), ("a", 11), ("b", 1)]
        first, second = each.queue_metrics(0).by_input
        assert (first.entered, first.superseded, first.let_go) == (4, 2, 2)
        assert (second.entered, second.superseded, second.let_go) == (3, 1, 2)


def united(length: int, slide: int, truth: int | None = None, tick: int | None = None) -> WindowQueue:
    """A queue with two inputs."""
    return queue_of(length, slide, tick=tick, inputs=2, truth=truth)


def let_go(queue: WindowQueue) -> list[int]:
    """Lets all rows go that can leave now, and works them off; their values."""
    values: list[int] = []
    while queue.unfinished:
        for element in queue.on_more(None):
            values += element.rows.column("v").to_pylist() if isinstance(element, Batch) else []
        queue.on_rest()
        queue.check()
    return values


def ended(queue: WindowQueue) -> list[int]:
    list(queue.on_punctuation(Punctuation(END_OF_TIME)))
    return let_go(queue)


def test_a_row_that_has_left_makes_no_room_for_an_older_one_of_the_source_of_truth() -> None:
    queue = united(10, 5, truth=1)
    for row in (("a", 12, 1), ("a", 16, 2)):
        list(queue.on_batch(0, batch_of([row])))
        assert let_go(queue) == [row[2]]
    list(queue.on_batch(1, batch_of([("a", 17, 3), ("a", 16, 4)])))
    queue.check()
    # The rest of [10, 20), then all of [15, 25).
    assert ended(queue) == [3, 4, 2, 3, 4]
    first, second = queue.queue_metrics(0).by_input
    assert (first.let_go, first.superseded, first.waiting) == (2, 0, 0)
    assert (second.let_go, second.superseded, second.waiting) == (2, 0, 0)


@pytest.mark.parametrize("size", [1, 2])
def test_the_source_of_truth_replaces_nothing_once_it_has_taken_over(size: int) -> None:
    queue = united(10, 10, truth=1)
    list(queue.on_batch(0, batch_of([("a", 16, 1)])))
    rows = [("a", 17, 2), ("a", 16, 3)]
    for place in range(0, len(rows), size):
        list(queue.on_batch(1, batch_of(rows[place : place + size])))
    assert ended(queue) == [1, 2, 3]


@pytest.mark.parametrize("restored", [False, True])
def test_a_row_that_has_left_stays_although_the_source_of_truth_has_one_of_its_time(restored: bool) -> None:
    queue = united(10, 10, truth=1)
    list(queue.on_batch(0, batch_of([("a", 12, 1)])))
    assert let_go(queue) == [1]
    if restored:
        saved = queue.changes()
        queue = united(10, 10, truth=1)
        queue.restore(saved)
    # Row 1 is no longer held; the window must not count its time twice.
    list(queue.on_batch(1, batch_of([("a", 12, 2)])))
    list(queue.on_batch(0, batch_of([("a", 11, 3)])))
    assert ended(queue) == [3]
    first, second = queue.queue_metrics(0).by_input
    assert (first.let_go, first.superseded) == (2, 0)
    assert (second.let_go, second.superseded) == (0, 1)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(
    ("tick", "older"), [(None, 10), (None, 11), (1, 11)], ids=["older", "of the same time", "closed by own rows"]
)
def test_a_row_in_no_window_does_not_take_over(tick: int | None, older: int, size: int) -> None:
    queue = united(3, 10, tick=tick)
    list(queue.on_batch(0, batch_of([("a", 11, 1)])))
    rows = [("a", 15, 2), ("a", older, 3)]
    for place in range(0, len(rows), size):
        list(queue.on_batch(1, batch_of(rows[place : place + size])))
    assert queue.queue_metrics(0).by_input[1].superseded == 2
    assert ended(queue) == [1]


def test_random_windows_follow_another_share_from_the_next_window_on() -> None:
    queue = queue_of(10, 10, "random", settings=QueueSettings(keep=1.0))
    list(queue.on_batch(0, batch_of([("a", 1, 0)])))
    queue.configure(QueueSettings(keep=1e-9))
    list(queue.on_batch(0, batch_of([("a", time, time) for time in (2, 11, 12)])))
    # The window that has begun is answered whole.
    assert ended(queue) == [0, 2]
    assert queue.queue_metrics(0).shed == 2


def test_rows_nearer_than_a_tick_close_windows_one_after_another() -> None:
    # Windows end at even times, and a row closes those that end up to 3 after it.
    rows = [("a", 5, 0), ("b", 1, 1), ("a", 6, 2), ("b", 3, 3), ("a", 8, 4), ("a", 9, 5), ("b", 4, 6), ("a", 12, 7)]
    whole, singly = queue_of(4, 2, "every", 3), queue_of(4, 2, "every", 3)
    list(whole.on_batch(0, batch_of(rows)))
    for row in rows:
        list(singly.on_batch(0, batch_of([row])))
    assert sorted(set(ended(whole))) == sorted(set(ended(singly))) == [0, 1, 4, 6, 7]


def test_many_keys_are_committed_and_let_go_at_once() -> None:
    queue = queue_of(10, 10)
    list(queue.on_batch(0, batch_of([(f"k{number % 100}", number // 100, number) for number in range(500)])))
    list(queue.on_punctuation(Punctuation(10)))
    batch, closers = list(queue.on_more(500))[:2]
    assert isinstance(batch, Batch) and len(batch) == 500
    assert isinstance(closers, GroupPunctuation) and closers.keys.column(MARK).to_pylist() == list(range(100))
    assert closers.until.tolist() == [10] * 100


def test_an_allowance_is_kept_and_the_rest_of_a_window_follows() -> None:
    queue = queue_of(10, 10)
    list(queue.on_batch(0, batch_of([("a", number, number) for number in range(10)])))
    list(queue.on_punctuation(Punctuation(10)))
    queue.allowance = 6
    first = [element for element in queue.on_more(None) if isinstance(element, Batch)]
    assert sum(map(len, first)) == 6 and not queue.unfinished and queue.due
    queue.allowance = 6
    second = list(queue.on_more(None))
    assert isinstance(second[0], Batch) and len(second[0]) == 4
    assert isinstance(second[1], GroupPunctuation)


def test_bounds_wait_for_windows_that_are_under_processing() -> None:
    queue = queue_of(10, 10, "eager", 1)
    list(queue.on_batch(0, batch_of([("a", 12, 0), ("b", 31, 1)])))
    assert list(queue.on_punctuation(Punctuation(30))) == [Punctuation(10)]
    assert [element for element in queue.on_more(10) if isinstance(element, Punctuation)] == []
    # The window of "a" is open until a row of its own closes it, whatever the stream promises.
    list(queue.on_batch(0, batch_of([("a", 41, 2)])))
    bounds = [element for element in queue.on_more(10) if isinstance(element, Punctuation)]
    assert bounds == [Punctuation(30)]


def test_a_key_takes_four_locations_at_a_time() -> None:
    queue = queue_of(20, 5)
    list(queue.on_batch(0, batch_of([("a", 0, 0), ("b", 0, 1)])))
    assert (queue.queue_metrics(0).allocated, queue.queue_metrics(0).used) == (8, 2)


def test_update_fifo_sends_a_key_to_the_end_of_the_line_with_each_window() -> None:
    orders = {}
    for policy in ("inplace", "update_fifo"):
        queue = queue_of(1, 1, "eager", 1, QueueSettings(policy))
        list(queue.on_batch(0, batch_of([("a", 0, 0), ("b", 0, 1), ("a", 1, 2)])))
        rows = [element.rows.column("k").to_pylist() for element in queue.on_more(9) if isinstance(element, Batch)]
        orders[policy] = [key for keys in rows for key in keys]
    assert orders == {"inplace": ["a", "b"], "update_fifo": ["b", "a"]}


def test_rows_of_several_keys_that_leave_together_count_together_when_more_are_let_go() -> None:
    queue, sizes = queue_of(1, 1, "eager", 1), list[int]()
    queue.careful = True
    list(queue.on_batch(0, batch_of([(f"k{at}", 0, at) for at in range(40)])))
    for turn in range(6):
        queue.on_time(10 * turn)
        sizes.append(sum(len(each) for each in queue.on_more(None) if isinstance(each, Batch)))
        queue.on_time(10 * turn + 1)
        queue.on_rest()
    assert sizes == [1, 2, 4, 8, 16, 9]


def test_the_printed_linecutting_rule_lets_slow_keys_cut() -> None:
    queue = queue_of(1, 1, "eager", 1, QueueSettings("linecutting_as_printed"))
    queue.learn_cost(10)
    server = Server(queue, 10)
    for now in range(200):
        rows = [(f"fast{number}", now, 0) for number in range(5)]
        server.tick([*rows, ("slow", now, 1)] if now % 100 == 0 else rows, None)
    assert [time for key, time in server.rows if key == "slow"] == [0, 100]
    staleness = {row["k"]: row["queue_mean"] for row in queue.staleness(200).to_pylist()}
    assert staleness["slow"] < min(value for key, value in staleness.items() if key != "slow") / 2


def test_marks_are_reserved_columns_that_stay_with_a_row() -> None:
    assert RESERVED == (TIME, MARK, ARRIVED)
    queue = queue_of(10, 10)
    rows = batch_of([("a", 1, 7)]).rows.append_column(ARRIVED, pa.array([5]))
    list(queue.on_batch(0, Batch(rows)))
    (batch,) = (element for element in queue.on_more(1) if isinstance(element, Batch))
    assert batch.rows.schema.names == ["k", "v", TIME, MARK, ARRIVED]
    (projected,) = Project((("twice", Column("v")),)).on_batch(0, batch)
    assert isinstance(projected, Batch) and projected.rows.schema.names == ["twice", TIME, MARK, ARRIVED]
    assert without_reserved(projected.rows).schema.names == ["twice"]
