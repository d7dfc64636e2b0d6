"""Inner joins: inputs, names, keys, limits on times, windows, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.errors import NotYet, QueryError
from millrace.kernel.columns.expressions import Call, Cast, Column, Literal
from millrace.kernel.joins.sides import RowsSide, Side
from millrace.plan.nodes.join_nodes import AnyJoin, Join, RowsJoin
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Filter, OrderByTime, Project, Scan, Union
from tests.unit.language.scripts import names, query, refusal, root

SECOND = 1_000_000
BAND = "b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"


def join_of(text: str) -> Join:
    """The last join of a query."""
    found = [each for each in walk(root(text)) if isinstance(each, Join)]
    return found[-1]


def from_both(where: str, *, window: str = "") -> Join:
    return join_of(f"SELECT a.len FROM control {window} AS a, main1 {window} AS b WHERE {where}")


def aheads(join: Join) -> list[int | None]:
    return [side.ahead for side in join.sides]


# Inputs and names


def test_each_input_brings_its_columns_under_its_own_name() -> None:
    join = from_both(f"a.srcIP = b.destIP AND {BAND}")
    assert join.schema.names[:4] == ["a.srcIP", "a.destIP", "a.len", "a.ts"]
    assert join.schema.names[4:] == ["b.srcIP", "b.destIP", "b.len", "b.ts"]
    assert [side.keys for side in join.sides] == [("a.srcIP",), ("b.destIP",)]
    assert join.residual is None
    assert join.time == "max"


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("a.len, b.ts", ["len", "ts"]),
        ("a.len, b.len", ["a_len", "b_len"]),
        ("a.LEN, b.len AS other", ["len", "other"]),
        ("a.*", ["srcIP", "destIP", "len", "ts"]),
        ("a.*, b.ts", ["srcIP", "destIP", "len", "a_ts", "b_ts"]),
        ("b.*, a.len + b.len", ["srcIP", "destIP", "len", "ts", "c2"]),
        ("*", [f"{one}_{name}" for one in "ab" for name in ("srcIP", "destIP", "len", "ts")]),
    ],
)
def test_columns_of_one_name_from_several_inputs_carry_the_name_of_their_input(items: str, expected: list[str]) -> None:
    assert names(f"SELECT {items} FROM control a JOIN main1 b ON {BAND}") == expected


def test_a_plain_name_means_the_one_input_that_has_it() -> None:
    text = "SELECT srcIP, source, at FROM control a JOIN main2 b ON a.ts = b.at WHERE dest = srcIP"
    assert names(text) == ["srcIP", "source", "at"]
    assert join_of(text).sides[0].keys == ("a.srcIP",)


def test_using_gives_its_columns_once_and_first() -> None:
    text = f"SELECT * FROM control a JOIN main1 b USING (len, srcIP) WHERE {BAND}"
    assert names(text) == ["len", "srcIP", "a_destIP", "a_ts", "b_destIP", "b_ts"]
    assert join_of(text).sides[1].keys == ("b.len", "b.srcIP")


def test_a_column_of_using_is_that_of_the_side_that_is_always_there() -> None:
    for kind, expected in (
        ("LEFT", Column("a.len")),
        ("RIGHT", Column("b.len")),
        ("FULL", Call("coalesce", (Column("a.len"), Column("b.len")))),
    ):
        found = root(f"SELECT len FROM control [RANGE 1 MINUTE] a {kind} JOIN main1 [RANGE 1 MINUTE] b USING (len)")
        assert isinstance(found, Project)
        assert found.columns == (("len", expected),)


def test_unions_and_subqueries_are_inputs_too() -> None:
    text = (
        "SELECT m1.ts, m2.ts FROM control UNION main1 [RANGE 3 MINUTES WA ts] AS m1,"
        " (SELECT dest, at FROM main2 WHERE len > 3) [RANGE 2 MINUTES] AS m2 WHERE m1.srcIP = m2.dest"
    )
    assert names(text.replace("m2.ts", "m2.at")) == ["ts", "at"]
    join = join_of(text.replace("m2.ts", "m2.at"))
    assert aheads(join) == [180 * SECOND, 120 * SECOND]
    assert any(isinstance(each, Union) for each in walk(join.inputs[0]))
    assert any(isinstance(each, Filter) for each in walk(join.inputs[1]))


def test_a_stream_joins_itself_under_two_names() -> None:
    join = join_of("SELECT x.len FROM main1 x, main1 y WHERE x.len = y.len AND x.ts = y.ts")
    assert [each.stream.name for each in walk(join) if isinstance(each, Scan)] == ["main1", "main1"]


# Conditions


def test_conditions_of_where_and_on_go_to_where_they_belong() -> None:
    text = (
        f"SELECT a.len FROM control a JOIN main1 b ON {BAND} AND a.len > 3 WHERE b.len < a.len AND b.len > 4 AND 1 = 1"
    )
    join = join_of(text)
    assert join.residual == Call("<", (Column("b.len"), Column("a.len")))
    predicates = [each.predicate for each in walk(join) if isinstance(each, Filter)]
    assert predicates == [
        Call(">", (Column("len"), Literal(3, pa.int32()))),
        Call(">", (Column("len"), Literal(4, pa.int32()))),
    ]
    above = [each.predicate for each in walk(root(text)) if isinstance(each, Filter)][-1]
    assert not list(above.columns()), "a condition without columns stands above"


def test_keys_of_different_width_are_brought_to_the_wider_type() -> None:
    join = join_of("SELECT a.len FROM control a, main2 b WHERE a.len = b.len AND a.ts = b.at")
    assert join.sides[0].keys == ("a.__key0",)
    assert join.sides[1].keys == ("b.len",)
    first = join.inputs[0]
    assert isinstance(first, Project)
    assert dict(first.columns)["a.__key0"] == Cast(Column("len"), pa.int64())


def test_fractions_are_keys_with_one_zero_and_one_nan() -> None:
    join = join_of("SELECT a.len FROM silent [RANGE 1 MINUTE] a, main1 [RANGE 1 MINUTE] b WHERE a.len = b.len")
    first = join.inputs[0]
    assert isinstance(first, Project)
    assert dict(first.columns)["a.__key0"] == Call("canonical", (Column("len"),))


def test_what_equals_the_same_is_one_key_and_a_condition_on_its_input() -> None:
    join = from_both(f"a.srcIP = b.srcIP AND a.destIP = b.srcIP AND {BAND}")
    assert [side.keys for side in join.sides] == [("a.srcIP",), ("b.srcIP",)]
    (filtered,) = [each for each in walk(join) if isinstance(each, Filter)]
    assert filtered.predicate == Call("=", (Column("srcIP"), Column("destIP")))


def test_null_safe_equality_is_no_key() -> None:
    join = from_both(f"a.len <=> b.len AND {BAND}")
    assert join.sides[0].keys == ()
    assert join.residual == Call("<=>", (Column("a.len"), Column("b.len")))


# Times


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS", [5 * SECOND, 0]),
        ("b.ts > a.ts AND b.ts < a.ts + INTERVAL 5 SECONDS", [5 * SECOND - 1, -1]),
        ("a.ts >= b.ts - INTERVAL 5 SECONDS AND a.ts <= b.ts + INTERVAL 3 SECONDS", [5 * SECOND, 3 * SECOND]),
        ("b.ts - a.ts <= INTERVAL 5 SECONDS AND INTERVAL 0 SECONDS <= b.ts - a.ts", [5 * SECOND, 0]),
        ("b.ts - a.ts BETWEEN INTERVAL 2 SECONDS AND INTERVAL 5 SECONDS", [5 * SECOND, -2 * SECOND]),
        ("a.ts = b.ts", [0, 0]),
        ("a.ts + INTERVAL 5 SECONDS = b.ts", [5 * SECOND, -5 * SECOND]),
        ("abs(unix_micros(a.ts) - unix_micros(b.ts)) <= 5000000", [5 * SECOND, 5 * SECOND]),
        ("a.ts = b.ts AND b.ts <= a.ts + INTERVAL 5 SECONDS", [0, 0]),
    ],
)
def test_comparisons_of_times_limit_how_long_rows_are_kept(condition: str, expected: list[int]) -> None:
    join = from_both(condition)
    assert aheads(join) == expected
    assert join.residual is None


def test_what_is_cut_off_limits_the_join_and_is_checked_once_more() -> None:
    join = from_both("unix_seconds(a.ts) - unix_seconds(b.ts) BETWEEN -3 AND 5")
    assert aheads(join) == [4 * SECOND - 1, 6 * SECOND - 1]
    assert join.residual is not None


def test_windows_say_how_long_rows_of_each_side_are_kept() -> None:
    text = "SELECT a.len FROM control [RANGE 3 MINUTES WA ts] a, main1 [RANGE 2 MINUTES] b WHERE a.len = b.len"
    assert join_of(text).sides == (Side(("a.len",), 180 * SECOND), Side(("b.len",), 120 * SECOND))


def test_a_window_and_a_band_together_are_the_narrower_of_both() -> None:
    join = from_both("b.ts <= a.ts + INTERVAL 5 SECONDS", window="[RANGE 1 MINUTE]")
    assert aheads(join) == [5 * SECOND, 60 * SECOND]


@pytest.mark.parametrize("text", ["WHERE a.len = b.len WINDOW 10 MINUTES", "WINDOW 10 MINUTES WHERE a.len = b.len"])
def test_a_window_without_brackets_holds_for_all_inputs(text: str) -> None:
    assert aheads(join_of(f"SELECT a.len FROM control a, main1 b {text}")) == [600 * SECOND, 600 * SECOND]


def test_a_window_after_where_holds_for_the_one_stream_of_a_select_too() -> None:
    after = root("SELECT count(*) FROM main1 WHERE len > 3 WINDOW 10 MINUTES")
    assert after == root("SELECT count(*) FROM main1 WINDOW 10 MINUTES WHERE len > 3")


def test_a_window_may_name_a_further_time_column_of_its_stream() -> None:
    stream = (
        "CREATE STREAM two (k INT, ts TIMESTAMP, sent TIMESTAMP) TIMESTAMP BY ts ORDERED"
        " ALSO BY sent DISORDER INTERVAL 1 SECOND FROM csv OPTIONS (path 'x')"
    )
    text = f"SELECT x.k FROM two [RANGE 1 MINUTE WA sent] x, main1 [RANGE 1 MINUTE] y WHERE x.sent <= y.ts; {stream}"
    join = join_of(text)
    assert aheads(join) == [60 * SECOND, 0]
    assert [each.outlet for each in walk(join) if isinstance(each, Scan)] == ["sent", ""]


TWO = (
    "; CREATE STREAM two (k INT, ts TIMESTAMP, sent TIMESTAMP) TIMESTAMP BY ts ORDERED"
    " ALSO BY sent DISORDER INTERVAL 1 SECOND FROM csv OPTIONS (path 'x')"
)


@pytest.mark.parametrize(
    ("text", "outlets"),
    [
        ("two x, two y WHERE y.sent BETWEEN x.sent AND x.sent + INTERVAL 4 SECONDS", ["sent", "sent"]),
        ("two x JOIN two y ON x.sent = y.sent", ["sent", "sent"]),
        ("two x LEFT JOIN main1 y ON date_trunc('minute', x.sent) = date_trunc('minute', y.ts)", ["sent", ""]),
        ("two x ASOF JOIN two y ON y.sent <= x.sent AND x.k = y.k", ["sent", "sent"]),
        ("(SELECT k, sent FROM two WHERE k > 3) x JOIN main1 y ON y.ts = x.sent", ["sent", ""]),
        ("two x, two y WHERE x.ts = y.ts AND x.sent <= y.sent", ["", ""]),
        ("two x ASOF JOIN two y ON y.ts <= x.ts AND x.sent = y.sent", ["", ""]),
        ("two [RANGE 1 MINUTE] x, two [RANGE 1 MINUTE] y WHERE x.sent = y.sent", ["", ""]),
        ("two x SEQ two y MODE RECENT WHERE x.sent = y.sent", ["", ""]),
    ],
)
def test_an_input_goes_by_the_further_time_that_conditions_compare_alone(text: str, outlets: list[str]) -> None:
    scans = [each for each in walk(root(f"SELECT x.k FROM {text}{TWO}")) if isinstance(each, Scan)]
    assert [each.outlet for each in scans] == outlets


def test_conditions_on_two_times_of_one_input_do_not_bound_it_together() -> None:
    error = refusal(f"SELECT x.k FROM two x, two y WHERE x.sent = y.sent AND y.ts <= x.ts{TWO}")
    assert "for ever" in error.fact
    assert error.hint and "by sent and ts" in error.hint and "two [RANGE 5 MINUTES WA sent] AS y" in error.hint


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("x.len, y.len, len", ["x_len", "y_len", "len"]),
        ("len, x.len", ["len", "x_len"]),
        ("x.len", ["len"]),
        ("len, x.srcIP, y.srcIP", ["len", "x_srcIP", "y_srcIP"]),
    ],
)
def test_the_column_of_using_keeps_its_name_beside_those_it_is_made_of(columns: str, expected: list[str]) -> None:
    assert names(f"SELECT {columns} FROM control x JOIN main1 y USING (len) WINDOW 3 SECONDS") == expected


def test_a_column_beside_one_of_using_is_told_apart_by_its_input() -> None:
    text = "SELECT * FROM control x JOIN main1 y USING (len) JOIN main2 z ON x.len = z.len WINDOW 3 SECONDS"
    found = names(text)
    assert found[0] == "len"
    assert "z_len" in found


def test_a_column_of_a_row_says_until_when_it_matches() -> None:
    join = join_of("SELECT a.len FROM other a, control b WHERE b.ts BETWEEN a.ts AND a.seen")
    assert join.sides == (Side((), None, "a.__until"), Side((), 0))
    first = join.inputs[0]
    assert isinstance(first, Project)
    assert dict(first.columns)["a.__until"] == Column("seen")
    assert join.residual is None


def test_a_second_end_of_a_row_stays_a_condition() -> None:
    join = join_of(
        "SELECT a.len FROM other a, control b WHERE b.ts BETWEEN a.ts AND a.seen AND b.ts < a.seen - INTERVAL 1 SECOND"
    )
    assert join.sides[0].until == "a.__until"
    assert join.residual is not None


@pytest.mark.parametrize(
    ("function", "length"),
    [
        ("unix_seconds({}) div 10", None),
        ("date_trunc('minute', {})", 60 * SECOND - 1),
        ("date_format({}, 'yyyy-MM-dd HH:mm')", 60 * SECOND - 1),
        ("to_date({})", 86_400 * SECOND - 1),
        ("CAST({} AS DATE)", 86_400 * SECOND - 1),
        ("floor(unix_seconds({}) / 10)", 10 * SECOND - 1),
    ],
)
def test_equal_values_of_a_monotone_function_end_with_their_bucket(function: str, length: int | None) -> None:
    condition = f"{function.format('a.ts')} = {function.format('b.ts')}"
    join = from_both(condition)
    assert [side.keys for side in join.sides] == [("a.__key0",), ("b.__key0",)]
    keyed = from_both(f"{condition} AND a.srcIP = b.srcIP")
    assert [side.keys for side in keyed.sides] == [("a.srcIP",), ("b.srcIP",)], "the ends say it already"
    for each in (join, keyed):
        assert [side.until for side in each.sides] == ["a.__until", "b.__until"]
        assert each.residual is None
        if length is not None:
            assert aheads(each) == [length, length]


def test_months_are_keys_within_the_longest_of_them() -> None:
    join = from_both("date_trunc('month', a.ts) = date_trunc('month', b.ts) AND a.len = b.len")
    assert len(join.sides[0].keys) == 2
    assert aheads(join) == [31 * 86_400 * SECOND - 1] * 2


@pytest.mark.parametrize("column", ["window_start", "window_end", "m"])
def test_results_of_equal_windows_meet_at_once(column: str) -> None:
    inner = "SELECT date_trunc('month', ts) AS m, count(*) AS n FROM {} GROUP BY m"
    if column != "m":
        inner = "SELECT window_start, window_end, count(*) AS n FROM {} [RANGE 1 MINUTE SLIDE 1 MINUTE]"
    first, second = inner.format("control"), inner.format("main1")
    join = join_of(f"SELECT x.n, y.n FROM ({first}) x JOIN ({second}) y ON x.{column} = y.{column}")
    assert aheads(join) == [0, 0]
    assert join.sides[0].keys == (f"x.{column}",), "where nothing else is equal it spreads the rows"


def test_a_stream_meets_results_of_windows_that_it_falls_into() -> None:
    inner = "SELECT window_start, window_end, count(*) AS n FROM main1 [RANGE 1 MINUTE SLIDE 1 MINUTE]"
    join = join_of(f"SELECT a.len FROM control a JOIN ({inner}) w ON a.ts >= w.window_start AND a.ts < w.window_end")
    assert aheads(join) == [60 * SECOND - 1, 0]


# Several inputs


def test_inputs_on_the_same_keys_are_one_join() -> None:
    join = join_of(
        "SELECT a.len FROM control [RANGE 5 MINUTES] a, main1 [RANGE 1 MINUTE] b, other [RANGE 2 MINUTES] c"
        " WHERE a.len = b.len AND b.len = c.len AND c.ts <= a.ts + INTERVAL 10 SECONDS"
    )
    assert [side.keys for side in join.sides] == [("a.len",), ("b.len",), ("c.len",)]
    # b is at most 2 minutes after c, which is at most 10 seconds after a.
    assert aheads(join) == [130 * SECOND, 60 * SECOND, 120 * SECOND]
    assert join.residual == Call(
        "<=", (Column("c.ts"), Call("+", (Column("a.ts"), Literal(10 * SECOND, pa.duration("us")))))
    )


def test_inputs_on_different_keys_are_a_pipeline_that_begins_with_the_shortest_reach() -> None:
    join = join_of(
        "SELECT a.len FROM control [RANGE 5 MINUTES] a, main1 [RANGE 1 MINUTE] b, other [RANGE 2 MINUTES] c"
        " WHERE a.len = b.len AND b.srcIP = c.srcIP"
    )
    assert [side.keys for side in join.sides] == [("b.len",), ("a.len",)]
    assert join.sides[0].until is not None
    assert join.sides[1].ahead == 300 * SECOND
    (below,) = [each for each in walk(join) if isinstance(each, Join) and each is not join]
    assert [side.keys for side in below.sides] == [("b.srcIP",), ("c.srcIP",)]


# Refusals


CHAINED = "SELECT 1 AS n FROM control [RANGE 1 MINUTE] a FULL JOIN main1 [RANGE 1 MINUTE] b ON a.len = b.len"


@pytest.mark.parametrize(
    ("text", "fact", "hint"),
    [
        ("a.len FROM control a LEFT SEMI JOIN main1 b ON a.len = b.len", "SEMI joins", "make the second input unique"),
        ("a.len FROM control a JOIN LATERAL (SELECT len FROM main1) b ON a.len = b.len", "LATERAL", "Use JOIN"),
        ("len FROM control WHERE len IN (SELECT len FROM main1)", "IN with a subquery", "allowed in FROM"),
    ],
)
def test_what_is_not_there_says_what_to_write_instead(text: str, fact: str, hint: str) -> None:
    error = refusal(f"SELECT {text}")
    assert isinstance(error, NotYet)
    assert fact in error.fact
    assert error.hint and hint in error.hint


@pytest.mark.parametrize(
    ("text", "fact", "hint", "place"),
    [
        ("SELECT a.len FROM control a, main1 b WHERE a.len = b.len", 'rows of "a" for ever', "b.ts <= a.ts +", "a"),
        ("SELECT 1 AS n FROM control, main1 [RANGE 1 MINUTE]", 'rows of "control" for ever',
         "control [RANGE 5 MINUTES],", "control"),
        ("SELECT a.len FROM control a JOIN main1 b ON b.ts >= a.ts", 'rows of "a" for ever', "add to ON: b.ts <= a.ts",
         "a"),
        ("SELECT a.len FROM control a JOIN main1 b ON b.ts <= a.ts + INTERVAL 1 SECOND", 'rows of "b" for ever',
         "a.ts <= b.ts", "b"),
        ("SELECT 1 AS n FROM control [RANGE 1 MINUTE], silent s", 'rows of "s" for ever',
         "silent [RANGE 5 MINUTES]", "s"),
        ("SELECT a.len FROM control a, main1 b, other c WHERE a.ts = b.ts AND c.ts >= a.ts", 'rows of "a" for ever',
         "c.ts <= a.ts", "a"),
        ("SELECT 1 AS n FROM control a, main1 A", 'two inputs are named "A"', "AS x", "A"),
        ("SELECT 1 AS n FROM control, control", 'two inputs are named "control"', "AS x", "control"),
        ("SELECT 1 AS n FROM control UNION main1, other", "an input of a join has no name", "AS",
         "control UNION main1"),
        ("SELECT 1 AS n FROM (SELECT len, ts FROM main1), other", "has no name", "AS", None),
        ("SELECT len FROM control a JOIN main1 b ON a.ts = b.ts", 'column "len" exists in several inputs',
         "Write a.len or b.len", "len"),
        ("SELECT a.lenn FROM control a JOIN main1 b ON a.ts = b.ts", 'column "lenn" does not exist', 'mean "len"',
         "a.lenn"),
        ("SELECT nothing FROM control a JOIN main1 b ON a.ts = b.ts", 'column "nothing" does not exist', "a.srcIP",
         "nothing"),
        ("SELECT c.len FROM control a JOIN main1 b ON a.ts = b.ts", '"c" is not an input', "inputs are a, b", "c.len"),
        ("SELECT a.len FROM control a JOIN main1 b ON a.ts = c.ts JOIN other c ON c.ts = a.ts", '"c" is not an input',
         "The inputs are a, b", "c.ts"),
        ("SELECT a.len FROM control a JOIN main1 b ON a.ts = b.ts AND a.srcIP = b.len", "no common type", "CAST",
         "a.srcIP = b.len"),
        ("SELECT a.len FROM control a JOIN main1 b USING (at)", 'column "at" of USING does not exist in "a" and "b"',
         "both inputs have are srcIP, destIP, len, ts", "at"),
        ("SELECT a.len FROM main2 a JOIN main1 b USING (srcIP)", 'does not exist in "a"', "both inputs have are len",
         "srcIP"),
        ("SELECT x.len FROM control x, main1 x", 'two inputs are named "x"', "main1 AS y", "x"),
        ("SELECT 1 AS n FROM control a LEFT JOIN main1 b USING (len)", 'rows of "a" for ever', "instead of USING", "a"),
        (f"{CHAINED} FULL JOIN other [RANGE 1 MINUTE] c ON c.len = a.len", 'rows of "a" for ever',
         "may be null only applies to the join that adds it: add to ON: c.ts <= a.ts", "a"),
        ("SELECT a.len FROM control a JOIN other b ON a.ts = b.seen", 'rows of "a" for ever', "b.ts <= a.ts", "a"),
        ("SELECT a.len FROM control a JOIN main1 b ON a.len", "not BOOLEAN", "Compare", "a.len"),
        ("SELECT a.len FROM control a JOIN main1 b ON count(*) = 3", 'aggregate "count" is not allowed here', "HAVING",
         "count(*)"),
        ("SELECT a.len FROM control a JOIN main1 b ON a.ts = b.ts WHERE count(*) = 3", "not allowed in WHERE",
         "HAVING", "count(*)"),
        ("SELECT 1 AS n FROM control [RANGE 1 MINUTE SLIDE 1 MINUTE] a, main1 b", "a join cannot have SLIDE",
         "count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE]", "[RANGE 1 MINUTE SLIDE 1 MINUTE]"),
        ("SELECT 1 AS n FROM TUMBLE(TABLE control, DESCRIPTOR(ts), INTERVAL 1 MINUTE) a, main1 b",
         "windows of aggregates, not of joins", "date_trunc", None),
        ("SELECT 1 AS n FROM control [SESSION 1 MINUTE] a, main1 b", "cannot have a SESSION window", "count(*)", None),
        ("SELECT 1 AS n FROM control [RANGE UNLIMITED PRECEDING] a, main1 b", "UNLIMITED window", "ASOF JOIN", None),
        ("SELECT 1 AS n FROM control [RANGE 1 MINUTE PARTITION BY len] a, main1 b", "only allowed with ROWS",
         "Join on", None),
        ("SELECT 1 AS n FROM control [RANGE 1 MINUTE WA len] a, main1 b", "is not the time column", "WA ts", "len"),
        ("SELECT 1 AS n FROM control [ROWS 0] a, main1 b", "is not positive", "100", None),
        ("SELECT a.len FROM control a, main1 b WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL 2000000 DAYS", "too long",
         "1,000,000 days", None),
        ("SELECT a.len FROM control a, main1 b WHERE a.ts > b.ts AND b.ts > a.ts", "no rows can", "signs", None),
        ("SELECT x.n FROM (SELECT count(*) AS n FROM main1 [ROWS 5 SLIDE 5]) x, control b", "have no time",
         "time windows", "x"),
        ("SELECT 1 AS n FROM control NATURAL JOIN main1 ON 1 = 1", "takes neither ON nor USING", "leave NATURAL", "ON"),
        ("SELECT 1 AS n FROM control NATURAL main1", "expected JOIN", "JOIN b", "main1"),
        ("SELECT 1 AS n FROM control NATURAL CROSS JOIN main1", "expected JOIN", "JOIN b", "CROSS"),
        ("SELECT 1 AS n FROM silent NATURAL JOIN (SELECT at FROM main2) AS m", "no columns to join on", "JOIN ... ON",
         "NATURAL"),
        ("SELECT a.len FROM control a LEFT JOIN main1 b", "expected ON or USING after LEFT JOIN", "ON x.k = y.k", None),
        ("SELECT a.len FROM control a LEFT main1 b ON a.ts = b.ts", "expected JOIN", "JOIN b", "main1"),
        ("SELECT a.len FROM control a JOIN ON a.ts = b.ts", "expected a stream", "FROM takes", "ON"),
        ("SELECT a.len FROM control a JOIN main1 b ON", "expected a condition after ON", "JOIN", None),
        ("SELECT a.len FROM control [RANGE 1 MINUTE] a WHERE a.len > 3 WINDOW 5 MINUTES", "a second window", "one",
         None),
    ],
)  # fmt: skip
def test_a_wrong_join_is_refused_at_its_place(text: str, fact: str, hint: str, place: str | None) -> None:
    error = refusal(text)
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.hint and hint in error.hint
    assert error.place is not None
    if place is not None:
        assert error.place.text == place


# By rows


def test_a_join_over_rows_keeps_the_last_of_each_side() -> None:
    found: list[AnyJoin | Node] = list(
        walk(
            root(
                "SELECT a.ts, b.ts FROM control [ROWS 100] a, main1 [ROWS 50 PARTITION BY srcIP, destIP] b"
                " WHERE a.len = b.len AND a.srcIP > b.srcIP"
            )
        )
    )
    (join,) = [each for each in found if isinstance(each, RowsJoin)]
    assert join.sides == (
        RowsSide(("a.len",), 100),
        RowsSide(("b.len",), 50, partition=("b.srcIP", "b.destIP")),
    )
    assert join.residual == Call(">", (Column("a.srcIP"), Column("b.srcIP")))


def test_rows_are_counted_before_conditions_choose_among_them() -> None:
    text = "SELECT a.ts FROM control [ROWS 100] a, main1 b WHERE a.len = b.len AND a.len > 3 AND b.len < 9"
    (join,) = [each for each in walk(root(text)) if isinstance(each, RowsJoin)]
    assert join.sides[1] == RowsSide(("b.len",))
    assert join.residual == Call(">", (Column("a.len"), Literal(3, pa.int32())))
    (below,) = [each for each in walk(join) if isinstance(each, Filter)]
    assert below.predicate == Call("<", (Column("len"), Literal(9, pa.int32())))


def test_rows_of_one_side_go_with_a_range_of_the_other() -> None:
    text = "SELECT a.ts FROM control [ROWS 100] a JOIN main1 [RANGE 1 MINUTE] b ON a.len = b.len"
    (join,) = [each for each in walk(root(text)) if isinstance(each, RowsJoin)]
    assert [(side.rows, side.range) for side in join.sides] == [(100, None), (None, 60 * SECOND)]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("SELECT 1 AS n FROM control [ROWS 5] a, main1 b, other c", "more than two inputs"),
        ("SELECT 1 AS n FROM control [ROWS 5] a LEFT JOIN main1 b ON a.len = b.len", "LEFT JOIN with a ROWS window"),
        ("SELECT 1 AS n FROM control [ROWS 5 SLIDE 5] a, main1 b", "a window of a join cannot have SLIDE"),
        ("SELECT 1 AS n FROM control [ROWS 5 WA ts] a, main1 b", "WA cannot be combined with ROWS"),
        ("SELECT 1 AS n FROM control [ROWS 5 PARTITION BY nothing] a, main1 b", 'column "nothing" does not exist'),
    ],
)
def test_a_wrong_join_over_rows_is_refused(text: str, fact: str) -> None:
    error = refusal(text)
    assert fact in error.fact
    assert error.hint


# Options


JOINED = "SELECT a.len, b.len FROM control [RANGE 1 MINUTE] a, main1 [RANGE 1 MINUTE] b WHERE a.srcIP = b.srcIP"


@pytest.mark.parametrize("method", ["oop", "sync_filter", "filter_order", "adaptive"])
def test_an_ordered_join_may_name_its_method(method: str) -> None:
    found = query(f"{JOINED} ORDER BY ts WITH (join = '{method}')")
    assert found.options == {"join": method}
    assert isinstance(found.root, OrderByTime)


def test_alpha_is_for_the_method_that_adapts() -> None:
    assert query(f"{JOINED} ORDER BY ts WITH (alpha = 0.3)").options == {"alpha": "0.3"}
    assert query(f"{JOINED} ORDER BY ts WITH (join = 'adaptive', alpha = 0)").options["alpha"] == "0"


LEFT = "SELECT a.len FROM control [RANGE 1 MINUTE] a LEFT JOIN main1 [RANGE 1 MINUTE] b ON a.len = b.len"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (f"{JOINED} WITH (join = 'adaptive')", 'option "join" = "adaptive" is for'),
        (f"{JOINED} ORDER BY a.ts WITH (join = 'sync_filter')", 'option "join" = "sync_filter" is for'),
        (f"{LEFT} ORDER BY ts WITH (join = 'filter_order')", 'option "join" = "filter_order" is for'),
        (f"{JOINED} WITH (alpha = 0.3)", 'option "alpha" has no effect'),
        (f"{JOINED} ORDER BY ts WITH (alpha = 0.3, join = 'oop')", 'option "alpha" has no effect'),
        ("SELECT len FROM main1 WITH (join = 'oop')", 'option "join" has no effect'),
        ("SELECT len FROM main1 WITH (alpha = 0.3)", 'option "alpha" has no effect'),
        (f"{JOINED} WITH (state_limit = 100)", 'option "state_limit" has no effect'),
    ],
)
def test_an_option_of_joins_without_effect_is_refused(text: str, fact: str) -> None:
    error = refusal(text)
    assert fact in error.fact
    assert error.hint
    assert error.place is not None
