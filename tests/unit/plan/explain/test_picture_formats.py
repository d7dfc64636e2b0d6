from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

import millrace as mr
from millrace.errors import MillraceError
from millrace.language.grammar.request_parser import EXPLAIN_FORMATS
from millrace.plan.explain.picture_formats import FORMATS

STREAMS = """
CREATE STREAM a (k INT, v STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND
  FROM csv OPTIONS (path 'a.csv');
CREATE STREAM b (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'b.csv');
"""
QUERIES = """
CREATE QUERY one AS SELECT k, count(*) AS n FROM a [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] WHERE v = '<"&">' GROUP BY k;
CREATE QUERY two AS SELECT k, count(*) AS n FROM a [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] WHERE v = '<"&">' GROUP BY k;
CREATE QUERY pairs AS SELECT x.k, x.ts AS at, y.ts AS bt FROM a [RANGE 10 SECONDS] AS x, b [RANGE 5 SECONDS] AS y
  WHERE x.k = y.k;
"""
SVG = "{http://www.w3.org/2000/svg}"


def network() -> mr.Network:
    net = mr.Network()
    net.sql(STREAMS + QUERIES)
    return net


def test_json_has_streams_queries_sharing_exchanges_ets_arcs_and_state_bounds() -> None:
    found = json.loads(network().explain(format="json"))
    nodes = {node["name"]: node for node in found["nodes"]}
    assert {name: node["kind"] for name, node in nodes.items() if "#" not in name} == {
        "a": "stream",
        "b": "stream",
        "one": "query",
        "two": "query",
        "pairs": "query",
    }
    (aggregate,) = (node for name, node in nodes.items() if name.startswith("window_aggregate"))
    assert aggregate["queries"] == ["one", "two"]
    assert aggregate["state"] == "windows until the bound passes their end"
    (join,) = (node for node in nodes.values() if node["text"].startswith("join "))
    assert join["state"] == (
        "x is kept until the bound passes its time + 10 SECONDS; y is kept until the bound passes its time + 5 SECONDS"
    )
    assert {arc["exchange"] for arc in found["arcs"]} == {"", "by k", "by x.k", "by y.k"}
    assert ["a", aggregate["name"]] in found["ets_arcs"]
    assert all(nodes[name]["state"] == "" for name in nodes if name.startswith(("filter", "project")))


def test_dot_and_svg_draw_all_that_the_json_has() -> None:
    found = json.loads(network().explain(format="json"))
    dot, svg = network().explain(format="dot"), network().explain(format="svg")
    arcs, ets = len(found["arcs"]), len(found["ets_arcs"])
    shared = [node for node in found["nodes"] if len(node["queries"]) > 1]
    cuts = [arc for arc in found["arcs"] if arc["exchange"]]
    assert len(re.findall(r'^  "[^"]+" \[label=', dot, re.M)) == len(found["nodes"])
    assert dot.count(" -> ") == arcs + ets
    assert (dot.count("penwidth=3"), dot.count("style=dotted"), dot.count("peripheries=2")) == (
        len(cuts),
        ets,
        len(shared),
    )
    drawn = ElementTree.fromstring(svg)
    groups = drawn.findall(f"{SVG}g")
    assert sorted(str(each.find(f"{SVG}text").text) for each in groups) == sorted(  # type: ignore[union-attr]
        node["name"] for node in found["nodes"]
    )
    assert sum(len(each.findall(f"{SVG}rect")) - 1 for each in groups) == len(shared)
    paths = [each.get("class") for each in drawn.findall(f"{SVG}path")]
    assert (paths.count("arc"), paths.count("cut"), paths.count("ets")) == (arcs - len(cuts), len(cuts), ets)


def test_boxes_of_a_drawing_do_not_overlap_and_arcs_lead_to_the_right() -> None:
    drawn = ElementTree.fromstring(network().explain(format="svg"))
    boxes = [
        tuple(float(str(rect.get(each))) for each in ("x", "y", "width", "height"))
        for group in drawn.findall(f"{SVG}g")
        if (rect := group.find(f"{SVG}rect")) is not None
    ]
    for place, (x, y, width, height) in enumerate(boxes):
        assert x + width <= float(str(drawn.get("width"))) and y + height <= float(str(drawn.get("height")))
        for left, top, wide, tall in boxes[:place]:
            assert x >= left + wide or left >= x + width or y >= top + tall or top >= y + height
    for path in drawn.findall(f"{SVG}path"):
        numbers = [float(each) for each in re.findall(r"-?\d+", str(path.get("d")))]
        assert numbers[0] < numbers[-2]


def test_explain_as_a_statement_takes_the_same_formats() -> None:
    assert EXPLAIN_FORMATS == FORMATS
    net = network()
    lines = net.show("EXPLAIN (FORMAT json) SELECT k FROM a WHERE k > 1").column("plan").to_pylist()
    assert {node["kind"] for node in json.loads("\n".join(lines))["nodes"]} == {"stream", "operator", "query"}
    plain = net.show("EXPLAIN SELECT k FROM a").column("plan").to_pylist()
    assert plain == net.show("EXPLAIN (FORMAT text) SELECT k FROM a").column("plan").to_pylist()
    assert net.show("EXPLAIN (SELECT k FROM a)").column("plan").to_pylist()


def test_other_formats_are_refused_with_those_that_there_are() -> None:
    with pytest.raises(MillraceError, match='no format "png"') as refused:
        network().explain(format="png")
    assert "text, json, dot, svg" in refused.value.hint
    with pytest.raises(MillraceError, match="text, json, dot or svg"):
        network().show("EXPLAIN (FORMAT yaml) SELECT k FROM a")
