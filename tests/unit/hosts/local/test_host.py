from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import sleep, time_ns
from typing import Any

import pyarrow as pa
import pytest

from millrace.connectors.stream_input import CHUNK_ROWS
from millrace.errors import RequestError, RunError
from millrace.hosts.local.host import LocalRun
from millrace.hosts.report import Listeners
from millrace.hosts.run_options import RunOptions
from millrace.hosts.sinks.outputs import Outputs
from millrace.hosts.virtual.host import VirtualRun
from millrace.kernel.progress.quarantine import Locate
from millrace.language import parse_network
from millrace.testing import in_memory, table
from tests.background import running
from tests.e2e.commands import wait_for
from tests.unit.hosts.fed import Fed, row

TIMESTAMP = pa.timestamp("us", tz="UTC")
STREAM = "CREATE STREAM s (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED {} FROM {};"
COUNT = "CREATE QUERY q AS SELECT count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts];"


def rows(*times: str) -> pa.Table:
    return table("\n".join(["v | ts", *(f"1 | {time}" for time in times)]), {"v": pa.int32(), "ts": TIMESTAMP}).table


def counts(run: LocalRun) -> list[int]:
    return [row["n"] for each in run.memory["q"] for row in each.to_pylist()]


def test_a_live_run_ends_when_its_feeds_do_and_leaves_windows_open() -> None:
    run = LocalRun(parse_network(STREAM.format("", "iterable") + COUNT), feeds={"s": [rows("00:00:01", "00:00:12")]})
    report = run.run()
    assert counts(run) == [1]
    assert (report.received, report.held) == (2, 1)


def test_a_live_run_can_be_stopped_from_another_thread() -> None:
    def endless() -> Iterator[Any]:
        yield rows("00:00:01")
        while True:
            yield []

    run = LocalRun(parse_network(STREAM.format("", "iterable") + COUNT), feeds={"s": endless()})
    with running(run):
        wait_for(lambda: run.report().received == 1)


def test_a_silent_stream_is_spoken_for_in_a_live_run_only() -> None:
    sql = STREAM.format("ETS ON DEMAND SKEW INTERVAL 0 SECONDS", "iterable") + COUNT
    bounded = LocalRun(parse_network(sql), RunOptions("local", "available"), feeds={"s": [rows("00:00:09.99")]})
    bounded.run()
    assert counts(bounded) == []
    assert bounded.report().sources["s"].enabled == 0


def test_rows_that_do_not_fit_are_refused_with_the_columns(tmp_path: Path) -> None:
    run = LocalRun(parse_network(STREAM.format("", "iterable") + COUNT), feeds={"s": [[{"v": 1, "ts": "soon"}]]})
    with pytest.raises(RunError, match="do not fit its columns") as raised:
        run.run()
    assert "ts" in raised.value.hint


def test_files_that_sort_before_those_read_are_not_passed_over_in_silence(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "2.csv").write_text("v,ts\n1,2024-01-01 00:00:00\n")
    network = in_memory(parse_network(STREAM.format("", f"csv OPTIONS (path '{tmp_path / 'in'}')") + COUNT))
    LocalRun(network, RunOptions("local", "available", checkpoint=tmp_path / "state")).run()
    (tmp_path / "in" / "1.csv").write_text("v,ts\n1,2024-01-01 00:00:00\n")
    with pytest.raises(RunError, match=r"/1.csv. of stream .s. sorts before .2.csv., which has been read") as raised:
        LocalRun(network, RunOptions("local", "available", checkpoint=tmp_path / "state")).run()
    assert raised.value.hint


def test_files_of_a_pattern_are_read_by_folders_and_names(tmp_path: Path) -> None:
    """As text "day-2/x.csv" would be before "day/x.csv", which has been read by then."""
    for second, folder in enumerate(("day", "day-2", "day.3")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_text(f"v,ts\n{second},2024-01-01 00:00:0{second}\n")
    source = f"csv OPTIONS (path '{tmp_path / '*' / '*.csv'}')"
    run = LocalRun(
        in_memory(parse_network(STREAM.format("", source) + "SELECT v FROM s;")), RunOptions("local", "available")
    )
    run.run()
    assert [row["v"] for rows in run.memory.values() for each in rows for row in each.to_pylist()] == [0, 1, 2]


def test_two_queries_do_not_write_to_one_folder(tmp_path: Path) -> None:
    sink = f"CREATE SINK {{}} TO csv OPTIONS (path '{tmp_path}');"
    sql = STREAM.format("", "iterable") + sink.format("one") + sink.format("two")
    sql += "CREATE QUERY a INTO one AS SELECT v FROM s; CREATE QUERY b INTO two AS SELECT v FROM s;"
    with pytest.raises(RequestError, match='queries "a" and "b" write to one folder'):
        LocalRun(parse_network(sql), feeds={"s": []})


def test_publishing_again_changes_nothing(tmp_path: Path) -> None:
    hidden, final = tmp_path / ".part-1", tmp_path / "part-1"
    hidden.write_text("rows")
    for _ in range(2):
        Outputs([], Listeners(), fresh=True).publish({str(hidden): str(final)})
    assert [path.name for path in tmp_path.iterdir()] == ["part-1"]
    assert final.read_text() == "rows"


def test_a_replay_keeps_the_skew_between_streams() -> None:
    streams = "".join(
        f"CREATE STREAM {name} (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable REPLAY BY ts SPEED 100;"
        for name in ("a", "b")
    )
    network = parse_network(streams + "CREATE QUERY q AS SELECT v, ts FROM a UNION b;")
    feeds = {"a": [rows("00:00:00", "00:00:20")], "b": [rows("00:00:10", "00:00:30")]}
    run = LocalRun(network, RunOptions("local", "end"), feeds=feeds)
    run.run()
    seconds = [row["ts"].second for each in run.memory["q"] for row in each.to_pylist()]
    assert seconds == [0, 10, 20, 30]


# Fairness and back-pressure

TWO = """
CREATE STREAM flood (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 0 SECONDS FROM iterable;
CREATE STREAM calm (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 0 SECONDS FROM iterable;
"""


def flood(rows: int, first: int = 0) -> pa.Table:
    numbers = pa.array(range(first, first + rows), pa.int64())
    return pa.table({"v": numbers.cast(pa.int32()), "ts": numbers.cast(TIMESTAMP)})


def test_a_query_that_floods_does_not_starve_another() -> None:
    left: list[int] = []
    run = LocalRun(
        parse_network(
            TWO + "CREATE QUERY busy AS SELECT v FROM flood WHERE v % 2 = 0; CREATE QUERY q AS SELECT v FROM calm;"
        ),
        feeds={"flood": [flood(CHUNK_ROWS)], "calm": [flood(1, first=number) for number in range(8)]},
        listeners=Listeners(
            results=lambda query, rows: left.extend([run.executor.edges.backlog("flood")] * len(rows) * (query == "q"))
        ),
    )
    run.executor.step_size.rows = 128
    report = run.run()
    assert report.results == {"busy": CHUNK_ROWS // 2, "q": 8}
    assert len(left) == 8 and all(left), "each row left while rows of the other stream still waited"


def test_a_stream_whose_rows_still_wait_is_neither_read_nor_taken_for_silent() -> None:
    waiting: list[int] = []
    chunks = [flood(CHUNK_ROWS, first=number * CHUNK_ROWS) for number in range(6)]
    ahead = flood(1, first=6 * CHUNK_ROWS)
    run = LocalRun(
        parse_network(TWO + "CREATE QUERY q AS SELECT v, ts FROM flood UNION calm ORDER BY ts;"),
        feeds={"flood": chunks, "calm": [ahead]},
        listeners=Listeners(results=lambda query, rows: waiting.append(run.executor.edges.backlog("flood"))),
    )
    run.executor.step_size.rows = 4096
    report = run.run()
    assert max(waiting) <= 2 * CHUNK_ROWS
    assert report.sources["flood"].late == 0, "nobody spoke for it while it had more to send"
    assert report.results["q"] >= 6 * CHUNK_ROWS


# Paced streams


def test_a_replayed_row_is_let_in_when_it_is_due_and_its_latency_counts_from_there() -> None:
    delivered: list[int] = []
    stream = "CREATE STREAM s (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable REPLAY BY ts SPEED 10;"
    run = LocalRun(
        parse_network(stream + "CREATE QUERY q AS SELECT v FROM s;"),
        feeds={"s": [rows("00:00:00", "00:00:01", "00:00:02")]},
        listeners=Listeners(results=lambda _, table: delivered.extend([time_ns() // 1_000] * table.num_rows)),
    )
    assert run.intake.pace is not None
    run.run()
    # By the run's own clock, and from when its pace began: that is before `run` is called.
    waited = [now - run.intake.pace.began - due for now, due in zip(delivered, (0, 100_000, 200_000), strict=True)]
    assert min(waited) >= 0
    latency = run.metrics().sinks["q"].latency
    assert latency.count == 3
    assert 0 < latency.mean <= sum(waited) / 3, "none of it is that a row was held back"


REPLAYED = "TIMESTAMP BY ts ORDERED {} FROM iterable REPLAY BY ts SPEED {};"
REPLAYS = {
    "lull": (
        "CREATE STREAM s (v INT, ts TIMESTAMP) " + REPLAYED.format("ETS ON DEMAND LULL INTERVAL 3 SECONDS", 100),
        "SELECT count(*) AS n FROM s [RANGE 1 SECOND SLIDE 1 SECOND WA ts]",
        [at / 5 for at in range(100)],
    ),
    "skew": (
        "CREATE STREAM s (v INT, ts TIMESTAMP) "
        + REPLAYED.format("ETS ON DEMAND SKEW INTERVAL 100 MILLISECONDS", 0.25)
        + "CREATE STREAM b (v INT, ts TIMESTAMP) "
        + REPLAYED.format("", 0.25),
        "SELECT v FROM s UNION b ORDER BY ts",
        [0.0, 0.1, 0.2],
    ),
}


def of_2024(seconds: list[float]) -> pa.Table:
    times = pa.array([1_717_200_000_000_000 + int(each * 1e6) for each in seconds]).cast(TIMESTAMP)
    return pa.table({"v": pa.array(range(len(seconds)), pa.int32()), "ts": times})


@pytest.mark.slow
@pytest.mark.parametrize("name", REPLAYS)
def test_the_ets_of_a_replay_are_made_by_the_replayed_clock_as_in_virtual_time(name: str) -> None:
    declared, select, seconds = REPLAYS[name]
    network = parse_network(f"{declared} CREATE QUERY q AS {select};")
    answers = []
    for host in (LocalRun, VirtualRun):
        # The second stream asks for the bound of the first one all the time.
        run = host(network, feeds={"s": [of_2024(seconds)], "b": [of_2024([at / 100 for at in range(30)])]})
        report = run.run()
        assert report.sources["s"].late == 0
        assert report.sources["s"].enabled > 0, "an ETS was asked for"
        answers.append(sorted(tuple(row.values()) for each in run.memory["q"] for row in each.to_pylist()))
    assert answers[0] == answers[1]


def test_rows_read_from_elsewhere_count_from_when_they_were_read() -> None:
    run = LocalRun(
        parse_network(STREAM.format("", "iterable") + COUNT),
        RunOptions("local", "end"),
        feeds={"s": [rows("00:00:01")]},
    )
    stamped_at = run.executor.push
    seen: list[int] = []

    def push(source: str, batch: pa.RecordBatch, now: int, locate: Locate | None = None) -> None:
        seen.extend(now - each for each in batch.column("__arrived").to_pylist())
        stamped_at(source, batch, now, locate)

    run.executor.push = push  # type: ignore[method-assign]
    run.run()
    assert seen == [0]


# Silence


@pytest.mark.parametrize("ets", ["ETS ON DEMAND SKEW INTERVAL 20 MILLISECONDS", "ETS ON DEMAND LULL INTERVAL 1 HOUR"])
def test_the_last_window_closes_when_every_stream_is_silent(ets: str) -> None:
    feeds = {"a": Fed(), "b": Fed()}
    declared = "".join(
        f"CREATE STREAM {name} (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED {ets} FROM iterable;" for name in feeds
    )
    sql = declared + "CREATE QUERY q AS SELECT count(*) AS n FROM a UNION b [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts];"
    run = LocalRun(parse_network(sql), feeds=feeds)
    for feed in feeds.values():
        feed.tell(row(9.95, v=1))
    with running(run):
        wait_for(lambda: counts(run) == [2])
        assert all(run.report().sources[name].enabled for name in feeds)


def test_a_stream_that_gives_empty_items_has_not_ended() -> None:
    sql = STREAM.format("", "iterable") + COUNT
    run = LocalRun(
        parse_network(sql), RunOptions("local", "end"), feeds={"s": [[], rows("00:00:01"), [], rows("00:00:02")]}
    )
    run.run()
    assert counts(run) == [2]


def test_two_runs_do_not_go_on_from_one_checkpoint(tmp_path: Path) -> None:
    network = parse_network(STREAM.format("", "iterable") + COUNT)
    first = LocalRun(
        network, RunOptions("local", checkpoint=tmp_path, control=tmp_path / "one"), feeds={"s": [rows("00:00:01")]}
    )
    with pytest.raises(RequestError, match="another run goes on from the checkpoint"):
        LocalRun(network, RunOptions("local", checkpoint=tmp_path, control=tmp_path / "two"), feeds={"s": []})
    first.run()
    LocalRun(network, RunOptions("local", checkpoint=tmp_path), feeds={"s": [rows("00:00:01")]}).run()


def test_a_live_run_waits_for_what_silence_still_releases() -> None:
    sql = """CREATE STREAM s (v INT) INTERNAL TIMESTAMP AS ts ETS ON DEMAND FROM iterable;
    CREATE QUERY q AS SELECT count(*) AS n FROM s [RANGE 50 MILLISECONDS SLIDE 50 MILLISECONDS WA ts];"""
    run = LocalRun(parse_network(sql), feeds={"s": [pa.table({"v": pa.array([1, 2], pa.int32())})]})
    assert run.run().held == 0
    assert sum(counts(run)) == 2


def test_a_live_run_does_not_wait_for_what_only_the_end_releases() -> None:
    stream = "CREATE STREAM {} (v INT, ts TIMESTAMP) INTERNAL TIMESTAMP AS ts FROM iterable;"
    query = "CREATE QUERY q AS SELECT count(*) AS n FROM a UNION b [ROWS 4 SLIDE 1];"
    feeds = {"a": [rows("00:00:01", "00:00:02")], "b": [rows("00:00:03")]}
    run = LocalRun(parse_network(stream.format("a") + stream.format("b") + query), feeds=feeds)
    thread = Thread(target=run.run)
    thread.start()
    thread.join(300)
    run.stop()
    assert run.report().received == 3
    assert not thread.is_alive(), "its streams have ended, and no window can be completed any more"


def test_heartbeats_faster_than_work_do_not_keep_a_run_from_ending() -> None:
    sql = """CREATE STREAM s (v INT) INTERNAL TIMESTAMP AS ts ETS EVERY INTERVAL 1 MICROSECOND FROM iterable;
    CREATE QUERY q AS SELECT v FROM s ORDER BY ts;"""
    run = LocalRun(parse_network(sql), feeds={"s": Fed()})
    with running(run):
        pass


@pytest.mark.slow
def test_time_stands_still_for_a_replayed_stream_while_nobody_runs(tmp_path: Path) -> None:
    script = """CREATE STREAM a (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
      ETS ON DEMAND SKEW INTERVAL 10 MILLISECONDS FROM iterable REPLAY BY ts;
    CREATE STREAM b (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable REPLAY BY ts;
    CREATE QUERY q AS SELECT v FROM a UNION b ORDER BY ts;"""
    feeds = {"a": [rows("00:00:00", "00:00:00.6")], "b": [rows("00:00:00.1", "00:00:00.2", "00:00:00.7")]}
    first = LocalRun(parse_network(script), RunOptions("local", checkpoint=tmp_path), feeds=feeds)
    with running(first):
        wait_for(lambda: first.report().received >= 3)
    sleep(1)
    report = LocalRun(parse_network(script), RunOptions("local", checkpoint=tmp_path), feeds=feeds).run()
    assert (report.received, report.sources["a"].late) == (5, 0)
