from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.errors import NotYet, QueryError
from millrace.kernel.columns.expressions import Call, Column
from millrace.plan.nodes.aggregate_nodes import Aggregate, Aggregation, AnyWindow, Window
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Filter, Project, Union
from tests.unit.language.scripts import names, refusal, root

MINUTE = 60_000_000


def aggregate_of(found: Node) -> Aggregate:
    (aggregate,) = [each for each in walk(found) if isinstance(each, Aggregate)]
    return aggregate


def window_of(text: str) -> AnyWindow:
    return aggregate_of(root(text)).window


def test_a_query_becomes_aggregate_filter_project() -> None:
    found = root(
        "SELECT srcIP, sum(len) AS s FROM main1 [RANGE 5 MINUTES SLIDE 1 MINUTE WA ts] GROUP BY srcIP HAVING s > 5"
    )
    assert isinstance(found, Project)
    assert isinstance(found.input, Filter)
    assert found.schema.names == ["srcIP", "s"]
    aggregate = found.input.input
    assert isinstance(aggregate, Aggregate)
    assert aggregate.window == Window(5 * MINUTE, MINUTE)
    assert aggregate.keys == (("srcIP", Column("srcIP")),)
    assert aggregate.aggregations == (Aggregation("a0", "sum", (Column("len"),)),)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM control UNION main1 UNION main2 [RANGE 5 MINUTES SLIDE 1 MINUTE WA ts]",
        "SELECT count(*) FROM control UNION main1 UNION main2 [WA ts, SLIDE 1 min, RANGE 300 s] AS m",
        "SELECT count(*) FROM control UNION main1 UNION main2 AS m [RANGE 5min SLIDE 60sec]",
        "SELECT count(*) [RANGE 5 min, SLIDE 1 min, WA ts] FROM control UNION main1 UNION main2",
    ],
)
def test_a_window_binds_the_whole_union(text: str) -> None:
    aggregate = aggregate_of(root(text))
    assert aggregate.window == Window(5 * MINUTE, MINUTE)
    assert isinstance(aggregate.input, Union)
    assert len(aggregate.input.inputs) == 3


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM main1 [RANGE 60000 ms SLIDE 30000000 microseconds WA TS]",
        "SELECT count(*) FROM HOP(TABLE main1, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE)",
        "SELECT count(*) FROM TABLE(HOP(TABLE main1, DESCRIPTOR(ts), 30 s, 1 min)) GROUP BY window_start, window_end",
        "SELECT count(*) FROM main1 GROUP BY window(ts, '1 minute', '30 seconds')",
        "SELECT count(*) FROM main1 GROUP BY window(ts, INTERVAL 1 MINUTE, INTERVAL 30 SECONDS)",
    ],
)
def test_a_window_can_be_written_in_several_ways(text: str) -> None:
    assert window_of(text) == Window(MINUTE, MINUTE // 2)


def test_tumble_is_a_window_that_slides_by_its_range() -> None:
    assert window_of("SELECT count(*) FROM TUMBLE(TABLE main1, DESCRIPTOR(ts), 1 MINUTE)") == Window(MINUTE, MINUTE)
    assert window_of("SELECT count(*) FROM main1 GROUP BY window(ts, '1 minute')") == Window(MINUTE, MINUTE)


def test_a_latent_stream_is_windowed_without_wa() -> None:
    assert window_of("SELECT avg(len) FROM silent [RANGE 1 MINUTE SLIDE 1 MINUTE]") == Window(MINUTE, MINUTE)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("count(*)", ["count"]),
        ("sum(len), avg(LEN)", ["sum_len", "avg_LEN"]),
        ("max(len) - min(len)", ["c1"]),
        ("window_end, count(*)", ["window_end", "count"]),
        ("window.start, window.end, count(len)", ["window_start", "window_end", "count_len"]),
        ("window, count(*)", ["window_start", "window_end", "count"]),
        ("window_start AS begun, count(*) AS n", ["begun", "n"]),
    ],
)
def test_a_result_has_the_columns_of_the_select_list_and_no_others(items: str, expected: list[str]) -> None:
    assert names(f"SELECT {items} FROM main1 [RANGE 1 MINUTE SLIDE 1 MINUTE]") == expected


@pytest.mark.parametrize("group", ["upper(srcIP)", "1", "u"])
def test_groups_are_expressions_ordinals_or_aliases(group: str) -> None:
    found = root(f"SELECT upper(srcIP) AS u, count(*) FROM main1 [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY {group}")
    assert aggregate_of(found).keys == (("k0", Call("upper", (Column("srcIP"),))),)
    assert isinstance(found, Project)
    assert found.columns[0] == ("u", Column("k0"))


def test_equal_aggregates_are_computed_once() -> None:
    found = root(
        "SELECT sum(len) / count(*) AS m, count(*), count(1) AS n, SUM(LEN) AS s FROM main1 [RANGE 1 s SLIDE 1 s]"
    )
    assert [each.function for each in aggregate_of(found).aggregations] == ["sum", "count"]
    assert found.schema.field("m").type == pa.float64()


def test_an_expression_over_a_group_key_reads_the_key() -> None:
    found = root("SELECT len + 1 AS more, count(*) FROM main1 [RANGE 1 s SLIDE 1 s] GROUP BY len")
    assert isinstance(found, Project)
    assert str(found.columns[0][1]) == "(len + 1)"


def test_groups_without_aggregates_are_the_distinct_keys_of_a_window() -> None:
    assert names("SELECT srcIP FROM main1 [RANGE 1 s SLIDE 1 s] GROUP BY srcIP") == ["srcIP"]


def test_a_filter_over_an_aggregate_in_a_subquery_is_no_nested_aggregate() -> None:
    text = (
        "SELECT x.n FROM (SELECT count(*) AS n FROM main1 [RANGE 1 s SLIDE 1 s]) AS x WHERE n > 5 ORDER BY window_end"
    )
    assert names(text) == ["n"]


def test_an_aggregate_without_a_window_is_told_the_window_that_bounds_it() -> None:
    error = refusal("SELECT srcIP, count(*) FROM control UNION main1 GROUP BY srcIP")
    assert isinstance(error, QueryError)
    assert "FROM control UNION main1 [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts]" in error.hint
    assert error.place is not None and error.place.text == "count(*)"


WINDOW = "[RANGE 1 MINUTE SLIDE 1 MINUTE WA ts]"


@pytest.mark.parametrize(
    ("text", "fact", "offending"),
    [
        ("SELECT len FROM main1 GROUP BY len", "never ends", "len"),
        (f"SELECT len FROM main1 {WINDOW}", "a query without an aggregate", WINDOW),
        (f"SELECT count(*) FROM control {WINDOW} UNION main1", "not allowed inside a union", WINDOW),
        (f"SELECT len, count(*) FROM main1 {WINDOW}", "neither grouped nor aggregated", "len"),
        (f"SELECT * FROM main1 {WINDOW} GROUP BY len", "* cannot be selected", "*"),
        (f"SELECT sum(srcIP) FROM main1 {WINDOW}", '"sum" takes a number', "sum(srcIP)"),
        (f"SELECT sum(count(*)) FROM main1 {WINDOW}", "not allowed here", "count(*)"),
        (
            f"SELECT count(*) FROM main1 {WINDOW} GROUP BY count(*)",
            "an aggregate is not allowed in GROUP BY",
            "count(*)",
        ),
        (f"SELECT count(*) FROM main1 {WINDOW} GROUP BY 2", "has no column 2", "2"),
        (f"SELECT count(*) FROM main1 {WINDOW} HAVING count(*)", "HAVING is BIGINT, not BOOLEAN", "count(*)"),
        ("SELECT count(*) FROM main1 [RANGE 1 s SLIDE 1 s WA len]", 'not the time column of "main1"', "len"),
        ("SELECT count(*) FROM main1 [RANGE 1 s SLIDE 1 s WA tss]", 'column "tss" does not exist', "tss"),
        ("SELECT count(*) FROM silent [RANGE 1 s SLIDE 1 s WA len]", 'not the time column of "silent"', "len"),
        ("SELECT count(*) FROM main1 [SLIDE 1 s]", "a window has no RANGE", "[SLIDE 1 s]"),
        ("SELECT count(*) FROM main1 [RANGE 1 s RANGE 1 s]", "RANGE is given twice", "RANGE"),
        ("SELECT count(*) FROM main1 [RANGE 0 s SLIDE 1 s]", "RANGE is not positive", "0 s"),
        ("SELECT count(*) FROM main1 [RANGE 1 parsec SLIDE 1 s]", "not a unit of time", "1 parsec"),
        ("SELECT count(*) FROM main1 [RANGE five SLIDE 1 s]", "expected a length of time", "five"),
        ("SELECT len [RANGE 1 s SLIDE 1 s] FROM main1", "not an aggregate", "["),
        ("SELECT count(*) FROM TUMBLE(TABLE main1, 1 MINUTE)", "expected DESCRIPTOR", "1"),
        ("SELECT count(*) FROM main1 GROUP BY window(ts)", '"window" takes', "window(ts)"),
    ],
)
def test_a_wrong_aggregate_is_refused_at_its_place(text: str, fact: str, offending: str) -> None:
    error = refusal(text)
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.hint
    assert error.place is not None and error.place.text == offending


def test_wa_over_a_union_names_the_stream_whose_time_is_elsewhere() -> None:
    text = "SELECT count(*) FROM (SELECT ts FROM main1 UNION SELECT seen FROM other) AS u [RANGE 1 s SLIDE 1 s WA ts]"
    assert 'column "ts" is not the time column of "other"' in refusal(text).fact


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) [RANGE 1 s SLIDE 1 s], sum(len) [RANGE 2 s SLIDE 1 s] FROM main1",
        "SELECT count(*) FROM CUMULATE(TABLE main1, DESCRIPTOR(ts), 1 MINUTE, 1 HOUR)",
    ],
)
def test_what_is_not_supported_yet_is_refused_as_such(text: str) -> None:
    error = refusal(text)
    assert isinstance(error, NotYet), error
    assert error.hint
    assert error.place is not None


def test_an_exploded_column_may_be_named_as_one_of_the_rows_and_not_as_another_result() -> None:
    assert names("SELECT explode(split(srcIP, ',')) AS srcIP, len FROM main1") == ["srcIP", "len"]
    assert names("SELECT posexplode(split(srcIP, ',')) AS (len, LEN2) FROM main1 WHERE len > 5") == ["len", "LEN2"]
    assert 'two columns are named "len"' in str(refusal("SELECT len, explode(split(srcIP, ',')) AS len FROM main1"))
    twice = refusal("SELECT posexplode(split(srcIP, ',')) AS (len, len) FROM main1")
    assert 'there is a column "len" already' in str(twice)
