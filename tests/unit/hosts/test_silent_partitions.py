"""Silence is a matter of partitions: a dead one stalls no stream, however busy; one that is heard is never passed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import millrace as mr
from millrace.hosts.local.host import LocalRun
from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import VirtualRun
from millrace.language import parse_network
from tests.background import running
from tests.counted_clock import CountedClock
from tests.e2e.commands import wait_for
from tests.unit.hosts.spark.staged import Staged

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
LULL = "DISORDER INTERVAL 1 SECOND PARTITIONED BY (link) ETS ON DEMAND LULL INTERVAL 3 SECONDS"
SKEW = "DISORDER INTERVAL 1 SECOND PARTITIONED BY (link) ETS ON DEMAND SKEW INTERVAL 3 SECONDS"
EVERY = LULL.replace("ON DEMAND", "EVERY INTERVAL 1 SECOND")
FILES = "parquet OPTIONS (path 'in')"


def script(order: str, source: str = "iterable REPLAY BY came", window: str = "5 SECONDS") -> str:
    return f"""CREATE STREAM s (link INT, ts TIMESTAMP, came TIMESTAMP) TIMESTAMP BY ts {order} FROM {source};
    CREATE QUERY q AS SELECT window, count(*) AS n FROM s [RANGE {window} SLIDE {window} WA ts];"""


def rows(*seconds: tuple[int, float, float]) -> pa.Table:
    """Rows (link, second of its time, second of its arrival)."""
    links, times, came = zip(*seconds, strict=True)
    stamps = [pa.array([round(each * SECOND) for each in column]).cast(TIMESTAMP) for column in (times, came)]
    return pa.table({"link": pa.array(links, pa.int32()), "ts": stamps[0], "came": stamps[1]})


def links(until: float, dies_at: float, every: float = 0.1) -> pa.Table:
    """Four links that send at once, of which the last one dies."""
    ticks = [round(number * every, 6) for number in range(round(until / every))]
    return rows(*((link, at, at) for at in ticks for link in range(4) if link < 3 or at < dies_at))


def closed(run: VirtualRun) -> dict[int, float]:
    """The second at which each window came out, by its end."""
    return {
        row["window_end"].second + 60 * row["window_end"].minute: each.now / SECOND
        for each in run.deliveries
        for row in each.rows.to_pylist()
    }


def finished(arrivals: list[float], each: float, until: float) -> float:
    """When all rows have been worked off that arrive until then, one after another."""
    clock = 0.0
    for at in (at for at in arrivals if at <= until):
        clock = max(clock, at) + each
    return clock


@pytest.mark.slow
@pytest.mark.parametrize(("order", "load"), [(LULL, 1.0), (LULL, 1.5), (SKEW, 1.0), (EVERY, 1.0)])
def test_a_dead_partition_does_not_stall_a_stream_that_is_flooded(order: str, load: float) -> None:
    # Thirty rows a second; from a load of 1 on there is always a row that waits.
    fed, each = links(50, dies_at=12), load / 30
    cost = Costs(of={"window_aggregate": round(each * SECOND)})
    run = VirtualRun(parse_network(script(order)), feeds={"s": [fed]}, cost=cost, rows_per_step=1)
    assert run.run().sources["s"].late == 0
    arrivals, found = [at / SECOND for at in fed["came"].cast(pa.int64()).to_pylist()], closed(run)
    assert list(found) == list(range(5, 55, 5))
    for end in range(15, 40, 5):
        # An ETS is asked for when the window is the first that is open and has all its rows, three seconds after its
        # end at least, and goes behind what came by then.
        asked = max(end + 3.2, found[end - 5], finished(arrivals, each, end + 0.1)) + 16 * each
        assert found[end] <= finished(arrivals, each, asked) + 0.1


@pytest.mark.parametrize("load", [0.1, 1.5])
def test_a_partition_that_is_heard_is_not_silent_however_far_behind_it_is(load: float) -> None:
    behind = rows(*((3, at - 600, at) for at in range(60)))
    ahead = links(60, dies_at=0)
    both = pa.concat_tables([behind, ahead]).sort_by("came")
    cost = Costs(of={"window_aggregate": round(load * SECOND / 31)})
    # It is there from the first row on, so that it does not turn up late.
    run = VirtualRun(parse_network(script(LULL)), feeds={"s": [both]}, cost=cost)
    assert run.run().sources["s"].late == 0


def test_a_partition_whose_rows_wait_unread_is_not_silent(tmp_path: Path) -> None:
    """As when Spark reads a part of what there is: three hours ago all sent, and the last link is read last."""
    network = parse_network(script(LULL, FILES))
    staged, now, late = Staged(network, tmp_path, live=True), 10_800, 0
    staged.batch({"s": [rows(*((link, 0, 0) for link in range(4)))]}, now * SECOND, all=False)
    for start in range(0, 40, 4):
        busy = rows(*((link, at, 0) for at in range(start, start + 4) for link in range(3)))
        files = [busy, rows((3, start + 1, 0), (3, start + 3, 0))]
        for table in files:
            now += 1
            staged.batch({"s": [table]}, now * SECOND, all=False)
        late = staged.record["sources"]["s"]["late"]
    assert late == 0


@pytest.mark.slow
def test_a_dead_partition_does_not_stall_a_stream_of_which_spark_always_has_more(tmp_path: Path) -> None:
    network = parse_network(script(LULL, FILES))
    staged, came = Staged(network, tmp_path, live=True), {}
    for now in range(1, 41):
        each = rows(*((link, now - 0.5, now) for link in range(4) if link < 3 or now < 12))
        for result in staged.batch({"s": [each]}, now * SECOND, all=False).get("q", []):
            came[result["window_end"].second] = now
    # The last row of the last link has come at 11: three seconds of its silence are needed for the second window.
    assert came == {5: 7, 10: 15, **{end: end + 4 for end in range(15, 40, 5)}}
    assert staged.record["sources"]["s"]["late"] == 0
    staged.restart()
    assert staged.batch({"s": [rows((0, 43.5, 0))]}, 44 * SECOND, all=False)["q"], "it goes on after a restart"


@pytest.mark.slow
def test_a_dead_partition_does_not_stall_a_local_run_that_always_has_rows() -> None:
    clock = CountedClock()

    def endless() -> Iterator[Any]:
        began = clock.now()
        while True:
            clock.time += 5_000
            now = clock.now()
            stamps = pa.array([now] * 4, pa.int64()).cast(TIMESTAMP)
            table = pa.table({"link": pa.array(range(4), pa.int32()), "ts": stamps, "came": stamps})
            yield table if now < began + SECOND // 2 else table.slice(0, 3)

    order = LULL.replace("1 SECOND", "10 MILLISECONDS").replace("3 SECONDS", "100 MILLISECONDS")
    sql = script(order, "iterable", window="200 MILLISECONDS")
    run = LocalRun(parse_network(sql), feeds={"s": endless()}, clock=clock)
    with running(run):
        wait_for(lambda: run.report().sources["s"].enabled >= 5)
    assert run.report().sources["s"].late == 0
    # By then the last link has been dead for as many windows.
    assert len([row for each in run.memory["q"] for row in each.to_pylist()]) >= 5


@pytest.mark.slow
@pytest.mark.spark
def test_a_dead_partition_does_not_stall_a_dataframe_on_spark(tmp_path: Path, spark_session: Any) -> None:
    frame = spark_session.readStream.name("rated").format("rate").option("rowsPerSecond", 40).load()
    frame = frame.selectExpr("value % 4 AS link", "timestamp AS ts", "value").where("link < 3 OR value < 40")
    net = mr.Network()
    stream = net.stream(
        "s", frame.select("link", "ts"), time="ts", partitioned_by="link", disorder="500 milliseconds", lull="1 second"
    )
    net.query("q", stream.window(range="1 second", slide="1 second").agg(n="count(*)"))
    handle = net.run(on="spark", background=True, trigger="200 milliseconds", checkpoint=tmp_path / "state")
    try:
        # The last link has been dead since the second window, and Spark has rows in every micro-batch.
        wait_for(lambda: handle.results("q").num_rows >= 4)
        assert handle.metrics().sources["s"].late == 0
    finally:
        handle.stop()
