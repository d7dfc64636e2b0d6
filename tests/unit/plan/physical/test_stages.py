from __future__ import annotations

import pickle

import pytest

from millrace.errors import RequestError
from millrace.language import parse_network
from millrace.plan.explain.plan_text import explain
from millrace.plan.physical.stages import Physical, physical

STREAMS = """
CREATE STREAM a (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS FROM iterable;
CREATE STREAM b (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable REPLAY BY ts;
"""
GROUPED = "CREATE QUERY q AS SELECT k, count(*) AS c FROM a UNION b [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k;"


def plan(*queries: str) -> Physical:
    return physical(parse_network(STREAMS + "".join(queries)))


def test_a_keyed_query_is_exchanged_by_its_keys() -> None:
    assert [(each.stream.name, each.keys) for each in plan(GROUPED).exchanges()] == [("a", ("k",)), ("b", ("k",))]


def test_a_query_without_keys_meets_in_one_bucket_and_a_stateless_one_goes_anywhere() -> None:
    queries = plan(
        "CREATE QUERY total AS SELECT count(*) AS c FROM a [RANGE 1 MINUTE SLIDE 1 MINUTE];"
        "CREATE QUERY sorted AS SELECT * FROM a UNION b ORDER BY ts;"
        "CREATE QUERY plain AS SELECT k FROM a WHERE n > 1;"
    )
    assert [each.keys for each in queries.exchanges()] == [(), (), (), None]


def test_low_and_high_level_meet_at_their_ports() -> None:
    queries = plan(GROUPED, "CREATE QUERY plain AS SELECT * FROM a;")
    ports = {each.port for each in queries.exchanges()}
    low = {sink.name for stream in ("a", "b") for sink in queries.low(stream).sinks()}
    high = {source.name for source in queries.high().sources()}
    assert low == ports == high


def test_queries_with_an_equal_exchange_have_one_port_and_the_low_level_runs_it_once() -> None:
    window = "[RANGE 1 MINUTE SLIDE 1 MINUTE] WHERE n > 1 GROUP BY k"
    queries = plan(
        f"CREATE QUERY counts AS SELECT k, count(*) AS c FROM a UNION b {window};"
        f"CREATE QUERY frequent AS SELECT k, count(*) AS times FROM b UNION a {window} HAVING count(*) > 9;"
    )
    assert [each.stream.name for each in queries.exchanges()] == ["a", "b"]
    low = queries.low("a")
    assert [node.name.split("#")[0] for node in low.operators()] == ["filter", "project", "pre_exchange"]
    assert len(low.sinks()) == 1
    assert [len(source.outputs) for source in queries.high().sources()] == [2, 2], "rows arrive once for both queries"


def test_the_low_level_runs_a_common_prefix_once_where_the_exchanges_differ() -> None:
    queries = plan(
        "CREATE QUERY counts AS SELECT count(*) AS c FROM a [RANGE 1 MINUTE SLIDE 1 MINUTE] WHERE n > 1;"
        "CREATE QUERY rows AS SELECT k FROM a WHERE n > 1;"
    )
    low = queries.low("a")
    assert len(low.sinks()) == len(queries.exchanges()) == 2
    assert [node.name.split("#")[0] for node in low.operators()].count("filter") == 1


def test_the_whole_graph_shares_a_stream_between_queries() -> None:
    graph = plan(GROUPED, "CREATE QUERY plain AS SELECT * FROM a;").whole()
    assert [source.name for source in graph.sources()] == ["a", "b"]
    assert len(graph.nodes["a"].outputs) == 2


def test_only_the_columns_that_are_read_are_asked_for() -> None:
    queries = plan("CREATE QUERY q AS SELECT k, count(*) AS c FROM b [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k;")
    assert queries.columns_read("b") == ["k", "ts"]


def test_a_plan_travels_to_another_process_and_builds_the_same_graph() -> None:
    queries = plan(GROUPED)
    again = physical(pickle.loads(pickle.dumps(queries.network)))
    assert list(again.high().nodes) == list(queries.high().nodes)


def test_a_query_named_like_a_stream_is_refused() -> None:
    with pytest.raises(RequestError, match='"a" is both a stream and a query'):
        plan("CREATE QUERY a AS SELECT k FROM a;")


def test_explain_shows_the_exchange_the_contract_and_the_state_table() -> None:
    text = explain(plan(GROUPED))
    for part in (
        "exchange partials by k    (on Spark: a break node",
        "external time ts, disorder 5 SECONDS",
        "range 1 MINUTE slide 1 MINUTE",
        "DFS-Source",
    ):
        assert part in text


def test_explain_tells_which_queries_share_an_exchange() -> None:
    text = explain(plan(GROUPED, GROUPED.replace("QUERY q", "QUERY again"), "CREATE QUERY plain AS SELECT k FROM a;"))
    assert [line.split(" ", 4)[-1] for line in text.splitlines() if "exchange#" in line] == [
        "is sent once for q, again (on Spark)"
    ] * 2
