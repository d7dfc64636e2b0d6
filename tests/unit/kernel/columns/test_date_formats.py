"""Times as text, before 1970 too, against what Spark and PostgreSQL write."""

from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.kernel.columns.casts import Value
from millrace.kernel.columns.scalar_functions import FUNCTIONS
from millrace.kernel.elements import TIMESTAMP

TIMES = pa.array([None, -1, 0, 1_436_918_400_123_456, 1_436_979_909_000_000], TIMESTAMP)


def written(function: str, pattern: str, times: Value = TIMES) -> list[str | None]:
    found = FUNCTIONS[function](times, pa.scalar(pattern))
    alone = [FUNCTIONS[function](each, pa.scalar(pattern)).as_py() for each in times]
    assert found.type == pa.string() and found.to_pylist() == alone
    return list(found.to_pylist())


@pytest.mark.parametrize(
    ("pattern", "expected"),
    {
        "yyyy-MM-dd": ["1969-12-31", "1970-01-01", "2015-07-15", "2015-07-15"],
        "HH:mm:ss": ["23:59:59", "00:00:00", "00:00:00", "17:05:09"],
        "yyyy-MM-dd'T'HH:mm:ss.SSS": [
            "1969-12-31T23:59:59.999", "1970-01-01T00:00:00.000", "2015-07-15T00:00:00.123", "2015-07-15T17:05:09.000",
        ],
        "hh:mm a": ["11:59 PM", "12:00 AM", "12:00 AM", "05:05 PM"],
        "h H m s": ["11 23 59 59", "12 0 0 0", "12 0 0 0", "5 17 5 9"],
        "E EEEE": ["Wed Wednesday", "Thu Thursday", "Wed Wednesday", "Wed Wednesday"],
        "d MMM yy": ["31 Dec 69", "1 Jan 70", "15 Jul 15", "15 Jul 15"],
        "MMMM y, M": ["December 1969, 12", "January 1970, 1", "July 2015, 7", "July 2015, 7"],
        "q D DDD": ["4 365 365", "1 1 001", "3 196 196", "3 196 196"],
        "S SSSSSS": ["9 999999", "0 000000", "1 123456", "0 000000"],
        "100 %y 'o''clock' ''": ["100 %1969 o'clock '", "100 %1970 o'clock '", *["100 %2015 o'clock '"] * 2],
        "": ["", "", "", ""],
    }.items(),
)  # fmt: skip
def test_date_format_writes_spark_s_patterns(pattern: str, expected: list[str]) -> None:
    assert written("date_format", pattern) == [None, *expected]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    {
        "YYYY-MM-DD": ["1969-12-31", "1970-01-01", "2015-07-15", "2015-07-15"],
        "HH24:MI:SS": ["23:59:59", "00:00:00", "00:00:00", "17:05:09"],
        # The hour of twelve and the month: what Nexmark's sixteenth query asks PostgreSQL for.
        "HH:mm": ["11:12", "12:01", "12:07", "05:07"],
        'yyyy"T"MS.US am': ["1969T999.999999 PM", "1970T000.000000 AM", "2015T123.123456 AM", "2015T000.000000 PM"],
    }.items(),
)
def test_to_char_writes_postgresql_s_patterns(pattern: str, expected: list[str]) -> None:
    assert written("to_char", pattern) == [None, *expected]


@pytest.mark.parametrize(
    ("function", "pattern"),
    [("date_format", "yyyy-bb"), ("date_format", "yyyyy"), ("date_format", "yyyy'T"), ("to_char", "YYYY-X")],
)
def test_a_pattern_of_unknown_fields_is_refused(function: str, pattern: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match="no field of a time"):
        FUNCTIONS[function](TIMES, pa.scalar(pattern))


def test_dates_and_texts_are_times_and_numbers_are_not() -> None:
    assert written("date_format", "E dd", pa.array([0, None], pa.date32())) == ["Thu 01", None]
    assert written("date_format", "HH", pa.array(["2024-01-01 05:00:00", "soon"])) == ["05", None]
    with pytest.raises(pa.ArrowInvalid, match="is no time"):
        FUNCTIONS["date_format"](pa.array([1]), pa.scalar("yyyy"))


def test_no_times_give_no_texts() -> None:
    assert written("date_format", "yyyy", pa.array([], TIMESTAMP)) == []


def test_seconds_before_1970_are_counted_downwards() -> None:
    times = pa.array([None, -1, -1_000_000, -1_000_001, 999_999, 1_000_000], TIMESTAMP)
    assert FUNCTIONS["unix_seconds"](times).to_pylist() == [None, -1, -1, -2, 0, 1]
    assert FUNCTIONS["unix_millis"](times).to_pylist() == [None, -1, -1_000, -1_001, 999, 1_000]
