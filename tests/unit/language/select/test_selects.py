from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.errors import NotYet, QueryError
from millrace.kernel.columns.expressions import Call, Cast, Column, Literal
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.relational_nodes import Filter, OrderByTime, Project, Scan, Union
from tests.unit.language.scripts import names, query, refusal, root


def test_star_is_the_stream_itself() -> None:
    assert isinstance(root("SELECT * FROM main1"), Scan)


def test_where_filters_below_the_projection() -> None:
    found = root("SELECT srcIP FROM main1 WHERE len > 10")
    assert isinstance(found, Project)
    assert found.columns == (("srcIP", Column("srcIP")),)
    assert isinstance(found.input, Filter)
    assert found.input.predicate == Call(">", (Column("len"), Literal(10, pa.int32())))


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("LEN, SRCIP", ["len", "srcIP"]),
        ("m.len, m.*", None),
        ("m.*, len + 1", ["srcIP", "destIP", "len", "ts", "c2"]),
        ("len AS Laenge, upper(srcIP)", ["Laenge", "c2"]),
        ("len bytes", ["bytes"]),
    ],
)
def test_result_columns_keep_the_declared_spelling(items: str, expected: list[str] | None) -> None:
    text = f"SELECT {items} FROM main1 AS m"
    if expected is None:
        assert 'two columns are named "len"' in refusal(text).fact
    else:
        assert names(text) == expected


def test_a_subquery_in_from_is_read_like_a_stream() -> None:
    assert names("SELECT x.twice FROM (SELECT len * 2 AS twice, ts FROM main1) AS x WHERE x.twice > 3") == ["twice"]


def test_a_union_of_streams_takes_the_names_of_the_first_and_the_wider_type() -> None:
    found = root("SELECT * FROM main1 UNION main2")
    assert isinstance(found, Union)
    assert found.schema.names == ["srcIP", "destIP", "len", "ts"]
    assert found.schema.field("len").type == pa.int64()
    assert all(each.schema.equals(found.schema) for each in found.inputs)
    first = found.inputs[0]
    assert isinstance(first, Project)
    assert first.columns[2] == ("len", Cast(Column("len"), pa.int64()))


def test_a_union_of_equal_streams_needs_no_projection() -> None:
    found = root("SELECT * FROM control UNION ALL main1")
    assert isinstance(found, Union)
    assert all(isinstance(each, Scan) for each in found.inputs)


def test_a_union_of_selects_is_a_bag_union_too() -> None:
    found = root("SELECT len FROM main1 UNION SELECT len FROM main2 UNION ALL (SELECT len FROM control)")
    assert isinstance(found, Union)
    assert len(found.inputs) == 3


@pytest.mark.parametrize("text", ["SELECT len FROM main1 ORDER BY ts", "SELECT ts AS t FROM main1 ORDER BY t ASC"])
def test_order_by_time_makes_a_sequence(text: str) -> None:
    assert isinstance(root(text), OrderByTime)


def test_streams_and_sinks_may_be_declared_after_the_query() -> None:
    found = query("CREATE QUERY q INTO out AS SELECT len FROM main1; CREATE SINK out TO parquet OPTIONS (path 'o')")
    assert (found.sink.name, found.sink.connector.format) == ("out", "parquet")
    assert [type(each) for each in walk(found.root)] == [Scan, Project]


@pytest.mark.parametrize(
    ("text", "fact", "offending"),
    [
        ("SELECT lenn FROM main1", 'column "lenn" does not exist', "lenn"),
        ("SELECT len FROM main", 'stream "main" does not exist', "main"),
        ("SELECT x.len FROM main1", '"x" is not an input of this query', "x.len"),
        ("SELECT len, len FROM main1", 'two columns are named "len"', "len"),
        ("SELECT NULL AS n FROM main1", 'column "n" has no type', "NULL"),
        ("SELECT len FROM main1 WHERE len", "the condition of WHERE is INT", "len"),
        ("SELECT len FROM main1 WHERE count(*) > 1", "an aggregate is not allowed in WHERE", "count(*)"),
        ("SELECT len FROM main1 ORDER BY len", "only be ordered by its time", "len"),
        ("SELECT len FROM main1 ORDER BY ts DESC", "only be ordered by its time", "ts"),
        ("SELECT len FROM main1 ORDER BY ts, srcIP", "takes columns of the result after the time", "srcIP"),
        ("SELECT len FROM main1 ORDER BY ts, len + 1", "takes columns of the result after the time", "len + 1"),
        ("SELECT len FROM main1 ORDER BY ts, len NULLS LAST", "nulls are sorted as the least value", "len"),
        ("SELECT array(len) AS a FROM main1 ORDER BY ts, a", 'column "a" has no order', "a"),
        ("SELECT len FROM (SELECT len, ts FROM main1 ORDER BY ts)", "ORDER BY is not allowed in a subquery", "ts"),
        ("SELECT * FROM main1 UNION silent", '"main1" has 4 columns and "silent" has 2', "main1 UNION silent"),
        (
            "SELECT len, ts FROM main1 UNION SELECT srcIP, ts FROM main1",
            'column "len" of "main1" is INT, but column "srcIP" of "main1" is STRING',
            "SELECT",
        ),
        ("SELECT len FROM main1 AS a UNION main2", "a name is not allowed inside a union", "a"),
        ("SELECT len FORM main1", 'unexpected "FORM"', "FORM"),
        ("SELECT FROM main1", "expected a column", "FROM"),
        ("SELECT len FROM main1 WHERE", "expected a condition", ""),
        ("SELECT len FROM (SELECT len FROM main1", '"(" is never closed', "("),
        ("SELECT len) FROM main1", '")" is never opened', ")"),
        ("SELECT count(*) FROM main1 [RANGE 1 s SLIDE 1 s", '"[" is never closed', "["),
        ("SELECT 'len FROM main1", "is never closed", "'"),
        ("SELECT len /* FROM main1", "/* is never closed", "/*"),
        ("SELECT len FROM main1 len2 len3", 'unexpected "len3"', "len3"),
        ("SELECT len FROM SQUASH(main1)", '"SQUASH" is not a table function', "SQUASH"),
        ("INSERT INTO x VALUES (1)", "takes a SELECT, not VALUES", "VALUES"),
        ("CREATE INDEX x ON t", "expected STREAM, TABLE, SINK, VIEW, AGGREGATE, FUNCTION or QUERY", "INDEX"),
        (
            "SELECT (SELECT max(len) FROM control) AS m FROM main1",
            "a subquery is not allowed in an expression",
            "(SELECT max(len) FROM control)",
        ),
    ],
)
def test_a_wrong_select_is_refused_at_its_place(text: str, fact: str, offending: str) -> None:
    error = refusal(text)
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.hint
    assert error.place is not None
    if "never closed" not in fact:
        assert error.place.text == offending


def test_a_place_counts_lines_and_columns() -> None:
    place = refusal("SELECT len,\n       lenn\nFROM main1").place
    assert place is not None
    assert (place.line, place.column, place.source_line) == (2, 8, "       lenn")


def test_a_statement_that_ends_too_early_is_marked_at_its_own_end() -> None:
    place = refusal("SELECT len FROM main1 WHERE\n\n").place
    assert place is not None
    assert (place.line, place.column, place.text) == (1, 28, "")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT len FROM main1 OFFSET 5",
        "SELECT len FROM main1 WHERE len IN (SELECT len FROM control HAVING count(*) > 3)",
        "SELECT * FROM main1 LEFT SEMI JOIN main2 ON main1.len = main2.len",
        "SELECT sum(len) OVER (ORDER BY ts) FROM main1",
        "SELECT len FROM main1 EXCEPT SELECT len FROM main2",
        "SELECT len FROM main1 EMIT CHANGES",
    ],
)
def test_what_is_not_supported_yet_is_refused_as_such(text: str) -> None:
    error = refusal(text)
    assert isinstance(error, NotYet)
    assert error.hint
    assert error.place is not None
