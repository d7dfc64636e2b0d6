from __future__ import annotations

import millrace as mr
from millrace.language import parse_network
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Filter, Project, Scan, Union
from millrace.plan.rules import optimize

STREAMS = """
CREATE STREAM a (k STRING, n INT, unused STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
CREATE STREAM b (k STRING, n INT, unused STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
"""


def optimized(select: str) -> Node:
    return optimize(parse_network(STREAMS + select).queries[0].root)


def test_filters_and_projections_are_pushed_below_a_union() -> None:
    root = optimized("SELECT k, n * 2 AS twice FROM a UNION b WHERE n > 1")
    assert isinstance(root, Union)
    for each in root.inputs:
        kinds = [type(node) for node in walk(each)]
        assert kinds[0] is Scan and Filter in kinds and kinds[-1] is Project


def test_an_aggregate_reads_plain_columns() -> None:
    root = optimized("SELECT upper(k) AS key, sum(n + 1) AS s FROM a [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY upper(k)")
    (aggregate,) = [node for node in walk(root) if isinstance(node, Aggregate)]
    assert all(str(key) == name for name, key in aggregate.keys)
    assert [str(each.arguments[0]) for each in aggregate.aggregations] == ["__a0"]


def test_fractions_that_compare_as_equal_are_one_key() -> None:
    rows = [{"x": x, "ts": 1} for x in (0.0, -0.0, float("nan"), -float("nan"), None, 1.5)]
    net = mr.Network()
    net.stream("s", "x DOUBLE, ts TIMESTAMP", time="ts", source=[rows])
    net.sql("CREATE QUERY counted AS SELECT x, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY x")
    net.sql("CREATE QUERY known AS SELECT DISTINCT x, ts FROM s")
    handle = net.run(on="local", until="end")
    counts = {str(row["x"]): row["n"] for row in handle.results("counted").to_pylist()}
    assert counts == {"0.0": 2, "nan": 2, "None": 1, "1.5": 1}
    assert sorted(str(row["x"]) for row in handle.results("known").to_pylist()) == ["0.0", "1.5", "None", "nan"]


def test_columns_nobody_reads_are_dropped_before_a_union_and_a_filter_stays_on_the_scan() -> None:
    root = optimized("SELECT k, count(*) AS n FROM a UNION b [RANGE 1 MINUTE SLIDE 1 MINUTE] WHERE n > 1 GROUP BY k")
    above = [node for node in walk(root) if isinstance(node, Project) and isinstance(node.input, Filter)]
    assert [[name for name, _ in node.columns] for node in above] == [["k"], ["k"]]
    assert all(isinstance(node.input, Filter) and isinstance(node.input.input, Scan) for node in above)


def test_a_count_of_all_rows_reads_no_column() -> None:
    root = optimized("SELECT count(*) AS n FROM a [RANGE 1 MINUTE SLIDE 1 MINUTE]")
    (project,) = [node for node in walk(root) if isinstance(node, Project) and isinstance(node.input, Scan)]
    assert project.columns == ()


def test_the_rules_keep_the_columns_of_the_query() -> None:
    for select in (
        "SELECT * FROM a",
        "SELECT ts, k FROM a UNION b WHERE unused IS NULL ORDER BY ts",
        "SELECT k, avg(n) AS m FROM a [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k HAVING count(*) > 2",
    ):
        before = parse_network(STREAMS + select).queries[0].root
        assert optimize(before).schema.equals(before.schema)
