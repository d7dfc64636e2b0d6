from __future__ import annotations

import pytest

from millrace.errors import QueryError
from millrace.language import parse_interval
from millrace.plan.explain.time_text import interval_text


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
