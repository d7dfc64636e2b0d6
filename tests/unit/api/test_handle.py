"""A running network is changed through its handle, and each query answers for exactly the rows since its start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

import pyarrow.parquet as pq
import pytest

import millrace as mr
from millrace.errors import RequestError
from tests.e2e.commands import wait_for
from tests.unit.hosts.fed import SECOND, Fed, received, row

COLUMNS = "k STRING, n INT, ts TIMESTAMP"


@contextmanager
def running(**streams: Fed) -> Iterator[tuple[mr.Network, mr.Handle]]:
    """A network that runs, with a query `all` over each stream's keys."""
    net = mr.Network()
    relations = [net.stream(name, COLUMNS, time="ts", source=feed) for name, feed in streams.items()]
    net.query(
        "keys", relations[0].union(*relations[1:]).select("k") if len(relations) > 1 else relations[0].select("k")
    )
    handle = net.run(on="local")
    try:
        yield net, handle
    finally:
        handle.stop()


def numbers(handle: mr.Handle, query: str, column: str = "n") -> list[Any]:
    return handle.results(query).column(column).to_pylist()


def test_an_added_query_answers_for_the_rows_since_its_start_and_says_so() -> None:
    feed = Fed()
    with running(a=feed) as (_, handle):
        feed.tell(row(1, k="x", n=1), row(5, k="x", n=2))
        received(handle, "a", 2)
        started = handle.add("ADD QUERY sums AS SELECT n, ts FROM a")
        assert (started.query, started.streams) == ("sums", ("a",))
        assert (started.at, started.since) == (5 * SECOND + 1, "1970-01-01 00:00:05.000001")
        feed.tell(row(5, k="x", n=3), row(6, k="y", n=4))
        wait_for(lambda: len(handle.results("keys")) == 4)
        assert numbers(handle, "sums") == [4], "the row at second 5 is before the start"


def test_an_added_window_holds_the_rows_since_the_start_alone() -> None:
    feed = Fed()
    with running(a=feed) as (net, handle):
        feed.tell(row(1, k="x", n=1))
        received(handle, "a", 1)
        relation = mr.Relation(net, "a").window(range="10 seconds").agg(n="count(*)")
        assert handle.add("counts", relation).at == SECOND + 1
        feed.tell(row(2, k="x", n=1), row(3, k="x", n=1), row(12, k="x", n=1))
        wait_for(lambda: numbers(handle, "counts") == [2])


def test_a_column_that_nobody_had_read_is_read_from_then_on() -> None:
    feed = Fed()
    with running(a=feed) as (_, handle):
        feed.tell(row(1, k="x", n=1))
        received(handle, "a", 1)
        handle.add("ADD QUERY doubled AS SELECT n * 2 AS n FROM a WHERE n > 1")
        feed.tell(row(2, k="x", n=1), row(3, k="y", n=2))
        wait_for(lambda: numbers(handle, "doubled") == [4])
        assert numbers(handle, "keys", "k") == ["x", "x", "y"]


def test_a_replayed_feed_goes_on_with_a_column_that_nobody_had_read() -> None:
    items = iter([[row(0, k="x", n=1), row(0.6, k="y", n=2)], [row(0.7, k="z", n=3)]])
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=items, replay_by="ts")
    handle = net.query("keys", a.select("k")).run(on="local")
    wait_for(lambda: numbers(handle, "keys", "k") == ["x"])
    assert handle.add("ADD QUERY sums AS SELECT n FROM a").at == 1
    handle.wait(300)
    assert (numbers(handle, "keys", "k"), numbers(handle, "sums")) == (["x", "y", "z"], [2, 3])


def test_a_dropped_query_ends_and_the_others_go_on() -> None:
    feed = Fed()
    with running(a=feed) as (_, handle):
        handle.add("CREATE QUERY more AS SELECT n FROM a")
        feed.tell(row(1, k="x", n=1))
        received(handle, "a", 1)
        handle.drop("KEYS")
        feed.tell(row(2, k="y", n=2))
        wait_for(lambda: numbers(handle, "more") == [1, 2])
        assert list(handle.queries) == ["more"]
        assert numbers(handle, "keys", "k") == ["x"], "what it had answered can still be read"


def test_a_name_can_be_used_again() -> None:
    feed = Fed()
    with running(a=feed) as (_, handle):
        handle.add("ADD QUERY q AS SELECT n FROM a")
        feed.tell(row(1, k="x", n=1))
        received(handle, "a", 1)
        handle.drop("q")
        handle.add("ADD QUERY q AS SELECT k FROM a")
        feed.tell(row(2, k="y", n=2))
        wait_for(lambda: handle.results("q").to_pylist() == [{"k": "y"}])


def test_streams_declared_after_the_start_are_read_from_their_beginning() -> None:
    feed, later = Fed(), Fed()
    with running(a=feed) as (net, handle):
        feed.tell(row(100, k="x", n=1))
        received(handle, "a", 1)
        later.tell(row(1, k="l", n=7))
        b = net.stream("b", COLUMNS, time="ts", source=later)
        started = handle.add("from_b", b.select("n"))
        assert (started.since, started.streams) == (None, ("b",))
        wait_for(lambda: numbers(handle, "from_b") == [7])


def test_a_query_over_an_old_and_a_new_stream_starts_at_one_time_for_both() -> None:
    feed, later = Fed(), Fed()
    with running(a=feed) as (net, handle):
        feed.tell(row(5, k="x", n=1))
        received(handle, "a", 1)
        b = net.stream("b", COLUMNS, time="ts", source=later)
        assert handle.add("both", mr.Relation(net, "a").union(b)).at == 5 * SECOND + 1
        later.tell(row(4, k="early", n=2), row(6, k="late", n=3))
        wait_for(lambda: numbers(handle, "both") == [3])


def test_a_stream_that_nobody_reads_any_more_is_closed() -> None:
    feed, other = Fed(), Fed()
    with running(a=feed, b=other) as (_, handle):
        handle.add("ADD QUERY only_a AS SELECT n FROM a")
        handle.drop("keys")
        assert set(handle.metrics().sources) == {"a"}
        feed.tell(row(1, k="x", n=1))
        wait_for(lambda: numbers(handle, "only_a") == [1])


def test_an_added_query_can_write_files(tmp_path: Path) -> None:
    feed = Fed()
    with running(a=feed) as (net, handle):
        handle.add("kept", mr.Relation(net, "a").select("n"), sink="parquet", path=tmp_path / "out")
        feed.tell(row(1, k="x", n=1))
        received(handle, "a", 1)
        handle.drop("kept")
        assert pq.read_table(tmp_path / "out").column("n").to_pylist() == [1], "published by the time it is dropped"
        with pytest.raises(RequestError, match="holds results already"):
            handle.add("again", mr.Relation(net, "a").select("n"), sink="parquet", path=tmp_path / "out")


def test_an_added_query_has_settings_of_its_own() -> None:
    feed = Fed()
    with running(a=feed) as (net, handle):
        handle.add("more", mr.Relation(net, "a").select("n"), settings={"strategy": "bfs", "share": 2})
        assert handle.queries["more"].options == {"strategy": "bfs", "share": "2"}


def test_a_strategy_is_altered_while_rows_pass() -> None:
    feed = Fed()
    with running(a=feed) as (_, handle):
        for second, strategy in enumerate(["bfs", "rr", "batch:3", "dfs"]):
            handle.alter("keys", strategy=strategy)
            assert handle.queries["keys"].options["strategy"] == strategy
            feed.tell(row(second, k=strategy, n=1))
        wait_for(lambda: numbers(handle, "keys", "k") == ["bfs", "rr", "batch:3", "dfs"])


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (lambda handle: handle.add("ADD QUERY q AS SELECT nn FROM a"), 'column "nn" does not exist'),
        (lambda handle: handle.add("ADD QUERY keys AS SELECT n FROM a"), '"keys" is declared twice'),
        (lambda handle: handle.add("ADD QUERY a AS SELECT n FROM a"), "both a stream and a query"),
        (lambda handle: handle.add("ADD QUERY b AS SELECT n FROM a; DROP QUERY keys"), "exactly one ADD"),
        (lambda handle: handle.add("SHOW QUERIES"), "exactly one ADD"),
        (lambda handle: handle.add("ADD QUERY q AS SELECT n FROM a", share=2), "part of its text"),
        (lambda handle: handle.add("ADD QUERY q AS SELECT n FROM a", settings={"share": 2}), "part of its text"),
        (lambda handle: handle.add("ADD QUERY q AS SELECT n FROM a", sink="csv", path="o"), "part of its text"),
        (lambda handle: handle.add("q", mr.Relation(handle._author, "a"), share=2), "takes the option keep alone"),
        (lambda handle: handle.add("CREATE STREAM c (v INT) LATENT TIMESTAMP FROM csv OPTIONS (path 'nowhere'); "
                                   "ADD QUERY q AS SELECT v FROM c"), 'the path "nowhere" of stream "c" is not there'),
        (lambda handle: handle.drop("nobody"), 'query "nobody" does not exist'),
        (lambda handle: handle.drop("keys"), "the last query cannot be dropped"),
        (lambda handle: handle.alter("keys", strategy="best"), 'cannot be "best"'),
        (lambda handle: handle.alter("keys", order="in"), "cannot be altered"),
    ],
)  # fmt: skip
def test_a_wrong_change_is_told_and_the_run_goes_on_untouched(change: Callable[[mr.Handle], object], fact: str) -> None:
    feed = Fed()
    with running(a=feed) as (_, handle):
        with pytest.raises(RequestError, match=fact) as raised:
            change(handle)
        assert raised.value.hint
        feed.tell(row(1, k="x", n=1))
        wait_for(lambda: numbers(handle, "keys", "k") == ["x"])
        assert list(handle.queries) == ["keys"]


def test_a_relation_of_another_network_is_refused() -> None:
    other = mr.Network()
    foreign = other.stream("a", COLUMNS, time="ts", source=[])
    with running(a=Fed()) as (_, handle), pytest.raises(RequestError, match="belongs to another network"):
        handle.add("q", foreign)


def test_many_threads_may_ask_at_once() -> None:
    feed = Fed()
    with running(a=feed) as (_, handle):
        threads = [Thread(target=handle.add, args=(f"ADD QUERY q{number} AS SELECT n FROM a",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        assert set(handle.queries) == {"keys", *(f"q{number}" for number in range(8))}
        feed.tell(row(1, k="x", n=1))
        wait_for(lambda: all(numbers(handle, f"q{number}") == [1] for number in range(8)))


def test_a_run_that_has_ended_cannot_be_changed() -> None:
    feed = Fed()
    with running(a=feed) as (_, handle):
        feed.end()
        handle.wait(300)
        with pytest.raises(RequestError, match="the run has ended"):
            handle.add("ADD QUERY q AS SELECT n FROM a")


def test_a_run_cannot_be_asked_from_the_thread_that_feeds_it() -> None:
    told: list[RequestError] = []
    handles: list[mr.Handle] = []

    def feed() -> Iterator[list[dict[str, Any]]]:
        while not handles:
            yield []
        try:
            handles[0].drop("q")
        except RequestError as error:
            told.append(error)

    net = mr.Network()
    net.query("q", net.stream("a", COLUMNS, time="ts", source=feed()))
    handles.append(net.run(on="local"))
    handles[0].wait(300)
    assert "cannot ask the run itself" in told[0].fact


def test_a_virtual_run_is_changed_between_two_events() -> None:
    added = Event()

    def feed() -> Iterator[list[dict[str, Any]]]:
        for second in count():
            yield [row(second, k="x", n=second)]
            if added.is_set():
                return

    net = mr.Network()
    net.query("keys", net.stream("a", COLUMNS, time="ts", source=feed()).select("k"))
    handle = net.run(on="virtual", background=True)
    started = handle.add("ADD QUERY q AS SELECT n FROM a")
    added.set()
    found = numbers(handle.wait(300), "q")
    assert found == list(range(started.at // SECOND + 1, found[-1] + 1)), "every row since the start, once"


# With a checkpoint


def put(folder: Path, *numbers: int) -> None:
    """A file with a row for each number, at as many seconds; moved in whole."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{numbers[0]:03d}.csv"
    hidden.write_text("\n".join(["k,n,ts", *(f"x,{each},1970-01-01 00:00:{each:02d}" for each in numbers)]) + "\n")
    hidden.replace(folder / f"{numbers[0]:03d}.csv")


def over_files(folder: Path) -> mr.Network:
    net = mr.Network()
    net.query("keys", net.stream("a", COLUMNS, time="ts", source="csv", path=folder).select("k"))
    return net


SUMS = "ADD QUERY sums AS SELECT sum(n) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts]"


def test_a_run_goes_on_with_the_changed_network(tmp_path: Path) -> None:
    files, state = tmp_path / "in", tmp_path / "state"
    put(files, 1)
    handle = over_files(files).run(on="local", checkpoint=state)
    received(handle, "a", 1)
    assert handle.add(SUMS).at == SECOND + 1
    handle.drop("keys")
    handle.alter("sums", strategy="bfs")
    put(files, 2, 3)
    received(handle, "a", 3)
    handle.stop()
    put(files, 4)
    resumed = over_files(files).run(on="local", checkpoint=state, until="end")
    assert resumed.queries["sums"].options == {"strategy": "bfs"}
    assert list(resumed.queries) == ["sums"]
    assert numbers(resumed, "sums") == [2 + 3 + 4]
    assert list(state.glob("*.arrow")) == [], "closed windows leave no state behind"


def test_a_dropped_query_leaves_no_state_in_the_checkpoint(tmp_path: Path) -> None:
    files, state = tmp_path / "in", tmp_path / "state"
    put(files, 1)
    handle = over_files(files).run(on="local", checkpoint=state)
    handle.add(SUMS)
    put(files, 2)
    received(handle, "a", 2)
    handle.alter("sums", strategy="bfs")
    assert list(state.glob("*.arrow")), "every change is a commit"
    handle.drop("sums")
    assert list(state.glob("*.arrow")) == []
    handle.stop()


def test_a_handle_says_what_holds_results_back_while_it_runs_and_after() -> None:
    one, other = Fed(), Fed()
    net = mr.Network()
    a, b = (net.stream(name, COLUMNS, time="ts", source=feed) for name, feed in (("a", one), ("b", other)))
    net.query("both", a.union(b).select("k", "ts").order_by_time())
    handle = net.run(on="local")
    try:
        one.tell(row(1, k="x", n=1), row(5, k="x", n=2))
        other.tell(row(2, k="y", n=1))
        received(handle, "a", 2)
        received(handle, "b", 1)
        lag = handle.why()
        assert [(each.stream, each.bound, each.until) for each in lag.waits["both"].awaited] == [
            ("b", 2 * SECOND, 5 * SECOND)
        ]
        assert lag.waits["both"].held == 1
        assert 'both waits for stream "b", whose bound has stood at 1970-01-01 00:00:02 for' in str(lag)
        other.tell(row(6, k="y", n=2))
        wait_for(lambda: "a" in {each.stream for each in handle.why().waits["both"].awaited})
    finally:
        handle.stop()
    assert [each.stream for each in handle.why().waits["both"].awaited] == ["a"], "an ended run can be asked too"


# Metrics


def test_a_run_that_asks_for_its_own_metrics_is_answered() -> None:
    known, found = Event(), list[int]()

    def ask() -> list[dict[str, Any]]:
        assert known.wait(300)
        found.append(handle.metrics().sources["a"].received)
        if len(found) == 2:
            raise StopIteration
        return [row(1, k="x", n=1)]

    net = mr.Network()
    net.query("keys", net.stream("a", COLUMNS, time="ts", source=mr.Polled(ask)).select("k"))
    handle = net.run(on="local", background=True)
    known.set()
    handle.wait(300)
    assert found == [0, 1]


def test_metrics_of_a_run_that_waits_for_a_feed_do_not_wait_for_it() -> None:
    waits, go_on = Event(), Event()

    def feed() -> Iterator[list[dict[str, Any]]]:
        yield [row(1, k="x", n=1)]
        waits.set()
        go_on.wait(300)

    net = mr.Network()
    net.query("keys", net.stream("a", COLUMNS, time="ts", source=feed()).select("k"))
    handle = net.run(on="local", background=True)
    try:
        assert waits.wait(300)
        assert handle.metrics().sources["a"].received == 1
    finally:
        go_on.set()
        handle.stop()


@pytest.mark.parametrize("host", ["local", "virtual"])
def test_metrics_tell_the_mode_of_in_order_joins_and_of_queues_that_choose(host: str) -> None:
    net = mr.Network()
    for name in "ab":
        net.stream(name, COLUMNS, time="ts", source=[row(at, k="x", n=at) for at in range(5)])
    net.stream("u", COLUMNS, time="ts", update_key="k", source=[row(1, k="x", n=1)])
    window = "FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS] WHERE a.k = b.k"
    net.sql(f"CREATE QUERY q AS SELECT a.n {window} ORDER BY greatest(a.ts, b.ts)")
    net.sql(f"CREATE QUERY f WITH (join = 'filter_order') AS SELECT a.n {window} ORDER BY greatest(a.ts, b.ts)")
    net.sql("CREATE QUERY chosen WITH (queue = 'auto') AS SELECT k, n FROM u")
    metrics = net.run(on=host, until="available").metrics()
    assert {name: each.mode for name, each in metrics.joins.items()} == {"q": "sync_filter", "f": "filter_order"}
    assert metrics.joins["q"].switches == 0
    assert (metrics.queues["chosen"].policy, metrics.queues["chosen"].mode) == ("auto", "append")


def test_metrics_of_a_run_in_virtual_time_add_up_at_any_moment() -> None:
    asked, net = Event(), mr.Network()

    def rows() -> Iterator[dict[str, Any]]:
        for at in range(100):
            if at >= 50:
                # A run stands still only between two steps: it is slow until somebody has looked.
                asked.wait(0.5)
            yield row(at / 10, k=f"k{at % 7}", n=at)

    net.stream("a", COLUMNS, time="ts", update_key="k", source=rows())
    net.sql("CREATE QUERY newest AS SELECT k, n FROM a WHERE n >= 0")
    handle = net.run(on="virtual", cost=200_000, background=True)
    while handle._thread.is_alive():
        for queue in handle.metrics().queues.values():
            assert queue.entered == queue.let_go + queue.superseded + queue.shed + queue.waiting
            asked.set()
        sleep(0.002)
    assert asked.is_set()
    assert handle.wait().metrics().sources["a"].received == 100
