"""A function of the user's own is called after what costs little, and once."""

from __future__ import annotations

import pytest

from millrace.errors import RequestError
from millrace.language import parse_network
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Filter, Project
from millrace.plan.physical.stages import physical
from millrace.plan.rules import optimize

HEAD = """
CREATE STREAM s (k STRING, x DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 's.csv');
CREATE STREAM t (k STRING, x DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 't.csv');
CREATE FUNCTION f(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'tests.unit.kernel.user_functions:positive';
CREATE FUNCTION g(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'tests.unit.kernel.user_functions:half';
"""


def root(select: str) -> Node:
    return parse_network(HEAD + select).queries[0].root


def steps(select: str) -> list[str]:
    """Filters and projections of the optimized plan, from the input on."""
    found = []
    for node in walk(optimize(root(select))):
        if isinstance(node, Filter):
            found.append(f"filter {node.predicate}")
        elif isinstance(node, Project):
            columns = (name if str(each) == name else f"{each} AS {name}" for name, each in node.columns)
            found.append(f"project {', '.join(columns)}")
    return found


def calls(select: str) -> int:
    """How often the plan calls a function for a row."""
    return sum(each.count("f(") + each.count("g(") for each in steps(select))


def test_conditions_that_cost_little_stand_below_those_that_call_functions() -> None:
    assert steps("SELECT k FROM s WHERE f(x) > 1 AND k <> 'z' AND g(x) > 2 AND x > 0") == [
        "filter ((k <> 'z') AND (x > 0.0))",
        "filter (f(x) > 1.0)",
        "filter (g(x) > 2.0)",
        "project k",
    ]


def test_plans_without_functions_stay_as_they_are() -> None:
    assert steps("SELECT k, x + 1 AS y, x + 1 AS z FROM s WHERE k <> 'z' AND x > 0") == [
        "filter ((k <> 'z') AND (x > 0.0))",
        "project k, (x + 1) AS y, (x + 1) AS z",
    ]


def test_a_call_for_elements_stays_with_them() -> None:
    assert steps("SELECT transform(array(x), v -> f(v) + f(v) + g(x)) AS y, g(x) AS z FROM s") == [
        "project x, g(x) AS __u0",
        "project transform(array(x), v -> ((f(v) + f(v)) + __u0)) AS y, __u0 AS z",
    ]


def test_a_call_that_is_written_twice_is_computed_once() -> None:
    assert steps("SELECT f(x) AS y, f(x) + 1 AS z FROM s") == [
        "project f(x) AS __u0",
        "project __u0 AS y, (__u0 + 1) AS z",
    ]


def test_what_a_filter_has_computed_is_not_computed_again_above_it() -> None:
    assert steps("SELECT k, f(x) AS y FROM s WHERE f(x) > 1 AND g(f(x)) > 2") == [
        "project k, f(x) AS __u0",
        "filter (__u0 > 1.0)",
        "filter (g(__u0) > 2.0)",
        "project k, __u0 AS y",
    ]


@pytest.mark.parametrize(
    ("select", "count"),
    [
        ("SELECT k FROM s WHERE f(x) BETWEEN 1 AND 2", 1),
        ("SELECT CASE f(x) WHEN 1 THEN 'a' WHEN 2 THEN 'b' END AS y FROM s", 1),
        ("SELECT f(x) AS y, sum(f(x)) AS z FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY f(x)", 1),
        ("SELECT sum(f(x)) AS y, max(f(x)) AS z FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] WHERE f(x) > 0", 1),
        ("SELECT g(f(x)) AS y, f(x) AS z FROM s", 2),
        ("SELECT g(f(x)) AS y, g(f(x)) AS z FROM s", 2),
        ("SELECT g(f(x)) AS y, g(f(x)) AS z, f(x) AS a FROM s", 2),
        ("SELECT f(x) AS y, f(x + 1) AS z FROM s", 2),
        ("SELECT y, f(x) + 1 AS z FROM (SELECT x, f(x) AS y FROM s)", 1),
        ("SELECT k, f(x) AS y FROM (SELECT k, x FROM s UNION ALL SELECT k, x FROM t) WHERE f(x) > 1", 2),
    ],
)
def test_calls_are_not_repeated(select: str, count: int) -> None:
    assert calls(select) == count
    assert optimize(root(select)).schema == root(select).schema


def test_a_call_that_is_guarded_everywhere_stays_where_it_is() -> None:
    guarded = "SELECT CASE WHEN x > 0 THEN f(x) END AS y, CASE WHEN x > 0 THEN f(x) + 1 END AS z FROM s"
    assert len(steps(guarded)) == 1 and calls(guarded) == 2
    assert calls("SELECT CASE WHEN x > 0 THEN f(x) END AS y, f(x) AS z FROM s") == 1


def test_the_code_is_looked_for_before_anything_runs() -> None:
    absent = "CREATE FUNCTION h(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'nowhere.at_all:h';"
    for select in (
        "SELECT h(x) AS y FROM s",
        "SELECT x FROM s WHERE h(x) > 1",
        "SELECT sum(h(x)) AS y FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE]",
        "SELECT s.x FROM s JOIN t ON s.k = t.k AND h(s.x) > t.x WINDOW 1 MINUTE",
    ):
        with pytest.raises(RequestError, match='function "h" is not found'):
            physical(parse_network(HEAD + absent + select))
    assert physical(parse_network(HEAD + absent + "SELECT x FROM s"))
