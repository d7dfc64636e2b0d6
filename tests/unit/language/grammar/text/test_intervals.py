from __future__ import annotations

import pytest

from millrace.errors import QueryError
from millrace.language import parse_interval, parse_network
from millrace.language.grammar.text.intervals import spanned
from millrace.plan.explain.time_text import interval_text

STREAM = "CREATE STREAM s (ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable; "


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1 minute", 60_000_000),
        ("5 MINUTES", 300_000_000),
        ("INTERVAL 5 SECONDS", 5_000_000),
        ("INTERVAL '5' SECOND", 5_000_000),
        ("INTERVAL '5 seconds'", 5_000_000),
        ("250 milliseconds", 250_000),
        ("250ms", 250_000),
        ("1.5 s", 1_500_000),
        ("1 hour 30 min", 5_400_000_000),
        ("2 weeks", 1_209_600_000_000),
        ("7 microseconds", 7),
    ],
)
def test_an_interval_is_read_as_microseconds(text: str, micros: int) -> None:
    assert parse_interval(text) == micros


@pytest.mark.parametrize(
    "text", ["", "5", "minutes", "5 fortnights", "5 months", "INTERVAL", "5 s and more", "9" * 30 + " days"]
)
def test_what_is_no_interval_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse_interval(text)
    assert refused.value.hint


@pytest.mark.parametrize("micros", [1, 1_000, 5_000_000, 90_000_000, 3_600_000_000, 172_800_000_000])
def test_an_interval_reads_back_from_its_text(micros: int) -> None:
    assert parse_interval(interval_text(micros)) == micros


@pytest.mark.parametrize(
    ("text", "first", "last", "size"),
    [
        ("3:30", "MINUTE", "SECOND", 210_000_000),
        ("1 02:03:04.5", "day", "second", 93_784_500_000),
        ("-1 02", "DAY", "HOUR", -93_600_000_000),
        ("25:03", "HOUR", "MINUTE", 90_180_000_000),
        ("2-3", "YEAR", "MONTH", 27),
    ],
)
def test_an_interval_over_several_units(text: str, first: str, last: str, size: int) -> None:
    assert spanned(text, first, last, None) == (size, first == "YEAR")


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [("3:60", "MINUTE", "SECOND"), ("3", "MINUTE", "SECOND"), ("3:30", "SECOND", "MINUTE"), ("1-12", "YEAR", "MONTH")],
)
def test_a_part_has_less_than_the_next_larger_unit(text: str, first: str, last: str) -> None:
    with pytest.raises(QueryError) as refused:
        spanned(text, first, last, None)
    assert "MINUTE TO SECOND" in str(refused.value.hint)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 1 MONTH) FROM iterable; SELECT ts FROM s;",
        f"{STREAM}SELECT count(*) FROM s [RANGE INTERVAL '0-1' YEAR TO MONTH SLIDE 1 DAY];",
        f"{STREAM}SELECT count(*) FROM s GROUP BY window(ts, INTERVAL 1 MONTH);",
        f"{STREAM}SELECT count(*) FROM s GROUP BY ts + INTERVAL 1 MONTH;",
    ],
)
def test_months_are_no_length(text: str) -> None:
    with pytest.raises(QueryError, match=r"no fixed length|never ends"):
        parse_network(text)


def test_a_window_has_a_length_over_several_units() -> None:
    parse_network(f"{STREAM}SELECT count(*) FROM s [RANGE INTERVAL '3:30' MINUTE TO SECOND SLIDE 30 SECONDS];")
