"""The query graph of a plan as a picture: its nodes, its arcs, and what is told of them."""

from __future__ import annotations

import json

from millrace.language import parse_network
from millrace.plan.explain.query_picture import QueryPicture, query_picture
from millrace.plan.physical.stages import physical

STREAMS = """
CREATE STREAM a (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND
  FROM json
  OPTIONS (path 'a');
CREATE STREAM b (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM json OPTIONS (path 'b');
"""
COUNTS = """
CREATE QUERY counts AS SELECT k, count(*) AS n FROM a [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] WHERE v > 3 GROUP BY k;
"""
JOINED = """
CREATE QUERY joined AS SELECT a.k, b.v FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k AND a.v > 3
  ORDER BY ts;
"""


def drawn(queries: str) -> QueryPicture:
    return query_picture(physical(parse_network(STREAMS + queries)))


def test_every_node_of_the_graph_at_work_is_in_the_picture_and_every_arc() -> None:
    graph, picture = physical(parse_network(STREAMS + COUNTS + JOINED)).whole(), drawn(COUNTS + JOINED)
    assert [each.name for each in picture.nodes] == list(graph.nodes)
    expected = {(arc.producer.name, node.name, arc.port) for node in graph.nodes.values() for arc in node.inputs}
    assert {(arc.producer, arc.consumer, arc.port) for arc in picture.arcs} == expected


def test_nodes_say_what_they_are_in_the_words_of_explain() -> None:
    nodes = {each.title: each for each in drawn(COUNTS).nodes}
    assert (nodes["a"].kind, nodes["counts"].kind) == ("stream", "query")
    assert (nodes["filter"].text, nodes["filter"].clause) == ("filter (v > 3)", "where")
    assert nodes["window aggregate"].text.startswith("window aggregate count(*)")
    assert nodes["counts"].text == "into counts (memory)"


def test_a_part_that_two_queries_share_is_one_node_that_names_both() -> None:
    (shared,) = (each for each in drawn(COUNTS + JOINED).nodes if each.title == "filter")
    assert shared.queries == ("counts", "joined")


def test_an_operator_that_also_orders_is_what_it_computes() -> None:
    assert "order" not in {each.clause for each in drawn(JOINED).nodes}


def test_arcs_say_where_they_are_cut_on_spark_and_ets_arcs_are_apart() -> None:
    picture = drawn(COUNTS + JOINED)
    names = {each.name: each.title for each in picture.nodes}
    cut = {(names[arc.producer], names[arc.consumer]): arc.exchange for arc in picture.arcs if arc.exchange}
    assert cut == {("project", "window aggregate"): "by k", ("project", "join"): "to one bucket"}
    assert {(start, names[end]) for start, end in picture.ets_arcs} >= {("a", "window aggregate"), ("b", "join")}


def test_operators_are_found_by_the_names_that_they_have_on_spark_below_exchanges_and_above() -> None:
    plan = physical(parse_network(STREAMS + COUNTS + JOINED))
    graphs = [plan.low("a"), plan.low("b"), plan.high(1)]
    # What is aggregated before the exchange has no place of its own in the picture.
    there = {each.name for graph in graphs for each in graph.operators() if not each.name.startswith("pre_")}
    found = [name for each in query_picture(plan).nodes for name in each.on_spark]
    assert sorted(found) == sorted(there)


def test_all_of_it_is_plain_data() -> None:
    assert json.loads(json.dumps(drawn(COUNTS).data()))["nodes"][0]["title"] == "a"
