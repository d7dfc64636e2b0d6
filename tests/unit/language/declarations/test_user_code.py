from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.errors import QueryError
from millrace.kernel.aggregates.functions.user_aggregates import PythonAggregate, SqlAggregate, UserAggregate
from millrace.language import bind_changes, declarations_of, parse_network
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.node import walk
from tests.unit.language.scripts import STREAMS, refusal

WINDOW = "[RANGE 1 MINUTE SLIDE 1 MINUTE]"
P95 = "CREATE AGGREGATE p95(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'pkg.module:P95';"
MEAN = """
CREATE AGGREGATE my_mean(next DOUBLE) RETURNS DOUBLE LANGUAGE SQL AS
  INITIALIZE (total = 0.0, n = 0) ITERATE (total = total + next, N = n + 1)
  MERGE (total = total + other.total, n = n + other.n) TERMINATE total / n;
"""


def defined(statement: str, call: str) -> UserAggregate:
    found = parse_network(f"{STREAMS}{statement} SELECT {call} AS x FROM main1 {WINDOW}").queries[0].root
    (aggregate,) = [each for each in walk(found) if isinstance(each, Aggregate)]
    function = aggregate.aggregations[0].function
    assert not isinstance(function, str)
    return function


def test_a_class_of_python_is_called_by_name() -> None:
    found = defined(P95, "P95(len)")
    assert found == PythonAggregate("p95", (pa.float64(),), pa.float64(), "pkg.module:P95")
    two = "CREATE AGGREGATE best(STRING, x DOUBLE) RETURNS STRING LANGUAGE PYTHON AS 'm:B.C';"
    assert defined(two, "best(srcIP, len) FILTER (WHERE len > 1)").arguments == (pa.string(), pa.float64())


def test_blocks_of_sql_become_expressions_over_the_state() -> None:
    found = defined(MEAN, "my_mean(len)")
    assert isinstance(found, SqlAggregate)
    assert found.parameters == (("next", pa.float64()),)
    assert [(name, str(each)) for name, each in found.initialize] == [("total", "0.0"), ("n", "0")]
    assert [(name, str(each)) for name, each in found.iterate] == [("total", "(total + next)"), ("n", "(n + 1)")]
    assert found.merge is not None
    assert [str(each) for _, each in found.merge] == ["(total + other.total)", "(n + other.n)"]
    assert str(found.terminate) == "(total / n)"


def test_a_variable_that_is_not_assigned_keeps_its_value() -> None:
    text = "CREATE AGGREGATE f(x INT) RETURNS INT LANGUAGE SQL AS INITIALIZE (a = 0, b = 0) ITERATE (b = x) TERMINATE b"
    found = defined(f"{text};", "f(len)")
    assert isinstance(found, SqlAggregate) and found.merge is None
    assert [str(each) for _, each in found.iterate] == ["a", "CAST(x AS BIGINT)"]
    assert str(found.terminate) == "CAST(b AS INT)"


SQL = "CREATE AGGREGATE f({}) RETURNS DOUBLE LANGUAGE SQL AS INITIALIZE ({}) ITERATE ({}) TERMINATE {}"


@pytest.mark.parametrize(
    ("text", "fact", "offending"),
    [
        ("CREATE AGGREGATE sum(INT) RETURNS INT LANGUAGE PYTHON AS 'a:B'", "is already a function", "sum"),
        ("CREATE AGGREGATE f(INT) RETURNS INT LANGUAGE PYTHON AS 'a.B'", "does not name a class", "'a.B'"),
        ("CREATE AGGREGATE f(MONEY) RETURNS INT LANGUAGE PYTHON AS 'a:B'", 'type "MONEY" is unknown', "MONEY"),
        ("CREATE AGGREGATE f(INT) RETURNS INT LANGUAGE JAVA AS 'a:B'", "expected PYTHON or SQL", "JAVA"),
        ("CREATE AGGREGATE f(INT) RETURNS INT AS 'a:B'", "expected LANGUAGE", "AS"),
        (P95 + P95.rstrip(";"), "declared twice", "p95"),
        (SQL.format("DOUBLE", "a = 0", "a = a", "a"), "needs a name of its own", "DOUBLE"),
        (SQL.format("x DOUBLE", "a = y", "a = a", "a"), 'column "y" does not exist', "y"),
        (SQL.format("x DOUBLE", "x = 0", "x = x", "x"), 'the name "x" is already used', "x"),
        (SQL.format("x DOUBLE", "a = NULL", "a = x", "a"), 'the variable "a" has no type', "NULL"),
        (SQL.format("x DOUBLE", "a = 0", "b = x", "a"), '"b" is not a variable', "b"),
        (SQL.format("x DOUBLE", "a = 0", "a = x, a = 1", "a"), '"a" is assigned twice', "a"),
        (SQL.format("x DOUBLE", "a = 0", "a = other.a", "a"), 'column "other.a" does not exist', "other.a"),
        (SQL.format("x DOUBLE", "a = 0.0", "a = x", "x"), 'column "x" does not exist', "x"),
        (f"{P95} SELECT p95(srcIP) FROM main1 {WINDOW}", "the argument is STRING, not DOUBLE", "srcIP"),
        (f"{P95} SELECT p95(len, len) FROM main1 {WINDOW}", "takes 1 argument, not 2", "p95(len, len)"),
        (f"{P95} SELECT p95(DISTINCT len) FROM main1 {WINDOW}", "neither DISTINCT nor", "p95(DISTINCT len)"),
        (f"{P95} SELECT sum(p95(len)) FROM main1 {WINDOW}", "not allowed here", "p95(len)"),
        (f"{P95} SELECT len FROM main1 WHERE p95(len) > 1", "an aggregate is not allowed in WHERE", "p95(len)"),
        (f"{P95} SELECT p95(len) FROM main1", "never ends", "p95(len)"),
    ],
)
def test_a_wrong_aggregate_is_refused_at_its_place(text: str, fact: str, offending: str) -> None:
    error = refusal(text)
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.hint
    assert error.place is not None and error.place.text == offending


@pytest.mark.parametrize(
    ("blocks", "fact", "hint"),
    [
        (
            "INITIALIZE (t = 0) ITERATE (t = t + x)",
            'variable "t" is BIGINT, but ITERATE gives DOUBLE',
            "t = 0.0 in INIT",
        ),
        ("INITIALIZE (t = 0) ITERATE (t = t / 2)", 'variable "t" is BIGINT, but ITERATE gives DOUBLE', "AS BIGINT)"),
        (
            "INITIALIZE (t = 0) ITERATE (t = 1) MERGE (t = other.t * 0.5)",
            'variable "t" is BIGINT, but MERGE gives DECIMAL(22, 1)',
            "around the value in MERGE",
        ),
        ("INITIALIZE (t = CAST(0 AS FLOAT)) ITERATE (t = x)", "is FLOAT, but ITERATE gives DOUBLE", "t = 0.0 in INIT"),
        ("INITIALIZE (t = TRUE) ITERATE (t = x)", "is BOOLEAN, but ITERATE gives DOUBLE", "Write CAST(... AS BOOLEAN)"),
        ("INITIALIZE (t = 0) ITERATE (t = '5')", "is BIGINT, but ITERATE gives STRING", "Write CAST(... AS BIGINT)"),
    ],
)
def test_a_value_that_its_variable_cannot_hold_is_refused(blocks: str, fact: str, hint: str) -> None:
    error = refusal(f"CREATE AGGREGATE f(x DOUBLE) RETURNS DOUBLE LANGUAGE SQL AS {blocks} TERMINATE 1.0")
    assert fact in error.fact
    assert hint in error.hint
    assert error.place is not None


@pytest.mark.parametrize(
    "blocks",
    [
        "INITIALIZE (t = 0) ITERATE (t = CAST(x AS TINYINT))",
        "INITIALIZE (t = 0.0) ITERATE (t = t + CAST(x AS BIGINT))",
        "INITIALIZE (t = 0.0) ITERATE (t = 1)",
        "INITIALIZE (t = 0) ITERATE (t = CAST(t + x AS BIGINT))",
        "INITIALIZE (t = TIMESTAMP '2024-01-01') ITERATE (t = DATE '2024-01-02')",
        "INITIALIZE (t = 0) ITERATE (t = NULL)",
    ],
)
def test_a_value_that_loses_nothing_is_brought_to_its_variable(blocks: str) -> None:
    text = f"CREATE AGGREGATE f(x DOUBLE) RETURNS DOUBLE LANGUAGE SQL AS {blocks} TERMINATE 1.0;"
    assert isinstance(defined(text, "f(len)"), SqlAggregate)


def test_the_second_state_is_named_where_another_is_written() -> None:
    text = (
        "CREATE AGGREGATE f(x INT) RETURNS INT LANGUAGE SQL AS INITIALIZE (t = 0) ITERATE ({}) MERGE ({}) TERMINATE t"
    )
    merged = refusal(text.format("t = x", "t = t + oter.t"))
    assert '"oter" is not a state' in merged.fact
    assert "write other.t" in merged.hint
    assert merged.place is not None and merged.place.text == "oter.t"
    assert "Write the name alone" in refusal(text.format("t = state.t", "t = t")).hint


def test_an_aggregate_is_a_declaration_that_running_networks_keep() -> None:
    assert declarations_of(f"{P95} DROP QUERY q") == P95
    running = parse_network(f"{STREAMS} CREATE QUERY q AS SELECT len FROM main1").queries
    asked = f"{P95} ADD QUERY r AS SELECT p95(len) FROM main1 {WINDOW}"
    amendment = bind_changes(STREAMS, asked, running)
    assert P95 in amendment.declared
    bind_changes(amendment.declared, f"ADD QUERY t AS SELECT p95(len) FROM main1 {WINDOW}", running)


@pytest.mark.parametrize("statement", [P95, MEAN])
def test_rows_where_an_argument_is_null_are_never_given(statement: str) -> None:
    name = "p95" if statement == P95 else "my_mean"
    found = parse_network(f"{STREAMS}{statement} SELECT {name}(len) AS x FROM main1 {WINDOW}").queries[0].root
    (aggregate,) = [each for each in walk(found) if isinstance(each, Aggregate)]
    assert str(aggregate.aggregations[0].where) == "(NOT (len IS NULL))"
