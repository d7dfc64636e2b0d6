from __future__ import annotations

import json

import pytest

import millrace as mr

STREAMS = """
CREATE STREAM a (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'a.csv');
CREATE STREAM b (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'b.csv');
CREATE STREAM u (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM csv OPTIONS (path 'u.csv');
"""


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT k FROM a WHERE k > 1", set()),
        ("SELECT k FROM a UNION b", set()),
        ("SELECT k FROM a ORDER BY ts", {"rows until the bound passes their time"}),
        (
            "SELECT k, count(*) AS n FROM a [SESSION 5 SECONDS] GROUP BY k",
            {"a session until the bound is 5 SECONDS past its last row"},
        ),
        (
            "SELECT k, count(*) AS n FROM a [RANGE 1 MINUTE] GROUP BY k",
            {"the rows of the last 1 MINUTE, by the bound"},
        ),
        (
            "SELECT k, count(*) AS n FROM a [RANGE UNLIMITED PRECEDING] GROUP BY k WITH (state_limit = 5000)",
            {"a partial result per group; at most 5,000 (state_limit)"},
        ),
        (
            "SELECT x.k, y.ts AS t FROM a AS x ASOF JOIN b AS y ON y.ts <= x.ts AND y.k = x.k",
            {"rows of x until the bound passes their time; of y the latest per key"},
        ),
        ("SELECT k, v FROM u", {"the rows that wait"}),
    ],
)
def test_a_node_says_what_it_keeps(query: str, kept: set[str]) -> None:
    net = mr.Network()
    net.sql(STREAMS)
    plan = json.loads("\n".join(net.show(f"EXPLAIN (FORMAT json) {query}").column("plan").to_pylist()))
    assert {node["state"] for node in plan["nodes"]} - {""} == kept
