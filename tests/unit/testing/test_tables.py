from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from millrace.errors import RequestError
from millrace.kernel.elements import ARRIVED
from millrace.testing import table

TIMESTAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int32()), ("x", pa.float64()), ("ok", pa.bool_()), ("ts", TIMESTAMP)])


def test_a_table_gives_typed_rows_and_their_arrivals() -> None:
    rows = table(
        """
        arrive | k    | n    | x    | ok    | ts
        -------|------|------|------|-------|---------------------------
        0s     | a    | 10   | 1.5  | true  | 00:00:01
        200ms  | null | null | null | null  | 01:02:03.000004
        1.5s   | b c  | -3   | 2e3  | false | 1969-12-31T23:59:59.5+00:00
        """,
        SCHEMA,
    )
    day = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert rows.arrivals == (0, 200_000, 1_500_000)
    assert [tuple(row.values()) for row in rows.table.to_pylist()] == [
        ("a", 10, 1.5, True, day + dt.timedelta(seconds=1)),
        (None, None, None, None, day + dt.timedelta(hours=1, minutes=2, seconds=3, microseconds=4)),
        ("b c", -3, 2000.0, False, day - dt.timedelta(milliseconds=500)),
    ]
    assert rows.arriving(start=7).column(ARRIVED).to_pylist() == [7, 200_007, 1_500_007]


def test_columns_may_stand_in_any_order_and_between_outer_bars() -> None:
    rows = table("| n | k |\n|---|---|\n| 1 | a |\n", {"k": pa.string(), "n": pa.int64()})
    assert rows.table.to_pylist() == [{"k": "a", "n": 1}]
    assert rows.arrivals is None


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('"a | b"', "a | b"),
        ("'null'", "null"),
        ('""', ""),
        ("'it\\'s'", "it's"),
        ("it's", "it's"),
        ("null", None),
        ("ä ö", "ä ö"),
    ],
)
def test_text_is_quoted_where_it_needs_to_be(cell: str, expected: str | None) -> None:
    assert table(f"k | n\n{cell} | 1", {"k": pa.string(), "n": pa.int64()}).table.to_pylist()[0]["k"] == expected


def test_a_table_without_rows_has_the_schema() -> None:
    assert table("k | n | x | ok | ts", SCHEMA).table.schema == SCHEMA


def test_a_schema_may_have_a_column_named_arrive() -> None:
    assert table("arrive\n3", {"arrive": pa.int64()}).table.to_pylist() == [{"arrive": 3}]


@pytest.mark.parametrize(
    ("text", "line", "column", "fact"),
    [
        ("k | n\na | 1\nb | x1", 3, 5, '"x1" is no whole number'),
        ("k | n\na |", 2, 4, "a cell is empty"),
        ("k | n\na", 2, 1, "a row has 1 cells under 2 names"),
        ("k | n\na | 1 | 2", 2, 9, "a row has 3 cells under 2 names"),
        ("k | m\na | 1", 1, 5, 'the table has a column "m" that the schema has not'),
        ("k | k\na | 1", 1, 5, 'the table has two columns "k"'),
        ("k\na", 1, 1, 'the table has no column "n"'),
        ("arrive | k | n\nsoon | a | 1", 2, 1, '"soon" is no arrival'),
        ('k | n\n"a | 1', 2, 1, "a quoted text does not end"),
    ],
)
def test_a_bad_cell_is_named_with_its_place(text: str, line: int, column: int, fact: str) -> None:
    with pytest.raises(RequestError) as raised:
        table(text, {"k": pa.string(), "n": pa.int64()})
    assert raised.value.fact == fact
    assert raised.value.place is not None
    assert (raised.value.place.line, raised.value.place.column) == (line, column)
    assert raised.value.hint


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(RequestError, match='"25 o\'clock" is no time'):
        table("ts\n25 o'clock", {"ts": TIMESTAMP})


def test_an_empty_text_is_no_table() -> None:
    with pytest.raises(RequestError, match="no line with the names"):
        table("\n  \n", SCHEMA)
