"""A hundred devices that each promise their own minutes, one of them ten minutes behind: it holds nobody back."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from millrace.testing import Bench, Host

DEVICES = 100
SLOW = "d00"
BEHIND = 10
"""Minutes."""
MINUTES = 15
MIDNIGHT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)
SQL = """
CREATE STREAM readings (device STRING, watt INT, complete_until TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts PUNCTUATED BY complete_until PER (device) LATE INTO overdue
  FROM iterable;
CREATE QUERY per_device AS
  SELECT window, device, count(*) AS n, sum(watt) AS watt FROM readings [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts]
  GROUP BY device;
CREATE QUERY in_all AS SELECT window, count(*) AS n FROM readings [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];
CREATE QUERY late AS SELECT device, ts FROM overdue;
"""
SCHEMA = pa.schema([("device", pa.string()), ("watt", pa.int32()), ("complete_until", pa.timestamp("us", tz="UTC")),
                    ("ts", pa.timestamp("us", tz="UTC"))])  # fmt: skip

Seen = Counter[tuple[str, int]]
"""How many rows a result says that a device, or all of them, had in a minute."""


def own_minute(device: str, minute: int) -> int:
    """Which minute a device tells of while the others tell of another."""
    return minute - BEHIND if device == SLOW else minute


def sent(minute: int) -> pa.Table:
    """What arrives in a minute: three readings a device, the last of which ends the minute."""
    rows = []
    for second in (5, 25, 55):
        for device in (f"d{number:02d}" for number in range(DEVICES)):
            start = MIDNIGHT + own_minute(device, minute) * MINUTE
            until = start + MINUTE if second == 55 else None
            ts = start + dt.timedelta(seconds=second)
            rows.append({"device": device, "watt": minute % 7, "complete_until": until, "ts": ts})
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def by_device(upto: int) -> Seen:
    """The windows that each device has closed by its own promises."""
    devices = [f"d{number:02d}" for number in range(DEVICES)]
    return Counter({(device, own_minute(device, minute)): 3 for minute in range(upto) for device in devices})


def of_all(upto: int) -> Seen:
    """The windows that even the slow device has passed."""
    return Counter({("all", minute): 3 * DEVICES if minute >= 0 else 3 for minute in range(-BEHIND, upto - BEHIND)})


def of_all_in_the_end() -> Seen:
    rows = Counter[tuple[str, int]]()
    for (_, minute), count in by_device(MINUTES).items():
        rows["all", minute] += count
    return rows


def seen(rows: list[dict[str, Any]]) -> Seen:
    found = Counter[tuple[str, int]]()
    for row in rows:
        found[row.get("device", "all"), (row["window_start"] - MIDNIGHT) // MINUTE] += row["n"]
    assert len(found) == len(rows), "a window is reported once"
    return found


@pytest.mark.parametrize("restarting", [False, True])
def test_each_minute_of_the_fast_devices_is_there_as_soon_as_they_promise_it(restarting: bool) -> None:
    bench = Bench(SQL)
    told, told_of_all = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for minute in range(MINUTES):
        bench.push("readings", sent(minute))
        told += seen(bench.results("per_device"))
        told_of_all += seen(bench.results("in_all"))
        assert told == by_device(minute + 1)
        assert told_of_all == of_all(minute + 1), "who counts all of them waits for the slow one"
        if restarting:
            bench.restart()
    bench.end()
    assert bench.results("per_device") == []
    assert told_of_all + seen(bench.results("in_all")) == of_all_in_the_end()
    metrics = bench.metrics()
    assert metrics.sources["readings"].late == 0
    assert not any(metrics.turned_away.values())


def test_a_single_reading_more_closes_no_window_of_another_device() -> None:
    bench = Bench(SQL)
    bench.push("readings", sent(0).slice(0, 2 * DEVICES))
    assert bench.results("per_device") == []
    ends_of_two = sent(0).slice(2 * DEVICES, 2)
    bench.push("readings", ends_of_two)
    assert seen(bench.results("per_device")) == {(SLOW, -BEHIND): 3, ("d01", 0): 3}


def test_every_host_gives_what_each_device_has_promised_and_no_more(host: Host) -> None:
    inputs = {"readings": [sent(minute) for minute in range(6)]}
    found = host.run(SQL, inputs, ending="available")
    assert seen(found["per_device"]) == by_device(6), "the slow device is four minutes before midnight by now"
    assert seen(found["in_all"]) == of_all(6)
    assert found["late"] == []


def test_in_the_end_every_host_has_everything_and_nothing_is_late(host: Host) -> None:
    run = host.open(SQL, {"readings": [sent(minute) for minute in range(MINUTES)]})
    source = run.run().sources["readings"]
    found = {query: [row for each in tables for row in each.to_pylist()] for query, tables in run.memory.items()}
    assert seen(found["per_device"]) == by_device(MINUTES)
    assert seen(found["in_all"]) == of_all_in_the_end()
    assert found["late"] == []
    assert (source.received, source.late) == (MINUTES * DEVICES * 3, 0)


def test_a_device_that_breaks_its_own_promise_is_late_and_no_other(host: Host) -> None:
    broken = sent(0).filter(pc.equal(sent(0).column("device"), "d07"))
    run = host.open(SQL, {"readings": [sent(0), sent(1), broken]})
    source = run.run().sources["readings"]
    assert (source.late, source.quarantined) == (3, 0)
    late = [row for each in run.memory["late"] for row in each.to_pylist()]
    assert {(row["device"], row["ts"]) for row in late} == {
        ("d07", MIDNIGHT + dt.timedelta(seconds=second)) for second in (5, 25, 55)
    }
