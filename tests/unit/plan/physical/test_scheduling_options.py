from __future__ import annotations

import pytest

from millrace.errors import QueryError, RequestError
from millrace.kernel.graph.strategy import state_table, with_breaks
from millrace.language import parse_network
from millrace.plan.physical.stages import physical

SQL = """
CREATE STREAM a (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
CREATE STREAM b (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
CREATE QUERY q WITH ({}) AS SELECT v, ts FROM a UNION b WHERE v > 1 ORDER BY ts;
"""


def rules(options: str) -> list[str]:
    graph = physical(parse_network(SQL.format(options))).whole()
    with_breaks(graph)
    return [state.rule for state in state_table(graph)]


def test_a_part_of_a_query_may_have_a_strategy_of_its_own() -> None:
    assert rules("strategy = 'bfs, merge = batch:8'") == ["BFS-Source", "BFS-Source", "Batch(8)-Sink"]


def test_one_operator_can_be_named_as_explain_names_it() -> None:
    graph = physical(parse_network(SQL.format("strategy = 'dfs'"))).whole()
    first = next(name for name in graph.nodes if name.startswith("filter"))
    assert rules(f"strategy = 'dfs, {first} = bfs'") == ["BFS-Source", "DFS-Source", "DFS-Sink"]
    assert rules(f"breaks = '{first}'") == ["DFS-Source-Sink", "DFS-Source", "DFS-Sink"]


def test_break_nodes_stand_after_the_operators_named() -> None:
    assert rules("breaks = 'filter'") == ["DFS-Source-Sink"] * 3


@pytest.mark.parametrize("options", ["strategy = 'dfs, project = bfs'", "breaks = 'filter#000000000000'"])
def test_an_operator_that_is_not_there_is_refused_with_those_that_are(options: str) -> None:
    with pytest.raises(RequestError, match="has no operator") as caught:
        rules(options)
    assert "merge#" in caught.value.hint


@pytest.mark.parametrize("options", ["strategy = 'fast'", "strategy = 'merge = dfs'", "breaks = 'after lunch'"])
def test_what_is_no_strategy_and_no_list_is_refused(options: str) -> None:
    with pytest.raises(QueryError, match="cannot be"):
        rules(options)
