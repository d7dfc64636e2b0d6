from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millrace.errors import MillraceError
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.plan_log import PlanLog, Version
from millrace.hosts.spark.exchange.rows import STREAM_PORT, unpack
from millrace.hosts.spark.failures import CarriedError
from millrace.hosts.spark.source.native_streams import NativeStream
from millrace.kernel.elements import END_OF_TIME, NO_BOUND
from millrace.kernel.progress.ingress import Ingress
from millrace.language import parse_network

UTC = pa.timestamp("us", tz="UTC")
SECOND = 1_000_000
BUCKETS = (3, 5)


def native(folder: Path, time: str, *, alone: bool = False, live: bool = False) -> NativeStream:
    """A stream of keys and times, read by the first plan of a checkpoint in the folder."""
    text = f"CREATE STREAM s (k STRING, ts TIMESTAMP) {time} FROM rate; SELECT k, ts FROM s WHERE k <> 'no'"
    PlanLog(folder / "plans").write(1, Version(parse_network(text)))
    return NativeStream(str(folder), 1, "s", BUCKETS, live, alone)


def batch(clock: int, *rows: tuple[str, int], zone: str = "UTC") -> pa.RecordBatch:
    """Rows as Spark hands them over; times are in seconds."""
    times = pa.array([time * SECOND for _, time in rows], pa.timestamp("us", tz=zone))
    clocks = pa.array([clock * SECOND] * len(rows), pa.timestamp("us", tz=zone))
    return pa.record_batch({"k": [key for key, _ in rows], "ts": times, "__clock": clocks})


def told(given: list[pa.RecordBatch]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The tuples that buckets are sent, in order, and what they are told of the stream."""
    rows = [row for each in given for row in each.to_pylist()]
    notes = [json.loads(row["note"]) for row in rows if row["port"] == STREAM_PORT]
    assert [row["bucket"] for row in rows if row["port"] == STREAM_PORT] == list(BUCKETS)
    blobs = sorted((row for row in rows if row["port"] != STREAM_PORT), key=lambda row: row["seq"])
    return [row for each in blobs for row in unpack(each["blob"]).to_pylist()], notes[0]


def test_a_task_sends_rows_and_how_far_its_stream_has_come(tmp_path: Path) -> None:
    stream = native(tmp_path, "TIMESTAMP BY ts ORDERED")
    given = stream.read([batch(50, ("a", 1), ("no", 2)), batch(50, ("b", 4), ("c", 3))], 7, 2)
    rows, note = told(list(given))
    assert [row["k"] for row in rows] == ["a", "b"]
    assert (note["received"], note["late"], note["bound"], note["files"]) == (4, 1, 4 * SECOND, 8)
    assert (note["now"], note["all"], note["plan"]) == (50 * SECOND, False, 1)


def test_a_task_goes_on_from_the_record_before_its_batch_and_repeats_itself(tmp_path: Path) -> None:
    stream, log = native(tmp_path, "TIMESTAMP BY ts ORDERED"), CommitLog(tmp_path / "commits")
    _, first = told(list(stream.read([batch(50, ("a", 10))], 0, 0)))
    log.write(0, {"batch": 0, "now": 50 * SECOND, "sources": {"s": first}})
    rows = [batch(60, ("a", 9), ("b", 12))]
    once = list(stream.read(rows, 1, 0))
    assert (told(once)[1]["late"], told(once)[1]["received"]) == (1, 2)
    # A replay knows nothing of what its first attempt has committed.
    log.write(1, {"batch": 1, "now": 60 * SECOND, "sources": {"s": told(once)[1]}})
    again, repeated = list(stream.read(rows, 1, 0)), told(once)
    # How long it took is all that may differ.
    rows_again, note_again = told(again)
    repeated[1]["took"] = note_again["took"]
    for name, operator in repeated[1]["operators"].items():
        operator["cost"] = note_again["operators"][name]["cost"]
    assert (rows_again, note_again) == repeated


def test_rows_after_the_end_of_a_stream_are_late(tmp_path: Path) -> None:
    stream, log = native(tmp_path, "TIMESTAMP BY ts ORDERED"), CommitLog(tmp_path / "commits")
    _, first = told(list(stream.read([batch(50, ("a", 10))], 0, 0)))
    log.write(0, {"batch": 0, "now": 50 * SECOND, "sources": {"s": {**first, "bound": END_OF_TIME}}})
    rows, note = told(list(stream.read([batch(60, ("a", 11), ("b", 12))], 1, 0)))
    assert (rows, note["received"], note["late"]) == ([], 2, 2)


def test_a_clock_that_is_set_back_stands_still(tmp_path: Path) -> None:
    stream = native(tmp_path, "INTERNAL TIMESTAMP AS ts")
    CommitLog(tmp_path / "commits").write(0, {"batch": 0, "now": 50 * SECOND, "sources": {}})
    rows, note = told(list(stream.read([batch(40, ("a", 1))], 1, 0)))
    assert note["now"] == 50 * SECOND
    assert rows[0]["__time"] == 50 * SECOND


@pytest.mark.parametrize(("alone", "bound"), [(True, 5 * SECOND), (False, NO_BOUND)])
def test_partitions_that_several_tasks_read_raise_no_bound_by_themselves(
    tmp_path: Path, alone: bool, bound: int
) -> None:
    stream = native(tmp_path, "TIMESTAMP BY ts ORDERED PARTITIONED BY (k)", alone=alone)
    _, note = told(list(stream.read([batch(50, ("b", 5), ("a", 9))], 0, 0)))
    assert note["bound"] == bound


def test_the_bound_follows_the_partitions_where_one_task_has_all_rows(tmp_path: Path) -> None:
    """It does not know that it is the only one, and others that have none say nothing."""
    stream, log = native(tmp_path, "TIMESTAMP BY ts ORDERED PARTITIONED BY (k)"), CommitLog(tmp_path / "commits")
    (declared,) = PlanLog(tmp_path / "plans").read(1).network.streams()
    edge, bounds = Ingress(declared.time), []
    for number, rows in enumerate([[("b", 5), ("a", 9)], [("b", 15), ("a", 19)], [("a", 40)]]):
        _, note = told(list(stream.read([batch(50 + number, *rows)], number, 0)))
        edge.follow([note])
        bounds.append(edge.bound)
        known = {**edge.progress({**edge.order.changes(), "runs": note["order"].get("runs", [])}), "files": number + 1}
        sources = log.progress_files.save_changed({"s": known})
        log.write(number, {"batch": number, "now": (50 + number) * SECOND, "sources": sources})
    assert bounds == [5 * SECOND, 15 * SECOND, 15 * SECOND]


def test_times_of_another_zone_are_the_same_times(tmp_path: Path) -> None:
    stream = native(tmp_path, "TIMESTAMP BY ts ORDERED")
    _, note = told(list(stream.read([batch(50, ("a", 7), zone="America/New_York")], 0, 0)))
    assert (note["greatest"], note["now"]) == (7 * SECOND, 50 * SECOND)


def test_a_task_without_rows_says_nothing(tmp_path: Path) -> None:
    stream = native(tmp_path, "TIMESTAMP BY ts ORDERED")
    assert list(stream.exchanged([batch(50)])) == []


def test_errors_of_ours_are_carried_out_of_the_task(tmp_path: Path) -> None:
    stream = native(tmp_path, "TIMESTAMP BY ts ORDERED")
    wrong = pa.record_batch({"k": [1.5], "ts": pa.array(["x"]), "__clock": pa.array([0], UTC)})
    with pytest.raises(CarriedError) as raised:
        list(stream.read([wrong], 0, 0))
    assert isinstance(raised.value.__cause__, MillraceError)
