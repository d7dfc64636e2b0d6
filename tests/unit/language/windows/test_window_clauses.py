from __future__ import annotations

import pytest

from millrace.errors import QueryError
from millrace.kernel.progress.time_contract import SEQUENCE
from millrace.language import parse_network
from millrace.plan.nodes.aggregate_nodes import (
    Aggregate,
    AnyWindow,
    BorrowedSessionWindow,
    PartitionedRows,
    SessionWindow,
    TrailingWindow,
    Window,
)
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Filter, Numbered, Scan, Union
from tests.unit.language.scripts import STREAMS, names, refusal, root

MINUTE = 60_000_000
FLOWS = """
CREATE STREAM flows (k STRING, bytes INT, started TIMESTAMP, ended TIMESTAMP)
  TIMESTAMP BY ended ORDERED ALSO BY started DISORDER INTERVAL 30 MINUTES FROM csv;
CREATE STREAM more (k STRING, bytes INT, started TIMESTAMP, ended TIMESTAMP) TIMESTAMP BY started ORDERED FROM csv;
"""


def aggregate_of(found: Node) -> Aggregate:
    return next(each for each in reversed(list(walk(found))) if isinstance(each, Aggregate))


def scans_of(text: str) -> list[str]:
    """The outlets of the streams that a query over the flows reads."""
    found = parse_network(FLOWS + text).queries[-1].root
    return [each.outlet for each in walk(found) if isinstance(each, Scan)]


@pytest.mark.parametrize(
    ("source", "window"),
    [
        ("main1 [RANGE 5 MINUTES]", TrailingWindow(5 * MINUTE)),
        ("main1 [RANGE 5 MINUTES PRECEDING WA ts]", TrailingWindow(5 * MINUTE)),
        ("main1 WINDOW 10 minutes", TrailingWindow(10 * MINUTE)),
        ("main1 AS m WINDOW 10 minutes", TrailingWindow(10 * MINUTE)),
        ("main1 [ROWS 100 SLIDE 10]", Window(100, 10, unit="rows")),
        ("main1 [SLIDE 10, ROWS 100]", Window(100, 10, unit="rows")),
        ("main1 [ROWS 100]", TrailingWindow(99, "rows")),
        ("main1 [ROWS 10 PARTITION BY srcIP]", PartitionedRows(10)),
        ("main1 [PARTITION BY srcIP, destIP, ROWS 10 SLIDE 5]", PartitionedRows(10, 5)),
        ("main1 [SESSION 5 MINUTES WA ts]", SessionWindow(5 * MINUTE)),
        ("SESSION(TABLE main1, DESCRIPTOR(ts), 5 MINUTES)", BorrowedSessionWindow(5 * MINUTE)),
        ("main1 GROUP BY session_window(ts, '5 minutes')", BorrowedSessionWindow(5 * MINUTE)),
        ("TUMBLE(main1, ts, INTERVAL '1 minute')", Window(MINUTE, MINUTE)),
        ("HOP(main1, ts, INTERVAL '1 minute', INTERVAL '5 minutes') AS w", Window(5 * MINUTE, MINUTE)),
    ],
)
def test_windows_are_written_in_many_ways(source: str, window: AnyWindow) -> None:
    assert aggregate_of(root(f"SELECT count(*) FROM {source}")).window == window


@pytest.mark.parametrize("window", ["[ROWS 9 SLIDE 3]", "[SESSION 1 s]", "[RANGE 1 s]", "[RANGE 1 s SLIDE 1 s]"])
def test_a_window_may_stand_after_the_aggregate(window: str) -> None:
    assert root(f"SELECT count(*) {window} FROM main1 UNION control") == root(
        f"SELECT count(*) FROM main1 UNION control {window}"
    )


def test_emit_on_window_close_is_what_happens_anyway() -> None:
    text = "SELECT count(*) FROM main1 [SESSION 1 s]"
    assert root(f"{text} EMIT ON WINDOW CLOSE") == root(text)


# Rows


def test_rows_are_counted_before_a_filter() -> None:
    found = aggregate_of(
        root("SELECT count(*) FROM (SELECT len FROM main1 WHERE len > 1) [ROWS 10 SLIDE 5] WHERE len < 9")
    )
    (scan,) = [each for each in walk(found) if isinstance(each, Scan)]
    assert scan.outlet == SEQUENCE


def test_rows_of_a_union_are_numbered_below_the_filter() -> None:
    found = aggregate_of(root("SELECT count(*) FROM main1 UNION control [ROWS 10 SLIDE 5] WHERE len < 9"))
    assert isinstance(found.input, Filter)
    assert isinstance(found.input.input, Numbered)
    assert isinstance(found.input.input.input, Union)


def test_partitioned_rows_are_counted_before_where() -> None:
    found = aggregate_of(root("SELECT sum(len) FROM main1 [ROWS 10 PARTITION BY srcIP] WHERE len > 1"))
    assert isinstance(found.input, Scan) and found.input.outlet == SEQUENCE
    assert str(found.where) == "(len > 1)"
    assert [name for name, _ in found.keys] == ["srcIP"]


def test_the_bounds_of_rows_are_numbers() -> None:
    found = root("SELECT window_start, count(*) FROM main1 [ROWS 10 SLIDE 5]").schema
    assert str(found.field("window_start").type) == "int64"


# Attributes


def test_a_window_is_over_any_declared_time() -> None:
    window = "[RANGE 1 HOUR SLIDE 1 HOUR WA {}]"
    assert scans_of(f"SELECT count(*) FROM flows {window.format('started')} WHERE bytes > 1") == ["started"]
    assert scans_of(f"SELECT count(*) FROM flows {window.format('ENDED')}") == [""]
    assert scans_of(f"SELECT count(*) FROM flows UNION more {window.format('started')}") == ["started", ""]
    renamed = f"SELECT count(*) FROM (SELECT started AS s FROM flows) {window.format('s')}"
    assert scans_of(renamed) == ["started"]
    hidden = f"SELECT count(*) FROM (SELECT bytes FROM flows) {window.format('started')}"
    assert scans_of(hidden) == ["started"]
    assert scans_of("SELECT count(*) FROM flows GROUP BY session_window(started, '1 minute')") == ["started"]


def test_every_stream_of_a_union_needs_the_attribute() -> None:
    with pytest.raises(QueryError, match='column "ended" is not the time column of') as error:
        parse_network(f"{FLOWS} SELECT count(*) FROM flows UNION more [RANGE 1 s SLIDE 1 s WA ended]")
    assert "ALSO BY ended" in error.value.hint


# Unlimited


def test_an_unlimited_window_needs_a_limit_of_state() -> None:
    text = "SELECT srcIP, count(*) FROM main1 [RANGE UNLIMITED PRECEDING] GROUP BY srcIP"
    assert "WITH (state_limit = 100000)" in refusal(text).hint
    found = root(f"{text} WITH (state_limit = 10)")
    assert aggregate_of(found).window == TrailingWindow(None)


@pytest.mark.parametrize(
    ("text", "fact", "offending"),
    [
        ("FROM main1 [RANGE UNLIMITED PRECEDING SLIDE 1 s]", "SLIDE cannot be combined with UNLIMITED", "1 s"),
        ("FROM main1 [SESSION 1 s SLIDE 1 s]", "SLIDE cannot be combined with SESSION", "1 s"),
        ("FROM main1 [ROWS 5 SLIDE 1 s]", "SLIDE of a ROWS window is a number of rows", "1 s"),
        ("FROM main1 [RANGE 5 s SLIDE 1]", "SLIDE of a RANGE window is a length of time", "1"),
        ("FROM main1 [ROWS 0]", "ROWS is not positive", "0"),
        ("FROM main1 [ROWS many]", "expected a number of rows", "many"),
        ("FROM main1 [ROWS 99999999999999999999]", "ROWS is too large", "99999999999999999999"),
        ("FROM main1 [ROWS 9007199254740993 SLIDE 1]", "ROWS is too large", "9007199254740993"),
        ("FROM main1 [ROWS 5 SLIDE 9007199254740993]", "SLIDE is too large", "9007199254740993"),
        ("FROM main1 [ROWS 9007199254740993 PARTITION BY len]", "ROWS is too large", "9007199254740993"),
        ("FROM main1 [RANGE 1000001 DAYS]", "RANGE is too long", "1000001 DAYS"),
        ("FROM main1 [RANGE 1 DAY SLIDE 1000001 DAYS]", "SLIDE is too long", "1000001 DAYS"),
        ("FROM main1 [SESSION 1000000 DAYS 1 us]", "SESSION is too long", "1000000 DAYS 1 us"),
        ("FROM main1 WINDOW 200000 WEEKS", "RANGE is too long", "200000 WEEKS"),
        ("FROM main1 GROUP BY window(ts, '200000 weeks')", "RANGE is too long", "'200000 weeks'"),
        ("FROM main1 [ROWS 5 WA ts]", "WA cannot be combined with ROWS", "ts"),
        ("FROM main1 [ROWS 5 RANGE 1 s]", "a window has RANGE and ROWS", "[ROWS 5 RANGE 1 s]"),
        (
            "FROM main1 [RANGE 5 s PARTITION BY len]",
            "PARTITION BY is only allowed with ROWS",
            "[RANGE 5 s PARTITION BY len]",
        ),
        ("FROM main1 [ROWS 5 PARTITION BY lenn]", 'column "lenn" does not exist', "lenn"),
        ("FROM main1 [ROWS 5 PARTITION BY len] GROUP BY srcIP", "GROUP BY and PARTITION BY differ", "len"),
        ("FROM main1 [ROWS 5 PARTITION BY len] GROUP BY len, srcIP", "GROUP BY and PARTITION BY differ", "len"),
        ("FROM SESSION(TABLE main1 PARTITION BY len, DESCRIPTOR(ts), 1 s)", "GROUP BY and PARTITION BY differ", "len"),
        ("FROM main1 GROUP BY session_window(ts)", '"session_window" takes', "session_window(ts)"),
        ("FROM (SELECT count(*) AS n FROM main1 [SESSION 1 s]) [ROWS 5]", "cannot count the rows", "[ROWS 5]"),
        ("FROM (SELECT count(*) AS n FROM main1 [ROWS 5]) [RANGE 5 s]", "needs rows that have a time", "[RANGE 5 s]"),
    ],
)
def test_a_wrong_window_is_refused_at_its_place(text: str, fact: str, offending: str) -> None:
    error = refusal(f"SELECT count(*) {text}")
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.hint
    assert error.place is not None and error.place.text == offending


@pytest.mark.parametrize("window", ["[ROWS 9007199254740992]", "[RANGE 1000000 DAYS SLIDE 1000000 DAYS]"])
def test_the_largest_windows_are_accepted(window: str) -> None:
    assert root(f"SELECT count(*) FROM main1 {window}")


def test_an_unknown_function_is_told_before_the_window_that_it_leaves_alone() -> None:
    error = refusal("SELECT 1 + lopsided(len, len) FROM main1 [RANGE 1 MINUTE SLIDE 1 MINUTE]")
    assert 'function "lopsided" is unknown' in error.fact
    assert error.place is not None and error.place.text == "lopsided(len, len)"
    assert "without an aggregate" in refusal("SELECT upper(srcIP) FROM main1 [RANGE 1 s SLIDE 1 s]").fact


def test_counted_results_and_times_do_not_mix() -> None:
    rows, times = "SELECT count(*) FROM main1 [ROWS 5]", "SELECT count(*) FROM main1 [RANGE 5 s]"
    with pytest.raises(QueryError):
        parse_network(f"{STREAMS} {rows} UNION ALL {times}")


def test_a_session_is_ordered_by_its_end() -> None:
    assert "ORDER BY window_end" in refusal("SELECT count(*) FROM main1 [SESSION 1 s] ORDER BY window_start").hint
    assert names("SELECT count(*) FROM main1 [SESSION 1 s] ORDER BY window_end") == ["count"]


def test_flinks_names_of_the_window_are_its_own() -> None:
    source = "TUMBLE(TABLE main1, DESCRIPTOR(ts), 1 MINUTE) AS w"
    assert aggregate_of(root(f"SELECT w.window_start, count(*) FROM {source} GROUP BY w.window_start")).keys == ()
    assert names("SELECT session_window, count(*) FROM main1 GROUP BY session_window(ts, '1 s')") == [
        "window_start",
        "window_end",
        "count",
    ]
