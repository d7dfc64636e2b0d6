"""A slow partition that first appears late loses no row if it is declared ahead, or within the grace at the start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import millrace as mr
from millrace.errors import MillraceError
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.hosts.virtual.host import VirtualRun
from millrace.kernel.elements import NO_BOUND
from millrace.kernel.progress.ets import clock_of_ets, ets_at
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.time_contract import PartitionTable, TimeContract
from millrace.language import parse_network
from millrace.testing import Bench
from tests.unit.hosts.spark.staged import Staged

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
DEVICES = 100
VALUES = f"VALUES ({', '.join(map(str, range(DEVICES)))})"
GRACE = "GRACE INTERVAL 1 MINUTE"
LISTED = "VALUES FROM devices (id)"
LIST = [{"id": number} for number in [*range(DEVICES), 7, None]]
"""Each device of the table once, one of them twice, and a row without a device."""
SOURCES = {"iterable": "iterable REPLAY BY came", "files": "parquet OPTIONS (path 'in')"}


def script(clause: str, source: str = "iterable") -> str:
    return f"""CREATE TABLE devices (id BIGINT, site STRING) FROM iterable;
    CREATE STREAM s (device INT, ts TIMESTAMP, came TIMESTAMP) TIMESTAMP BY ts ORDERED
      PARTITIONED BY (device) {clause} FROM {SOURCES[source]};
    CREATE QUERY q AS SELECT window, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];"""


def fed() -> list[pa.Table]:
    """Four minutes of 100 devices that send every ten seconds, in files of half a minute; the last one begins after
    twenty seconds and is ten minutes behind."""
    found = []
    for begin in range(3600, 3840, 30):
        rows = [
            (device, second - (600 if device == DEVICES - 1 else 0), second)
            for second in range(begin, begin + 30, 10)
            for device in range(DEVICES)
            if device < DEVICES - 1 or second >= 3620
        ]
        devices, times, came = zip(*rows, strict=True)
        columns = [pa.array([each * SECOND for each in column]).cast(TIMESTAMP) for column in (times, came)]
        found.append(pa.table({"device": pa.array(devices, pa.int32()), "ts": columns[0], "came": columns[1]}))
    return found


def oracle(tables: list[pa.Table]) -> list[int]:
    minutes: dict[int, int] = {}
    for second in (int(each) // SECOND for table in tables for each in table["ts"].cast(pa.int64()).to_pylist()):
        minutes[second // 60] = minutes.get(second // 60, 0) + 1
    return [minutes[minute] for minute in sorted(minutes)]


def on_virtual(clause: str, folder: Path) -> tuple[int, list[int]]:
    run = VirtualRun(parse_network(script(clause)), feeds={"s": fed(), "devices": LIST})
    return run.run().sources["s"].late, [row["n"] for each in run.memory["q"] for row in each.to_pylist()]


def on_local(clause: str, folder: Path) -> tuple[int, list[int]]:
    sql = script(clause).replace(" REPLAY BY came", "")
    run = LocalRun(parse_network(sql), RunOptions("local", "end"), feeds={"s": fed(), "devices": LIST})
    return run.run().sources["s"].late, [row["n"] for each in run.memory["q"] for row in each.to_pylist()]


def cut_for_spark(clause: str, folder: Path) -> tuple[int, list[int]]:
    staged = Staged(parse_network(script(clause, "files")), folder, tables={"devices": LIST})
    results: list[dict[str, Any]] = []
    for number, table in enumerate(fed()):
        if number == 3:
            staged.restart()
        # Two tasks read a micro-batch, as with large files.
        halves = [table.slice(0, table.num_rows // 2), table.slice(table.num_rows // 2)]
        results += staged.batch({"s": halves}, (4000 + number) * SECOND).get("q", [])
    late = staged.record["sources"]["s"]["late"]
    results += staged.batch({}, 5000 * SECOND, end=True).get("q", [])
    return late, [row["n"] for row in sorted(results, key=lambda row: row["window_end"])]


HOSTS = {"virtual": on_virtual, "local": on_local, "spark": cut_for_spark}


@pytest.mark.slow
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("clause", [VALUES, LISTED, GRACE])
def test_a_slow_partition_that_first_appears_late_loses_no_row(host: str, clause: str, tmp_path: Path) -> None:
    late, counts = HOSTS[host](clause, tmp_path)
    assert (late, sorted(counts)) == (0, sorted(oracle(fed())))


def test_without_either_it_loses_them(tmp_path: Path) -> None:
    assert [HOSTS[host]("", tmp_path)[0] > 20 for host in ("virtual", "local")] == [True, True]


# A table that changes

LISTS = ([1], [1, 2], [1, 2], [1, 2, 3], [1, 2])
"""What the table lists at first, and after each refresh."""
SENT = (
    [(1, 0), (1, 35)],
    [(1, 70)],
    [(2, 41)],
    [(2, 75), (1, 90)],
    [(1, 91)],
)
"""The rows after each, device and second of each."""
CLOSED = ([1], [], [1], [], [1])
"""The rows of the windows of ten seconds that close then: device 2 is waited for from the first refresh on, device 3
from the third one on, and not after the last one."""
WATCHED = script(LISTED).replace("1 MINUTE", "10 SECONDS")


def sent(number: int, came: int = 0) -> pa.Table:
    devices, seconds = zip(*SENT[number], strict=True)
    times = pa.array([second * SECOND for second in seconds]).cast(TIMESTAMP)
    arrivals = pa.array([came * SECOND] * len(seconds)).cast(TIMESTAMP)
    return pa.table({"device": pa.array(devices, pa.int32()), "ts": times, "came": arrivals})


def listed() -> Callable[[], list[dict[str, int]]]:
    """A table that lists others each time it is read."""
    lists = iter(LISTS)
    return lambda: [{"id": each} for each in next(lists)]


def closed_on_bench(folder: Path) -> list[list[int]]:
    bench, found = Bench(WATCHED.replace(" REPLAY BY came", ""), tables={"devices": listed()}), []
    for number in range(len(SENT)):
        if number:
            bench.refresh("devices")
            bench.restart()
        bench.push("s", sent(number))
        found.append([row["n"] for row in bench.results("q")])
    assert bench.metrics().sources["s"].late == 0
    return found


def closed_on_virtual(folder: Path) -> list[list[int]]:
    table = "iterable REFRESH EVERY INTERVAL 10 SECONDS;"
    came = [10, 25, 35, 45, 55]
    feeds = {"s": [sent(number, at) for number, at in enumerate(came)], "devices": listed()}
    run = VirtualRun(parse_network(WATCHED.replace("iterable;", table, 1)), feeds=feeds)
    assert run.run().sources["s"].late == 0
    closed = [(each.now, row["n"]) for each in run.deliveries for row in each.rows.to_pylist()]
    # What the end of the stream releases came with the last rows.
    released = [[n for now, n in closed if now == at * SECOND] for at in came]
    return [*released[:-1], released[-1][:1]]


def closed_as_on_spark(folder: Path) -> list[list[int]]:
    network = parse_network(WATCHED.replace("iterable REPLAY BY came", "parquet OPTIONS (path 'in')"))
    staged, found = Staged(network, folder, tables={"devices": listed()}), []
    for number in range(len(SENT)):
        if number:
            staged.refresh("devices")
            staged.restart()
        rows = staged.batch({"s": [sent(number)]}, (100 + number) * SECOND).get("q", [])
        found.append([row["n"] for row in rows])
    assert staged.record["sources"]["s"]["late"] == 0
    return found


@pytest.mark.parametrize("host", [closed_on_bench, closed_on_virtual, closed_as_on_spark])
def test_a_refreshed_table_adds_partitions_and_takes_those_away_that_have_sent_nothing(
    host: Callable[[Path], list[list[int]]], tmp_path: Path
) -> None:
    assert host(tmp_path) == [*CLOSED]


# The edge of a stream


def rows(*pairs: tuple[str | None, int]) -> pa.RecordBatch:
    keys, times = zip(*pairs, strict=True)
    return pa.record_batch({"k": pa.array(keys, pa.string()), "ts": pa.array(times, pa.int64()).cast(TIMESTAMP)})


def edge(lull: int | None = 10, **given: Any) -> Ingress:
    return Ingress(TimeContract("external", "ts", 0, "on_demand", lull=lull, partitions=("k",), **given))


def test_the_bound_waits_for_each_declared_partition_or_for_its_silence() -> None:
    ingress = edge(declared=(("a",), ("b",), (None,)))
    ingress.admit(rows(("a", 100), (None, 90)), now=100)
    assert ingress.bound == NO_BOUND
    assert ets_at(ingress, 109) is None and ets_at(ingress, 110) == 100, "all are silent since the first row came"
    assert clock_of_ets(ingress, 95) == 110
    late = ingress.admit(rows(("b", 20)), now=105).late
    assert len(late) == 0 and ingress.bound == 20


def test_what_is_declared_is_waited_for_after_a_restart_and_may_have_grown() -> None:
    before = edge(declared=(("a",),))
    before.admit(rows(("a", 100)), now=100)
    after = edge(declared=(("a",), ("b",)))
    after.restore(before.save())
    after.admit(rows(("a", 200)), now=200)
    assert (before.bound, after.bound) == (100, 100)
    after.admit(rows(("b", 150)), now=201)
    assert after.bound == 150


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_bound_rises_when_a_partition_has_sent_rows_over_the_grace(size: int) -> None:
    ingress, bounds = edge(lull=None, grace=50), []
    every = [("a", 100), ("b", 30), ("a", 149), ("c", 10), ("a", 150), ("c", 12)]
    for start in range(0, len(every), size):
        admitted = ingress.admit(rows(*every[start : start + size]), now=1000)
        assert len(admitted.late) == 0
        bounds.append(ingress.bound)
    assert bounds[-1] == 12
    assert all(bound == NO_BOUND for bound in bounds[: 4 // size])


def test_in_the_grace_a_silent_stream_trails_its_clock_by_as_much() -> None:
    ingress = edge(grace=50)
    ingress.admit(rows(("a", 100)), now=100)
    assert ets_at(ingress, 149) is None and ets_at(ingress, 150) == 100
    assert clock_of_ets(ingress, 120) == 170
    ingress.admit(rows(("a", 151)), now=151)
    assert ingress.bound == 151 and ets_at(ingress, 165) == 155, "by the lull alone"


def test_one_that_is_no_longer_declared_counts_only_if_it_has_sent_rows() -> None:
    ingress = edge(lull=None, declared=(("a",), ("b",), ("c",)))
    ingress.admit(rows(("a", 100), ("b", 90)), now=100)
    again = edge(lull=None, declared=(("a",), ("b",), ("c",)))
    for each in (ingress, again):
        each.restore(ingress.save())
        each.order.declare([("a",)])
        each.admit(rows(("a", 110)), now=110)
        assert each.bound == 90


# What users write


def contract(clause: str) -> TimeContract:
    return parse_network(script(clause).replace("device INT", "device INT, site STRING")).streams()[0].time


def test_partitions_are_declared_in_sql_and_in_python_alike() -> None:
    declared = contract("VALUES (1, -2, NULL) GRACE INTERVAL 5 SECONDS")
    assert (declared.declared, declared.grace) == ((("1",), ("-2",), (None,)), 5 * SECOND)
    net = mr.Network()
    net.stream(
        "s", "device INT, ts TIMESTAMP", time="ts", partitioned_by="device", partitions=[1, -2, None], grace="5 seconds"
    )
    net.sql("CREATE QUERY q AS SELECT device FROM s")
    assert net.bound().streams()[0].time == declared
    assert "in each partition of device, 3 declared, grace 5 SECONDS" in net.explain()


def test_a_table_lists_partitions_in_sql_and_in_python_alike() -> None:
    declared = contract("VALUES FROM Devices (ID) GRACE INTERVAL 5 SECONDS")
    assert (declared.listed_in, declared.declared) == (PartitionTable("devices", ("id",)), ())
    net = mr.Network().table("devices", "id BIGINT, site STRING", [])
    net.stream(
        "s",
        "device INT, ts TIMESTAMP",
        time="ts",
        partitioned_by="device",
        partitions={"devices": "id"},
        grace="5 seconds",
    )
    net.sql("CREATE QUERY q AS SELECT device FROM s")
    assert net.bound().streams()[0].time == declared
    assert [each.name for each in net.bound().tables()] == ["devices"]
    assert "in each partition of device, declared in table devices (id), grace 5 SECONDS" in net.explain()


def test_partitions_of_several_columns_are_tuples() -> None:
    clause = "VALUES ((1, 'it''s'), ('2', NULL))"
    text = script(clause).replace("device INT", "device INT, site STRING").replace("(device)", "(device, site)")
    assert parse_network(text).streams()[0].time.declared == (("1", "it's"), ("2", None))


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("VALUES ((1, 2))", "a partition has 1 value, not 2"),
        ("VALUES ('x')", "'x' is not a valid INT"),
        ("VALUES (device)", "device is not a constant"),
        ("VALUES (1, '1')", "partition '1' is listed twice"),
        ("VALUES ()", "expected a partition"),
        ("GRACE INTERVAL 0 SECONDS", "GRACE takes a positive interval"),
        ("VALUES FROM device (id)", 'table "device" is not declared(.|\n)*Did you mean "devices"'),
        ("VALUES FROM devices (idd)", 'column "idd" does not exist(.|\n)*Did you mean "id"'),
        ("VALUES FROM devices (site)", '"site" of table "devices" is STRING, and "device" of the stream is INT'),
        ("VALUES FROM devices (id, site)", "a partition has 1 value, not 2"),
        ("VALUES FROM devices", "expected"),
    ],
)
def test_what_is_no_list_of_partitions_is_refused(clause: str, said: str) -> None:
    with pytest.raises(MillraceError, match=said):
        contract(clause)


@pytest.mark.parametrize("given", [{"partitions": [1]}, {"grace": "1 second"}])
def test_python_refuses_partitions_of_a_stream_without_any(given: dict[str, Any]) -> None:
    with pytest.raises(MillraceError, match="needs partitioned_by"):
        mr.Network().stream("s", "device INT, ts TIMESTAMP", time="ts", **given)
    with pytest.raises(MillraceError, match="partitions takes a list"):
        mr.Network().stream("s", "device INT, ts TIMESTAMP", time="ts", partitioned_by="device", partitions="abc")
    with pytest.raises(MillraceError, match=r'table "devices" is not declared(.|\n)*with CREATE TABLE before'):
        mr.Network().stream(
            "s", "device INT, ts TIMESTAMP", time="ts", partitioned_by="device", partitions={"devices": "id"}
        )
