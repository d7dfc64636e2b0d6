from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.errors import QueryError
from millrace.kernel.columns.expressions import Cast, Column, Literal
from millrace.kernel.columns.user_functions import UserCall, UserFunction
from millrace.language import bind_changes, declarations_of, parse_network
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Filter, Project
from tests.unit.language.scripts import STREAMS, refusal

WINDOW = "[RANGE 1 MINUTE SLIDE 1 MINUTE]"
PRICE = "CREATE FUNCTION price(DOUBLE, kind STRING) RETURNS DOUBLE LANGUAGE PYTHON AS 'pkg.module:price';"
SPEC = UserFunction("price", (pa.float64(), pa.string()), pa.float64(), "pkg.module:price")


def root(select: str) -> Node:
    return parse_network(f"{STREAMS}{PRICE} {select}").queries[0].root


def test_a_function_is_called_by_name_and_its_arguments_are_widened() -> None:
    found = root("SELECT PRICE(len, srcIP) AS p, price(1, 'x') + 1 AS q FROM main1")
    assert isinstance(found, Project)
    assert found.columns[0] == ("p", UserCall(SPEC, (Cast(Column("len"), pa.float64()), Column("srcIP"))))
    assert found.schema.types == [pa.float64(), pa.float64()]
    constant = next(each for each in found.columns[1][1].parts() if isinstance(each, UserCall))
    assert constant.arguments == (Literal(1.0, pa.float64()), Literal("x", pa.string()))


def test_it_stands_wherever_an_expression_does() -> None:
    found = root(
        f"SELECT price(len, srcIP) AS p, sum(price(len, destIP)) AS s FROM main1 {WINDOW} WHERE price(len, 'a') > 1 "
        "GROUP BY price(len, srcIP) HAVING price(sum(len), 'x') > 2"
    )
    nodes = list(walk(found))
    (aggregate,) = [each for each in nodes if isinstance(each, Aggregate)]
    assert str(aggregate.keys[0][1]) == "price(CAST(len AS DOUBLE), srcIP)"
    assert str(aggregate.aggregations[0].arguments[0]) == "price(CAST(len AS DOUBLE), destIP)"
    assert [each.predicate.is_guarded for each in nodes if isinstance(each, Filter)] == [True, True]


def test_it_is_a_residual_condition_of_a_join() -> None:
    found = root("SELECT a.len FROM main1 AS a JOIN control AS b ON a.srcIP = b.srcIP AND price(a.len, b.destIP) > 1 "
                 "WINDOW 1 MINUTE")  # fmt: skip
    (join,) = [each for each in walk(found) if isinstance(each, Join)]
    assert join.residual is not None and join.residual.is_guarded


def test_a_declaration_holds_wherever_it_stands_and_for_later_statements() -> None:
    assert parse_network(f"SELECT price(len, srcIP) FROM main1; {STREAMS}{PRICE}").queries
    assert declarations_of(PRICE) == PRICE
    added = bind_changes(f"{STREAMS}{PRICE}", "ADD QUERY q AS SELECT price(len, srcIP) AS p FROM main1", [])
    assert "price" in str(added.changes)
    later = (
        "CREATE FUNCTION other(INT) RETURNS INT LANGUAGE PYTHON AS 'm:f'; ADD QUERY q AS SELECT other(len) FROM main1"
    )
    assert "other" in bind_changes(f"{STREAMS}{PRICE}", later, []).declared


def test_it_may_stand_in_a_block_of_an_aggregate_in_sql() -> None:
    text = (
        "CREATE AGGREGATE total(x DOUBLE) RETURNS DOUBLE LANGUAGE SQL AS INITIALIZE (t = 0.0) "
        "ITERATE (t = t + price(x, 'a')) TERMINATE t;"
    )
    assert parse_network(f"{STREAMS}{text}{PRICE} SELECT total(len) FROM main1 {WINDOW}").queries


@pytest.mark.parametrize(
    ("text", "fact", "offending"),
    [
        ("CREATE FUNCTION lower(INT) RETURNS INT LANGUAGE PYTHON AS 'a:b'", "is already a function", "lower"),
        ("CREATE FUNCTION Sum(INT) RETURNS INT LANGUAGE PYTHON AS 'a:b'", "is already a function", "Sum"),
        ("CREATE FUNCTION if(INT) RETURNS INT LANGUAGE PYTHON AS 'a:b'", "is already a function", "if"),
        ("CREATE FUNCTION f(INT) RETURNS INT LANGUAGE PYTHON AS 'a.b'", "does not name a function", "'a.b'"),
        ("CREATE FUNCTION f(INT) RETURNS INT LANGUAGE PYTHON AS b", "the place of a function in quotes", "b"),
        ("CREATE FUNCTION f(MONEY) RETURNS INT LANGUAGE PYTHON AS 'a:b'", 'type "MONEY" is unknown', "MONEY"),
        ("CREATE FUNCTION f(INT) RETURNS MONEY LANGUAGE PYTHON AS 'a:b'", 'type "MONEY" is unknown', "MONEY"),
        ("CREATE FUNCTION f(INT) RETURNS INT LANGUAGE SQL AS 'a:b'", "expected PYTHON", "SQL"),
        ("CREATE FUNCTION f(INT) RETURNS INT AS 'a:b'", "expected LANGUAGE", "AS"),
        ("CREATE INDEX v", "expected STREAM, TABLE, SINK, VIEW, AGGREGATE, FUNCTION or QUERY", "INDEX"),
        (PRICE + PRICE.rstrip(";"), "declared twice", "price"),
        (
            PRICE + "CREATE AGGREGATE Price(INT) RETURNS INT LANGUAGE PYTHON AS 'a:B'",
            "declared twice",
            "Price",
        ),
        (f"{PRICE} SELECT price(len) FROM main1", '"price" takes 2 arguments, not 1', "price(len)"),
        (f"{PRICE} SELECT price(srcIP, srcIP) FROM main1", "the argument is STRING, not DOUBLE", "srcIP"),
        (f"{PRICE} SELECT prise(len, srcIP) FROM main1", 'function "prise" is unknown', "prise(len, srcIP)"),
        (f"{PRICE} SELECT price(DISTINCT len, srcIP) FROM main1", "", None),
    ],
)
def test_a_wrong_function_is_refused_at_its_place(text: str, fact: str, offending: str | None) -> None:
    error = refusal(text)
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.hint
    assert error.place is not None and (offending is None or error.place.text == offending)


def test_a_name_that_is_near_is_suggested() -> None:
    assert 'Did you mean "price"?' in refusal(f"{PRICE} SELECT prise(len, srcIP) FROM main1").hint


def test_a_function_of_another_name_cannot_replace_an_aggregate_of_a_running_network() -> None:
    aggregate = "CREATE AGGREGATE price(INT) RETURNS INT LANGUAGE PYTHON AS 'a:B';"
    with pytest.raises(QueryError, match="declared twice"):
        bind_changes(f"{STREAMS}{aggregate}", f"{PRICE} ADD QUERY q AS SELECT len FROM main1", [])
