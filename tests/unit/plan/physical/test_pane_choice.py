"""When rows are buffered instead of panes, and what explain says about it."""

from __future__ import annotations

import pytest

from millrace.language import parse_network
from millrace.plan.explain.plan_text import explain
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.node import walk
from millrace.plan.physical.pane_choice import PaneChoice, pane_choice
from millrace.plan.physical.stages import physical

STREAM = """
CREATE STREAM s (k STRING, n BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 's.csv');
CREATE AGGREGATE latest(x DOUBLE) RETURNS DOUBLE LANGUAGE SQL AS INITIALIZE (v = 0.0) ITERATE (v = x) TERMINATE v;
"""


def choice(select: str) -> PaneChoice:
    """How the first aggregate of a query keeps what it has seen."""
    query, root = physical(parse_network(STREAM + select)).roots[0]
    return pane_choice(next(each for each in walk(root) if isinstance(each, Aggregate)), query.options)


@pytest.mark.parametrize(
    ("select", "buffered"),
    [
        ("SELECT count(*) AS c FROM s [RANGE 1 MINUTE SLIDE 1 SECOND]", False),
        ("SELECT approx_count_distinct(n) AS c FROM s [ROWS 10 SLIDE 1]", True),
        ("SELECT approx_count_distinct(n) AS c FROM s [ROWS 100000 SLIDE 50000]", False),
        ("SELECT approx_count_distinct(n) AS c FROM s [ROWS 10 SLIDE 10]", False),
        ("SELECT sum(n) AS c FROM s [ROWS 10 SLIDE 1]", False),
        ("SELECT latest(n) AS c FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE]", True),
        ("SELECT count(*) AS c FROM s [RANGE 1 MINUTE SLIDE 1 SECOND] WITH (panes = 'off')", True),
        ("SELECT approx_count_distinct(n) AS c FROM s [ROWS 10 SLIDE 1] WITH (panes = 'on')", False),
    ],
)
def test_rows_are_buffered_where_partials_are_larger_or_cannot_merge(select: str, buffered: bool) -> None:
    assert choice(select).buffered == buffered


def test_explain_says_what_was_chosen_and_why() -> None:
    plan = explain(physical(parse_network(STREAM + "SELECT approx_count_distinct(n) AS c FROM s [ROWS 10 SLIDE 1]")))
    assert "rows buffered: a pane holds 1 rows of 8 bytes, a partial takes" in plan


def test_what_is_buffered_is_not_aggregated_before_an_exchange() -> None:
    text = STREAM + "SELECT k, latest(n) AS c FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k"
    assert [each.aggregate for each in physical(parse_network(text)).exchanges()] == [None]
