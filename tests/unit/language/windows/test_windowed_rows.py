"""Groups that are windows: functions of the time, and bounds of a window whose results are aggregated again."""

from __future__ import annotations

import pytest

from millrace.errors import QueryError
from millrace.plan.nodes.aggregate_nodes import (
    Aggregate,
    AnyWindow,
    CalendarWindow,
    DividedWindow,
    InstantWindow,
    Window,
)
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Project
from tests.unit.language.scripts import names, refusal, root

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR
MINUTES = (
    "SELECT window_start, window_end, srcIP, count(*) AS n FROM main1 [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY srcIP"
)


def outermost(found: Node) -> Aggregate:
    return next(each for each in reversed(list(walk(found))) if isinstance(each, Aggregate))


def expressions(text: str) -> list[str]:
    found = root(text)
    assert isinstance(found, Project)
    return [str(expression) for _, expression in found.columns]


@pytest.mark.parametrize(
    ("group", "window", "over_window"),
    [
        ("date_trunc('hour', ts)", Window(HOUR, HOUR), "window_start"),
        ("date_trunc('week', ts)", Window(7 * DAY, 7 * DAY, 4 * DAY), "window_start"),
        ("date_trunc('month', ts)", CalendarWindow("month"), "window_start"),
        ("date_trunc('quarter', ts)", CalendarWindow("quarter"), "window_start"),
        ("date_trunc('year', ts)", CalendarWindow("year"), "window_start"),
        ("year(ts)", CalendarWindow("year"), "year(window_start)"),
        ("date_format(ts, 'yyyy-MM-dd')", Window(DAY, DAY), "date_format(window_start, 'yyyy-MM-dd')"),
        ("date_format(ts, 'yyyyMM')", CalendarWindow("month"), "date_format(window_start, 'yyyyMM')"),
        ("to_char(ts, 'YYYY-MM-DD HH24')", Window(HOUR, HOUR), "to_char(window_start, 'YYYY-MM-DD HH24')"),
        ("CAST(ts AS DATE)", Window(DAY, DAY), "CAST(window_start AS DATE)"),
        ("to_date(ts)", Window(DAY, DAY), "CAST(window_start AS DATE)"),
        ("unix_timestamp(ts)", Window(SECOND, SECOND), "unix_seconds(window_start)"),
        ("floor(unix_timestamp(ts) / 60)", Window(60 * SECOND, 60 * SECOND), None),
        ("unix_timestamp(ts) div 60", DividedWindow(SECOND, 60), None),
        ("unix_micros(ts) div 1000", DividedWindow(1, 1000), None),
        ("(unix_seconds(ts) + 3600) div 86400", DividedWindow(SECOND, 86400, -HOUR), None),
        ("date_trunc('day', INTERVAL 2 HOURS + ts)", Window(DAY, DAY, 22 * HOUR), None),
    ],
)
def test_a_function_of_the_time_is_a_window(group: str, window: AnyWindow, over_window: str | None) -> None:
    text = f"SELECT {group} AS g, srcIP, count(*) AS n FROM main1 GROUP BY {group}, srcIP"
    assert names(text) == ["g", "srcIP", "n"]
    aggregate = outermost(root(text))
    assert aggregate.window == window
    assert [name for name, _ in aggregate.keys] == ["srcIP"]
    if over_window is not None:
        assert expressions(text)[0] == over_window


def test_it_may_be_grouped_by_alias_or_ordinal_and_ordered_by() -> None:
    for group in ("h", "1"):
        text = f"SELECT date_trunc('hour', ts) AS h, count(*) AS n FROM main1 GROUP BY {group}"
        assert outermost(root(text)).window == Window(HOUR, HOUR)
        root(f"{text} ORDER BY h")


def test_an_expression_over_it_reads_the_window() -> None:
    text = (
        "SELECT date_trunc('hour', ts) + INTERVAL 1 HOUR AS until, count(*) FROM main1 GROUP BY date_trunc('hour', ts)"
    )
    assert expressions(text)[0].startswith("(window_start + ")


def test_the_finest_of_several_is_the_window() -> None:
    found = outermost(root("SELECT count(*) FROM main1 GROUP BY date_trunc('day', ts), date_trunc('hour', ts)"))
    assert found.window == Window(HOUR, HOUR)
    assert [str(key) for _, key in found.keys] == ["date_trunc('day', ts)"]


def test_the_time_itself_is_an_instant() -> None:
    found = outermost(root("SELECT ts, srcIP, count(*) AS n FROM main1 GROUP BY ts, srcIP"))
    assert found.window == InstantWindow()
    assert [name for name, _ in found.keys] == ["ts", "srcIP"]


@pytest.mark.parametrize(
    "group", ["hour(ts)", "date_format(ts, 'HH')", "date_format(ts, 'MM-yyyy')", "srcIP", "len div 60"]
)
def test_any_other_group_is_told_the_window_that_bounds_it(group: str) -> None:
    error = refusal(f"SELECT count(*) FROM main1 GROUP BY {group}")
    assert "never ends" in error.fact
    assert "[RANGE 1 MINUTE SLIDE 1 MINUTE WA ts]" in error.hint


def test_beside_a_written_window_it_is_a_group_like_any_other() -> None:
    found = outermost(root("SELECT count(*) FROM main1 [RANGE 1 s SLIDE 1 s] GROUP BY date_trunc('hour', ts)"))
    assert found.window == Window(SECOND, SECOND)
    assert len(found.keys) == 1


# Results of results


def test_results_are_aggregated_by_their_window() -> None:
    text = f"SELECT window_start, max(n) AS most FROM ({MINUTES}) GROUP BY window_start, window_end"
    assert names(text) == ["window_start", "most"]
    found = outermost(root(text))
    assert found.window == InstantWindow()
    assert [name for name, _ in found.keys] == ["window_start", "window_end"]


def test_their_window_may_have_another_name() -> None:
    inner = "SELECT window_end AS until, srcIP, count(*) AS n FROM main1 [RANGE 1 s SLIDE 1 s] GROUP BY srcIP"
    found = outermost(root(f"SELECT x.until, sum(n) FROM ({inner}) AS x GROUP BY x.until"))
    assert found.window == InstantWindow()


def test_results_are_aggregated_over_a_window_of_their_own_times() -> None:
    for window in ("[RANGE 1 HOUR SLIDE 1 HOUR]", "[RANGE 1 HOUR SLIDE 1 HOUR WA window_time]"):
        found = outermost(root(f"SELECT max(n) FROM ({MINUTES}) {window}"))
        assert found.window == Window(HOUR, HOUR)
    assert names(f"SELECT window_start, max(n) FROM ({MINUTES}) [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY window_start") == [
        "window_start",
        "max_n",
    ]


def test_a_function_of_the_inner_window_counts_from_its_start() -> None:
    text = f"SELECT date_trunc('hour', window_start) AS h, max(n) AS m FROM ({MINUTES}) GROUP BY 1"
    found = outermost(root(text))
    # A result's own time is the last instant of its window, one minute less a microsecond after its start.
    assert found.window == Window(HOUR, HOUR, 60 * SECOND - 1)
    assert expressions(text)[0] == "(window_start + INTERVAL '-59999999' MICROSECONDS)"


def test_a_written_out_time_stands_for_its_window() -> None:
    inner = "SELECT date_format(ts, 'yyyy-MM-dd') AS d, srcIP, count(*) AS n FROM main1 GROUP BY 1, 2"
    assert outermost(root(f"SELECT d, max(n) AS m FROM ({inner}) GROUP BY d")).window == InstantWindow()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (f"SELECT max(n) FROM ({MINUTES})", "Group by window_start, window_end, or bound it with a window: FROM (...)"),
        (f"SELECT srcIP, max(n) FROM ({MINUTES}) GROUP BY srcIP", "Group by window_start, window_end"),
        (
            "SELECT max(n) FROM (SELECT window, count(*) AS n FROM main1 [SESSION 1 s]) GROUP BY window_start",
            "Group by window_end",
        ),
        (
            "SELECT max(n) FROM (SELECT count(*) AS n FROM main1 [ROWS 5 PARTITION BY len]) GROUP BY window_start",
            "have no common time",
        ),
        (
            "SELECT max(n) FROM (SELECT window, count(*) AS n FROM main1 [ROWS 5])",
            "Group by the inner window: GROUP BY window_start",
        ),
        (
            "SELECT max(n) FROM (SELECT count(*) AS n FROM main1 [ROWS 5]) GROUP BY window_start",
            "Select window_start, window_end in the query that is read, and group by them.",
        ),
        (
            "SELECT max(n) FROM (SELECT count(*) AS n FROM main1 [SESSION 1 s])",
            "Select window_end in the query that is read, and group by it; or bound it: FROM (...) [RANGE 1 HOUR",
        ),
        (f"SELECT date_trunc('month', window_start) FROM ({MINUTES}) GROUP BY 1", "over the stream's own time"),
    ],
)
def test_results_that_are_not_bounded_are_refused(text: str, hint: str) -> None:
    error = refusal(text)
    assert isinstance(error, QueryError)
    assert hint in error.hint
    assert error.place is not None
