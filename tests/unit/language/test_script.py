from __future__ import annotations

import pickle

import pytest

from millrace.errors import NotYet, QueryError
from millrace.language import parse_network, parse_script
from millrace.plan.nodes.endpoints import Connector, Sink
from tests.unit.language.scripts import STREAMS, query, refusal


def test_a_bare_select_is_numbered_and_goes_to_the_console() -> None:
    network = parse_network(
        f"{STREAMS} SELECT len FROM main1; CREATE QUERY query_2 AS SELECT * FROM main1; SELECT ts FROM main1"
    )
    assert [each.name for each in network.queries] == ["query_1", "query_2", "query_3"]
    assert network.queries[0].sink == Sink("query_1", Connector("console"))
    assert network.queries[1].sink == Sink("query_2", Connector("memory"))


def test_a_dropped_query_is_gone_and_its_name_is_free() -> None:
    text = "CREATE QUERY q AS SELECT len FROM main1; DROP QUERY Q; CREATE QUERY q AS SELECT ts FROM main1"
    assert query(text).root.schema.names == ["ts"]


def test_options_stand_after_the_name_or_at_the_end() -> None:
    found = query("CREATE QUERY q WITH (strategy = 'DFS') AS SELECT len FROM main1 WITH (ets_arcs = off)")
    assert found.options == {"strategy": "dfs", "ets_arcs": "off"}


def test_options_of_execution_are_known() -> None:
    found = query(
        "SELECT len FROM main1 WITH (share = 2.5, breaks = 'chain', ets_arcs = off, max_future_skew = 5 minutes)"
    )
    assert found.options == {"share": "2.5", "breaks": "chain", "ets_arcs": "off", "max_future_skew": "5 minutes"}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("slack = 5 s", "5000000"),
        ("slack = INTERVAL 5 SECONDS", "5000000"),
        ("baseline = 'in_order_flush'", "in_order"),
        ("baseline = 'in_order_flush_two_slots'", "in_order(2)"),
        ("flush = 'slow_flush(160, 2)'", "slow_flush(160, 2)"),
        ("flush = 'LAZY_FLUSH(2)'", "lazy_flush(2)"),
        ("low_level_groups = 65536", "65536"),
        ("state_limit = 100", "100"),
        ("panes = off", "off"),
    ],
)
def test_options_of_aggregates_are_known(option: str, value: str) -> None:
    window = "[RANGE UNLIMITED PRECEDING]" if "state_limit" in option else "[RANGE 1 s SLIDE 1 s]"
    assert list(query(f"SELECT count(*) FROM main1 {window} WITH ({option})").options.values()) == [value]


def test_baselines_are_options_of_the_plan_under_a_name_of_their_own() -> None:
    found = query("SELECT count(*) FROM main1 [RANGE 1 s SLIDE 1 s] WITH (baseline = 'In_Order, in_order_flush')")
    assert found.options == {"order": "in", "flush": "in_order"}


@pytest.mark.parametrize("option", ["panes = 'off'", "low_level_groups = 5", "flush = 'lazy_flush(1)'"])
@pytest.mark.parametrize("window", ["[SESSION 1 s]", "[ROWS 5 PARTITION BY len]", "[RANGE 1 s]", "[ROWS 5]"])
def test_an_option_of_common_windows_is_refused_with_others(option: str, window: str) -> None:
    error = refusal(f"SELECT count(*) FROM main1 {window} WITH ({option})")
    name = option.split(" ")[0]
    assert f'option "{name}" has no effect' in error.fact
    assert "same for all groups" in error.hint
    assert error.place is not None and error.place.text == name


@pytest.mark.parametrize("option", ["panes = 'on'", "panes = 'off'", "low_level_groups = 5"])
def test_an_option_of_panes_is_refused_where_no_function_merges_partial_results(option: str) -> None:
    code = "CREATE AGGREGATE {}(INT) RETURNS {} LANGUAGE PYTHON AS 'tests.unit.kernel.user_classes:{}';"
    window = "FROM main1 [RANGE 2 s SLIDE 1 s]"
    kept = code.format("joined", "STRING", "Joined")
    error = refusal(f"{kept} SELECT joined(len) AS n {window} WITH ({option})")
    assert f'option "{option.split(" ")[0]}" has no effect' in error.fact
    assert "all but your own without merge" in error.hint
    merged = code.format("total", "DOUBLE", "Total")
    assert query(f"{merged} SELECT total(len) AS n {window} WITH ({option})").options


@pytest.mark.parametrize("source", ["main1 [RANGE 1 s SLIDE 1 s]", "main1 [RANGE 1 s]", "main1 [SESSION 1 s]"])
def test_a_limit_of_state_is_refused_where_windows_end(source: str) -> None:
    error = refusal(f"CREATE QUERY q WITH (state_limit = 5) AS SELECT count(*) FROM {source}")
    assert 'option "state_limit" has no effect' in error.fact
    assert "UNLIMITED" in error.hint


def test_one_window_that_takes_notice_of_an_option_is_enough() -> None:
    inner = "SELECT srcIP, count(*) AS n FROM main1 [SESSION 1 s] GROUP BY srcIP"
    assert query(f"SELECT sum(n) FROM ({inner}) [RANGE 1 s SLIDE 1 s] WITH (panes = 'on')").options == {"panes": "on"}
    counted = "SELECT count(*) FROM main1 [ROWS 5 PARTITION BY len] WITH (state_limit = 9)"
    assert query(counted).options == {"state_limit": "9"}
    assert "has no effect" in refusal("SELECT len FROM main1 WITH (panes = 'on')").fact


def test_comments_and_empty_statements_are_nothing() -> None:
    assert parse_network("-- nothing\n;; /* at all */ ;").queries == ()
    assert parse_script("") == ()


def test_a_network_knows_the_streams_that_it_reads() -> None:
    network = parse_network(f"{STREAMS} SELECT len FROM main1 UNION main2")
    assert [each.name for each in network.streams()] == ["main1", "main2"]


def test_a_network_pickles() -> None:
    network = parse_network(f"{STREAMS} SELECT srcIP, count(*) FROM main1 [RANGE 1 s SLIDE 1 s] GROUP BY srcIP")
    assert pickle.loads(pickle.dumps(network)) == network


@pytest.mark.parametrize(
    ("text", "fact", "hint"),
    [
        ("CREATE QUERY q INTO outt AS SELECT len FROM main1; CREATE SINK out TO csv", 'sink "outt"', 'mean "out"'),
        ("DROP QUERY q", 'query "q" does not exist', "No query"),
        (
            "CREATE QUERY q AS SELECT len FROM main1; CREATE QUERY Q AS SELECT ts FROM main1",
            '"Q" is declared twice',
            "",
        ),
        ("CREATE SINK o TO csv; CREATE SINK o TO csv", '"o" is declared twice', ""),
        ("CREATE STREAM MAIN1 (a INT) LATENT TIMESTAMP FROM csv", "is declared twice", ""),
        ("SELECT len FROM q; CREATE QUERY q AS SELECT len FROM main1", "does not stand before", "CREATE VIEW name AS"),
        ("CREATE QUERY q AS SELECT len FROM q", 'query "q" does not stand before', "Put it before"),
        ("CREATE QUERY q AS SELECT len FROM main1; DROP QUERY q; SELECT len FROM q", "does not stand before", "before"),
        ("SELECT len FROM mian1", 'stream "mian1" does not exist', 'mean "main1"'),
        ("SELECT len FROM main1 WITH (stratgy = 'dfs')", 'option "stratgy" is unknown', 'mean "strategy"'),
        ("SELECT len FROM main1 WITH (order = 'in')", 'option "order" is unknown', "baseline"),
        ("SELECT len FROM main1 WITH (baseline = 'in_ordr')", 'baseline "in_ordr" is unknown', 'mean "in_order"'),
        (
            "SELECT count(*) FROM main1 WITH (flush = 'lazy_flush(1)', baseline = 'in_order_flush')",
            'baseline "in_order_flush" cannot stand beside option "flush"',
            "Keep one",
        ),
        ("SELECT len FROM main1 WITH (strategy = 'best')", 'cannot be "best"', "batch:K"),
        ("SELECT len FROM main1 WITH (flush = 'slow_flush(0, 2)')", 'cannot be "slow_flush(0, 2)"', "lazy_flush(m)"),
        ("SELECT len FROM main1 WITH (flush = 'on')", 'cannot be "on"', "slow_flush"),
        ("SELECT len FROM main1 WITH (low_level_groups = 0)", 'cannot be "0"', "above 0"),
        ("SELECT len FROM main1 WITH (state_limit = '64mb')", 'cannot be "64mb"', "groups or rows"),
        ("SELECT len FROM main1 WITH (panes = 'few')", 'cannot be "few"', "auto, on or off"),
        ("SELECT len FROM main1 WITH (alpha = 1)", 'cannot be "1"', "below 1"),
        ("SELECT len FROM main1 WITH (share = 0)", 'cannot be "0"', "a positive number"),
        ("SELECT len FROM main1 WITH (breaks = 'after lunch')", 'cannot be "after lunch"', "none, chain"),
        ("SELECT len FROM main1 WITH (max_future_skew = 'soon')", 'cannot be "soon"', "a length of time"),
        ("SELECT len FROM main1 WITH (share = 1, SHARE = 2)", "is given twice", ""),
        ("CREATE SINK o OPTIONS (path 'x')", "expected TO", "CREATE SINK"),
        ("CREATE QUERY q SELECT len FROM main1", "expected AS", "CREATE QUERY"),
        ("DROP STREAM main1", "expected QUERY", "DROP QUERY"),
    ],
)
def test_a_wrong_script_is_refused(text: str, fact: str, hint: str) -> None:
    error = refusal(text)
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.hint and hint in error.hint
    assert error.place is not None


def test_an_option_that_is_not_supported_yet_is_refused_as_such() -> None:
    assert isinstance(refusal("SELECT len FROM main1 WITH (ets = off)"), NotYet)


def test_deep_nesting_is_refused_not_crashed() -> None:
    assert isinstance(refusal(f"SELECT {'(' * 5000}len{')' * 5000} FROM main1"), QueryError)
