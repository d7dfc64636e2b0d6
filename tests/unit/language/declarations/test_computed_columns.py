from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.connectors.stream_input import read_schema
from millrace.errors import QueryError
from millrace.language import parse_network
from millrace.plan.nodes.endpoints import Stream

TIME = "to_timestamp(d || t, 'yyyyMMddHHmm')"


def declared(columns: str, further: str = "TIMESTAMP BY ts ORDERED") -> Stream:
    text = f"CREATE STREAM s ({columns}) {further} FROM csv OPTIONS (path 's.csv'); SELECT * FROM s"
    (found,) = parse_network(text).streams()
    return found


@pytest.mark.parametrize(
    "written", [f"ts TIMESTAMP AS {TIME}", f"ts AS {TIME}", f"ts TIMESTAMP GENERATED ALWAYS AS ({TIME})"]
)
def test_a_column_is_computed_of_others_in_the_words_of_several_systems(written: str) -> None:
    stream = declared(f"d STRING, {written}, t STRING, v INT")
    assert stream.schema.names == ["d", "ts", "t", "v"] and stream.time.column == "ts"
    assert [name for name, _ in stream.time.computed] == ["ts"]
    assert read_schema(stream, ["ts", "v"]).names == ["d", "t", "v"]
    assert read_schema(stream, ["v"]).names == ["v"]


def test_a_computed_column_reads_those_before_it_and_takes_a_wider_type() -> None:
    stream = declared("d STRING, n INT, m BIGINT AS n * 2, ts AS to_timestamp(d), k AS m + 1")
    assert stream.schema.field("m").type == pa.int64()
    assert read_schema(stream, ["k", "ts"]).names == ["d", "n"]


@pytest.mark.parametrize(
    ("columns", "fact", "offending"),
    [
        ("d STRING, ts TIMESTAMP AS d", "declared as TIMESTAMP, but its expression gives STRING", "d"),
        ("d STRING, ts TIMESTAMP AS to_timestamp(e)", 'column "e" does not exist', "e"),
        ("d STRING, a AS b, b AS to_timestamp(d), ts AS b", 'column "b" does not exist', "b"),
        ("d STRING, ts AS max(to_timestamp(d))", "max", None),
        ("d STRING, ts TIMESTAMP AS", "expected an expression", None),
        ("ts TIMESTAMP AS current_timestamp", "", None),
        ("d STRING, ts AS to_timestamp(d), x AS NULL", "no type", None),
    ],
)
def test_what_cannot_be_computed_is_refused_with_its_place(columns: str, fact: str, offending: str | None) -> None:
    with pytest.raises(QueryError) as caught:
        declared(columns)
    assert fact in caught.value.fact and caught.value.hint
    assert offending is None or (caught.value.place is not None and caught.value.place.text == offending)


def test_times_in_files_are_of_a_zone() -> None:
    stream = declared("ts TIMESTAMP", "TIMESTAMP BY ts ORDERED TIME ZONE 'Europe/Berlin'")
    assert stream.connector.options["time_zone"] == "Europe/Berlin"
    with pytest.raises(QueryError, match='there is no time zone "Berlin"'):
        declared("ts TIMESTAMP", "TIMESTAMP BY ts ORDERED TIME ZONE 'Berlin'")
    with pytest.raises(QueryError, match="TIME ZONE is for times in files"):
        parse_network(
            "CREATE STREAM s (ts TIMESTAMP) TIMESTAMP BY ts ORDERED TIME ZONE 'UTC' FROM rate; SELECT * FROM s"
        )
