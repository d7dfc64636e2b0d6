"""Which operators carry a window out, and in which words a plan tells of it."""

from __future__ import annotations

import pickle

import pytest

from millrace.kernel import operator_index as kernel
from millrace.kernel.graph.graph import Graph
from millrace.language import parse_network
from millrace.plan.explain.plan_text import explain
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.relational_nodes import Filter, Numbered
from millrace.plan.physical.stages import physical
from millrace.plan.rules import optimize

STREAMS = """
CREATE STREAM a (k STRING, n INT, began TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED ALSO BY began DISORDER INTERVAL 1 MINUTE LATE INTO a_late FROM iterable;
CREATE STREAM b (k STRING, n INT, began TIMESTAMP, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
"""
MINUTE = "[RANGE 1 MINUTE SLIDE 1 MINUTE]"
KINDS = {
    f"SELECT k, count(*) AS c FROM a {MINUTE} GROUP BY k": (
        kernel.WindowAggregate,
        "range 1 MINUTE slide 1 MINUTE",
    ),
    "SELECT k, count(*) AS c FROM a [ROWS 5 SLIDE 2] GROUP BY k": (kernel.WindowAggregate, "rows 5 slide 2"),
    "SELECT ts, count(*) AS c FROM a GROUP BY ts": (kernel.WindowAggregate, "each instant"),
    "SELECT date_trunc('month', ts) AS m, count(*) AS c FROM a GROUP BY date_trunc('month', ts)": (
        kernel.WindowAggregate,
        "month",
    ),
    "SELECT k, count(*) AS c FROM a [SESSION 5 SECONDS] GROUP BY k": (
        kernel.SessionAggregate,
        "sessions with a gap of 5 SECONDS",
    ),
    "SELECT k, count(*) AS c FROM a [RANGE 5 SECONDS] GROUP BY k": (
        kernel.TrailingAggregate,
        "a result per row, over the last 5 SECONDS",
    ),
    "SELECT k, count(*) AS c FROM a [ROWS 5] GROUP BY k": (
        kernel.TrailingAggregate,
        "a result per row, over the last 5 rows",
    ),
    "SELECT k, count(*) AS c FROM a [ROWS 5 PARTITION BY k] GROUP BY k": (
        kernel.PartitionedRowsAggregate,
        "a result per row, over the last 5 rows of its group",
    ),
    "SELECT DISTINCT k, ts FROM a": (kernel.Distinct, "distinct: forgets a row when the bound passes its time"),
    "SELECT count(*) AS c FROM a UNION b [ROWS 2 SLIDE 2]": (
        kernel.Number,
        "number: by time, then input, then order in the input",
    ),
    "SELECT *, rank() OVER (PARTITION BY window_start, window_end ORDER BY c DESC) AS place"
    f" FROM (SELECT window_start, window_end, k, count(*) AS c FROM a {MINUTE} GROUP BY k) AS t": (
        kernel.Rank,
        "rank among rows of equal time by window_start, window_end, ordered by c DESC",
    ),
    f"SELECT count(*) AS c FROM a {MINUTE} WITH (slack = '5 s')": (kernel.Slack, "slack 5 SECONDS"),
    f"SELECT count(*) AS c FROM a {MINUTE} WITH (slack = '5 rows')": (kernel.Slack, "slack 5 rows"),
    f"SELECT count(*) AS c FROM a {MINUTE} WITH (low_level_groups = 9, flush = 'lazy_flush(2)')": (
        kernel.LowAggregate,
        "over a low level: low_level_groups = 9, flush = lazy_flush(2)",
    ),
}


def whole(*selects: str) -> Graph:
    queries = "".join(f"CREATE QUERY q{number} AS {select};" for number, select in enumerate(selects))
    return physical(parse_network(STREAMS + queries)).whole()


def kinds(graph: Graph) -> list[type[kernel.Operator]]:
    return [type(node.operator) for node in graph.operators()]


@pytest.mark.parametrize(("select", "carried_out"), KINDS.items(), ids=range(len(KINDS)))
def test_each_window_has_its_operator_and_its_words(
    select: str, carried_out: tuple[type[kernel.Operator], str]
) -> None:
    operator, words = carried_out
    assert operator in kinds(whole(select))
    text = explain(physical(parse_network(STREAMS + select)))
    assert words in text.split("state table:")[0]


@pytest.mark.parametrize("select", KINDS, ids=range(len(KINDS)))
def test_the_rules_keep_the_columns_of_the_query(select: str) -> None:
    root = parse_network(STREAMS + select).queries[0].root
    assert optimize(root).schema.equals(root.schema)


@pytest.mark.parametrize("select", KINDS, ids=range(len(KINDS)))
def test_a_plan_travels_to_another_process_and_builds_the_same_graphs(select: str) -> None:
    plan = physical(parse_network(STREAMS + select))
    again = physical(pickle.loads(pickle.dumps(plan.network)))
    assert list(again.whole().nodes) == list(plan.whole().nodes)
    for level in range(1, plan.depth + 1):
        assert list(again.high(level).nodes) == list(plan.high(level).nodes)


def test_attributes_of_one_stream_are_sources_of_their_own() -> None:
    graph = whole(
        f"SELECT count(*) AS c FROM a {MINUTE}",
        "SELECT count(*) AS c FROM a [RANGE 1 MINUTE SLIDE 1 MINUTE WA began]",
        "SELECT count(*) AS c FROM a [ROWS 2 SLIDE 2]",
        "SELECT k FROM a_late",
    )
    assert [source.name for source in graph.sources()] == ["a", "a@began", "a@sequence", "a@late"]


def test_a_condition_does_not_go_below_the_numbers_of_a_union() -> None:
    root = parse_network(f"{STREAMS}SELECT count(*) AS c FROM a UNION b [ROWS 2 SLIDE 2] WHERE n > 1").queries[0].root
    (numbered,) = [node for node in walk(optimize(root)) if isinstance(node, Numbered)]
    assert not any(isinstance(node, Filter) for node in walk(numbered))


def test_a_query_that_keeps_its_state_in_another_way_has_an_operator_of_its_own() -> None:
    select = "SELECT k, count(*) AS c FROM a [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k"
    graph = whole(select, f"{select} WITH (panes = 'off')", f"{select} WITH (panes = 'on')", select)
    assert kinds(graph).count(kernel.WindowAggregate) == 3


def test_the_same_inner_aggregate_is_there_once_for_two_outer_ones() -> None:
    inner = f"(SELECT window_start, window_end, k, n, count(*) AS c FROM a {MINUTE} GROUP BY k, n) AS t"
    graph = whole(
        f"SELECT k, max(c) AS most FROM {inner} GROUP BY window_start, window_end, k",
        f"SELECT n, max(c) AS most FROM {inner} GROUP BY window_start, window_end, n",
    )
    assert kinds(graph).count(kernel.WindowAggregate) == 3, "one inner one, two outer ones"
