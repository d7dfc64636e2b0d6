"""Inputs go on where they are when more columns are read of them, and replayed streams keep one pace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from millrace.errors import RequestError
from millrace.hosts.local.intake import Intake
from millrace.hosts.local.pace import PacedInput
from millrace.language import parse_network
from millrace.plan.physical.stages import Physical, physical

SECOND = 1_000_000
STREAM = "CREATE STREAM {0} (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM {1};"
KEYS, NUMBERS = "CREATE QUERY keys AS SELECT k FROM s;", "CREATE QUERY numbers AS SELECT n FROM s;"


class Hand:
    """A clock that stands where it is put."""

    time = 0

    def __call__(self) -> int:
        return self.time


def plan(source: str, *queries: str) -> Physical:
    return physical(parse_network(STREAM.format("s", source) + "".join(queries)))


def table(*seconds: int) -> pa.Table:
    times = pa.array([second * SECOND for second in seconds], pa.timestamp("us", tz="UTC"))
    return pa.table({"k": [f"k{each}" for each in seconds], "n": pa.array(seconds, pa.int32()), "ts": times})


def read(intake: Intake, stream: str = "s") -> list[dict[str, Any]]:
    """All that can be read now, without times."""
    found: list[dict[str, Any]] = []
    while (chunk := intake.inputs[stream].read()) is not None:
        found += chunk.rows.select([name for name in ("k", "n") if name in chunk.rows.schema.names]).to_pylist()
    return found


def test_a_file_is_read_on_with_more_columns(tmp_path: Path) -> None:
    source = f"csv OPTIONS (path '{tmp_path}')"
    (tmp_path / "1.csv").write_text("k,n,ts\na,1,1970-01-01 00:00:01\n")
    intake = Intake(plan(source, KEYS), Hand())
    assert read(intake) == [{"k": "a"}]
    (tmp_path / "2.csv").write_text("k,n,ts\nb,2,1970-01-01 00:00:02\n")
    intake.prepare(plan(source, KEYS, NUMBERS))()
    assert read(intake) == [{"k": "b", "n": 2}]


def test_a_feed_is_read_on_with_more_columns() -> None:
    items: Iterator[pa.Table] = iter([table(1), table(2)])
    intake = Intake(plan("iterable", KEYS), Hand(), {"s": items})
    first = intake.inputs["s"].read()
    assert first is not None and "n" not in first.rows.schema.names
    intake.prepare(plan("iterable", KEYS, NUMBERS))()
    assert read(intake) == [{"k": "k2", "n": 2}]


def test_a_generated_stream_goes_on_with_the_same_rows() -> None:
    source = "generate OPTIONS (rate '100', seconds '2')"
    intake = Intake(plan(source, KEYS), Hand())
    intake.prepare(plan(source, KEYS, NUMBERS))()
    keys = [row["k"] for row in read(intake)]
    assert keys == [row["k"] for row in read(Intake(plan(source, KEYS), Hand()))]


@pytest.mark.parametrize("source", ["iterable", "parquet"])
def test_a_replayed_stream_goes_on_within_its_chunk(source: str, tmp_path: Path) -> None:
    now, feeds = Hand(), {"s": [table(0, 1, 2), table(3)]}
    if source == "parquet":
        pa.parquet.write_table(table(0, 1, 2), tmp_path / "1.parquet")
        pa.parquet.write_table(table(3), tmp_path / "2.parquet")
        source, feeds = f"parquet OPTIONS (path '{tmp_path}')", {}
    intake = Intake(plan(f"{source} REPLAY BY ts", KEYS), now, feeds)
    now.time = SECOND
    assert read(intake) == [{"k": "k0"}, {"k": "k1"}]
    assert intake.next_look() == 2 * SECOND
    intake.prepare(plan(f"{source} REPLAY BY ts", KEYS, NUMBERS))()
    assert (read(intake), intake.next_look()) == ([], 2 * SECOND)
    now.time = 3 * SECOND
    assert read(intake) == [{"k": "k2", "n": 2}, {"k": "k3", "n": 3}]


def test_a_row_carries_the_moment_it_was_due() -> None:
    now = Hand()
    now.time = 100 * SECOND
    intake = Intake(plan("iterable REPLAY BY ts SPEED 2", KEYS), now, {"s": [table(10, 14)]})
    now.time = 105 * SECOND
    chunk = intake.inputs["s"].read()
    assert chunk is not None
    assert chunk.rows.column("__arrived").to_pylist() == [100 * SECOND, 102 * SECOND]


def test_a_replayed_stream_that_joins_falls_in_with_the_others() -> None:
    now = Hand()
    both = STREAM.format("s", "iterable REPLAY BY ts") + STREAM.format("t", "iterable REPLAY BY ts") + KEYS
    intake = Intake(plan("iterable REPLAY BY ts", KEYS), now, {"s": [table(10)], "t": [table(5, 12)]})
    now.time = SECOND
    intake.prepare(physical(parse_network(both + "CREATE QUERY more AS SELECT n FROM t;")))()
    assert read(intake, "t") == [{"n": 5}], "the run began at second 10 of the replay, and is now at 11"
    now.time = 2 * SECOND
    assert read(intake, "t") == [{"n": 12}]


def test_what_cannot_be_opened_leaves_the_inputs_as_they_are() -> None:
    intake = Intake(plan("iterable", KEYS), Hand(), {"s": [table(1)]})
    broken = STREAM.format("s", "iterable") + STREAM.format("t", "csv OPTIONS (path 'nowhere')") + KEYS + NUMBERS
    with pytest.raises(RequestError, match='the path "nowhere"'):
        intake.prepare(physical(parse_network(broken + "CREATE QUERY more AS SELECT n FROM t;")))
    assert list(intake.inputs) == ["s"]
    assert read(intake) == [{"k": "k1"}]


def test_a_position_within_a_chunk_is_returned_to() -> None:
    now, replayed = Hand(), plan("iterable REPLAY BY ts", KEYS)
    intake = Intake(replayed, now, {"s": [table(0, 1, 2)]})
    now.time = SECOND
    assert len(read(intake)) == 2
    again = Intake(replayed, now, {"s": [table(0, 1, 2)]}, intake.positions())
    assert read(again) == [{"k": "k2"}], "the earliest row that is left comes at once"
    assert isinstance(again.inputs["s"], PacedInput)


def test_rows_that_could_not_be_read_are_counted_once_even_if_no_others_came(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("k,n,ts\na,many,1970-01-01 00:00:01\n")
    (tmp_path / "2.csv").write_text("k,n,ts\nb,2,1970-01-01 00:00:02\n")
    source = f"csv OPTIONS (path '{tmp_path}', on_malformed 'skip') REPLAY BY ts"
    now = Hand()
    intake = Intake(plan(source, KEYS, NUMBERS), now)
    now.time = 2 * SECOND
    malformed, rows = 0, 0
    while (chunk := intake.inputs["s"].read()) is not None:
        malformed, rows = malformed + chunk.malformed, rows + chunk.rows.num_rows
    assert (malformed, rows) == (1, 1)


@pytest.mark.parametrize("source", ["csv", "iterable"])
def test_a_chunk_that_is_read_in_part_is_read_on_with_more_columns(source: str, tmp_path: Path) -> None:
    feeds: dict[str, Any] = {"s": iter([table(0, 1, 2, 3), table(4)])}
    if source == "csv":
        lines = [f"k{number},{number},1970-01-01 00:00:0{number}" for number in range(5)]
        (tmp_path / "1.csv").write_text("\n".join(["k,n,ts", *lines[:4], ""]))
        (tmp_path / "2.csv").write_text("\n".join(["k,n,ts", *lines[4:], ""]))
        source, feeds = f"csv OPTIONS (path '{tmp_path}')", {}
    intake = Intake(plan(source, KEYS), Hand(), feeds)
    first = intake.inputs["s"].read(3)
    assert first is not None and first.rows.column("k").to_pylist() == ["k0", "k1", "k2"]
    position = intake.positions()["s"]
    assert position["cut"] == 3
    intake.prepare(plan(source, KEYS, NUMBERS))()
    again = intake.positions()["s"]
    # The time of a file's last change is part of its stamp once it is old enough.
    unstamped = [{**each, "at": {**each["at"], "whole": None}} for each in (again, position)]
    assert unstamped[0] == unstamped[1]
    assert read(intake) == [{"k": "k3", "n": 3}, {"k": "k4", "n": 4}]
    if not feeds:
        assert read(Intake(plan(source, KEYS), Hand(), feeds, {"s": position})) == [{"k": "k3"}, {"k": "k4"}]
