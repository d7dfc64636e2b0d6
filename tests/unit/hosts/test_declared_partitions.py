"""A slow partition that first appears late loses no row if it is declared ahead, or within the grace at the start."""

from __future__ import annotations

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
from millrace.kernel.progress.time_contract import TimeContract
from millrace.language import parse_network
from tests.unit.hosts.spark.staged import Staged

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
DEVICES = 100
VALUES = f"VALUES ({', '.join(map(str, range(DEVICES)))})"
GRACE = "GRACE INTERVAL 1 MINUTE"
SOURCES = {"iterable": "iterable REPLAY BY came", "files": "parquet OPTIONS (path 'in')"}


def script(clause: str, source: str = "iterable") -> str:
    return f"""CREATE STREAM s (device INT, ts TIMESTAMP, came TIMESTAMP) TIMESTAMP BY ts ORDERED
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
    run = VirtualRun(parse_network(script(clause)), feeds={"s": fed()})
    return run.run().sources["s"].late, [row["n"] for each in run.memory["q"] for row in each.to_pylist()]


def on_local(clause: str, folder: Path) -> tuple[int, list[int]]:
    sql = script(clause).replace(" REPLAY BY came", "")
    run = LocalRun(parse_network(sql), RunOptions("local", "end"), feeds={"s": fed()})
    return run.run().sources["s"].late, [row["n"] for each in run.memory["q"] for row in each.to_pylist()]


def cut_for_spark(clause: str, folder: Path) -> tuple[int, list[int]]:
    staged, results = Staged(parse_network(script(clause, "files")), folder), list[dict[str, Any]]()
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
@pytest.mark.parametrize("clause", [VALUES, GRACE])
def test_a_slow_partition_that_first_appears_late_loses_no_row(host: str, clause: str, tmp_path: Path) -> None:
    late, counts = HOSTS[host](clause, tmp_path)
    assert (late, sorted(counts)) == (0, sorted(oracle(fed())))


def test_without_either_it_loses_them(tmp_path: Path) -> None:
    assert [HOSTS[host]("", tmp_path)[0] > 20 for host in ("virtual", "local")] == [True, True]


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
