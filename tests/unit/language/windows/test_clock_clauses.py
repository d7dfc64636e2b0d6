from __future__ import annotations

import pytest

from millrace.plan.nodes.aggregate_nodes import Aggregate, AnyWindow, ClockWindow, Window
from millrace.plan.nodes.node import walk
from tests.unit.language.scripts import refusal, root

HOUR = 3_600_000_000
DAY = 24 * HOUR


def window_of(text: str) -> AnyWindow:
    (found,) = [each.window for each in walk(root(text)) if isinstance(each, Aggregate)]
    return found


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("[RANGE 1 DAY SLIDE 1 DAY AT TIME ZONE 'Europe/Berlin']", ClockWindow(DAY, DAY, 0, "Europe/Berlin")),
        ("[RANGE 1 DAY, SLIDE 1 DAY, TIME ZONE 'Asia/Tokyo', WA ts]", ClockWindow(DAY, DAY, 0, "Asia/Tokyo")),
        ("[RANGE 2 DAYS SLIDE 1 DAY OFFSET 30 HOURS AT TIME ZONE '+02:00']",
         ClockWindow(2 * DAY, DAY, 6 * HOUR, "+02:00")),
        ("[RANGE 1 DAY SLIDE 1 DAY AT TIME ZONE 'UTC']", Window(DAY, DAY)),
        ("[RANGE 1 DAY SLIDE 1 DAY OFFSET 6 HOURS]", Window(DAY, DAY, 6 * HOUR)),
        ("[RANGE 1 DAY SLIDE 1 DAY OFFSET -6 HOURS]", Window(DAY, DAY, 18 * HOUR)),
        ("[RANGE 3 MONTHS SLIDE 1 MONTH]", ClockWindow(3, 1, 0, "UTC", months=True)),
        ("[RANGE INTERVAL '1' YEAR SLIDE INTERVAL 1 QUARTER OFFSET 14 DAYS AT TIME ZONE 'Europe/Berlin']",
         ClockWindow(12, 3, 14 * DAY, "Europe/Berlin", months=True)),
    ],
)  # fmt: skip
def test_a_window_says_where_it_begins(written: str, meant: AnyWindow) -> None:
    assert window_of(f"SELECT count(*) FROM main1 {written}") == meant


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM main1 GROUP BY window(ts, '1 day', '1 day', '6 hours')",
        "SELECT count(*) FROM TUMBLE(TABLE main1, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '6' HOUR)",
        "SELECT count(*) FROM HOP(TABLE main1, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '1' DAY, INTERVAL '6' HOUR)",
    ],
)
def test_offsets_are_written_as_in_spark_and_flink_too(text: str) -> None:
    assert window_of(text) == Window(DAY, DAY, 6 * HOUR)


@pytest.mark.parametrize(
    ("window", "fact", "hint"),
    [
        ("[RANGE 1 DAY SLIDE 1 DAY AT TIME ZONE 'Europe/Berln']", 'no time zone "Europe/Berln"', '"Europe/Berlin"'),
        ("[RANGE 1 DAY SLIDE 1 DAY AT TIME ZONE Berlin]", "expected the name of a time zone", "'Europe/Berlin'"),
        ("[RANGE 1 DAY AT TIME ZONE 'Europe/Berlin']", "AT TIME ZONE is for windows with", "SLIDE 1 DAY"),
        ("[SESSION 1 HOUR AT TIME ZONE 'Europe/Berlin']", "AT TIME ZONE is for windows with", "SLIDE 1 DAY"),
        ("[ROWS 10 SLIDE 5 OFFSET 2]", "OFFSET is for windows with", "leave OFFSET out"),
        ("[RANGE 1 MONTH]", "months only together with SLIDE", "[RANGE 1 MONTH SLIDE 1 MONTH]"),
        ("[SESSION 1 MONTH]", "SESSION takes no months", "30 DAYS"),
        ("[RANGE 1 MONTH SLIDE 1 DAY]", "months in one of", "[RANGE 3 MONTHS SLIDE 1 MONTH]"),
        ("[RANGE 0 MONTHS SLIDE 1 MONTH]", "RANGE is not from 1", "1 MONTH"),
        ("[RANGE 1 MONTH SLIDE 1 MONTH OFFSET 1 MONTH]", "OFFSET takes no months", "14 DAYS"),
        ("[RANGE 1 DAY SLIDE 1 DAY OFFSET 2000000 DAYS]", "OFFSET is too long", "1,000,000"),
    ],
)
def test_a_clock_where_there_can_be_none_is_refused(window: str, fact: str, hint: str) -> None:
    error = refusal(f"SELECT count(*) FROM main1 {window}")
    assert fact in error.fact and hint in error.hint and error.place is not None


def test_windows_of_joins_and_numbers_have_no_zone() -> None:
    joined = "SELECT main1.len FROM main1 [RANGE 1 DAY AT TIME ZONE 'UTC'] JOIN control [RANGE 1 DAY] USING (srcIP)"
    assert "AT TIME ZONE is for windows with" in refusal(joined).fact
    assert "from_utc_timestamp" in refusal("SELECT ts AT TIME ZONE 'Europe/Berlin' AS t FROM main1").hint
