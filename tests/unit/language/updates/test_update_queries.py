"""Update streams and update queries: how they are written, and what they are refused for, at which place."""

from __future__ import annotations

import pytest

from millrace.errors import MillraceError, NotYet, QueryError
from millrace.kernel.columns.expressions import Column
from millrace.kernel.updates.queue_settings import Access
from millrace.language import bind_changes, parse_network
from millrace.plan.evolution.changes import Altered
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.query_network import Query
from millrace.plan.nodes.relational_nodes import Union
from millrace.plan.updates.queue_placement import key_of, queue_policies

STREAMS = """
CREATE STREAM quotes (symbol STRING, venue STRING, price DOUBLE, size INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS UPDATE KEY (symbol) FROM csv OPTIONS (path 'q.csv');
CREATE STREAM more (symbol STRING, venue STRING, price DOUBLE, size INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (symbol) FROM csv OPTIONS (path 'm.csv');
CREATE STREAM cut (symbol STRING, price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (symbol) FROM csv OPTIONS (path 'm.csv') WITH (queue = 'linecutting');
CREATE STREAM whole (symbol STRING, price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (symbol) FROM csv OPTIONS (path 'm.csv') WITH (queue = 'append');
CREATE STREAM pairs (a STRING, b BIGINT, v INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (a, b) FROM csv OPTIONS (path 'p.csv');
CREATE STREAM turned (b INT, a STRING, v INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (b, a) FROM csv OPTIONS (path 'p.csv');
CREATE STREAM gauge (v DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY () LATE INTO gone FROM csv OPTIONS (path 'g.csv');
CREATE STREAM plain (symbol STRING, x INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'x.csv');
"""
WINDOW = "[RANGE 1 MINUTE SLIDE 1 MINUTE]"
COUNTS = f"SELECT symbol, count(*) AS n FROM quotes {WINDOW} GROUP BY symbol"

WITH_WINDOW = f"SELECT window_start, symbol, count(*) AS n FROM quotes {WINDOW} GROUP BY symbol"
CHAINED = f"SELECT symbol, max(n) AS m FROM ({COUNTS}) {WINDOW} GROUP BY symbol"
BY_VENUE = f"SELECT symbol, venue, count(*) AS n, window_end FROM quotes {WINDOW} GROUP BY symbol, venue"


def query(text: str) -> Query:
    (found,) = parse_network(f"{text};{STREAMS}").queries
    return found


def refused(text: str) -> MillraceError:
    with pytest.raises(MillraceError) as raised:
        parse_network(f"{text};{STREAMS}")
    return raised.value


def stream(clauses: str) -> Stream:
    text = f"CREATE STREAM s (k STRING, j INT, v DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED {clauses} FROM csv"
    queue = "" if "KEY" in clauses else " WITH (queue = 'append')"
    return parse_network(f"{text}; SELECT * FROM s{queue}").streams()[0]


# Streams


def test_a_stream_knows_its_update_key_and_the_options_of_its_queues() -> None:
    assert stream("UPDATE KEY (k, J)").update_key == ("k", "j")
    assert stream("UPDATE KEY ()").update_key == ()
    assert stream("").update_key is None
    options = "queue = 'append_shed', keep = 0.5, baseline = 'naive_memory', budget = '500 rows'"
    assert stream(f"UPDATE KEY (k) WITH ({options})").options == {
        "queue": "append_shed", "keep": "0.5", "memory": "naive", "budget": "500 rows"
    }  # fmt: skip
    timed = stream("UPDATE KEY (k) WITH (tick = '1 second', budget = '200 milliseconds', close = 'OWN')")
    assert timed.options == {"tick": "1000000", "budget": "200000", "close": "own"}


def test_what_a_part_without_updates_computes_has_the_name_it_had() -> None:
    assert "update_key" not in repr(stream("UPDATE KEY (k)"))
    assert "truth" not in repr(query("SELECT symbol, price FROM quotes UNION more TRUTH more").root)


@pytest.mark.parametrize(
    ("clauses", "fact", "offending"),
    [
        ("UPDATE KEY (v)", '"v" is DOUBLE and cannot be part of an update key', "v"),
        ("UPDATE KEY (k, ts)", '"ts" is a time of the stream', "ts"),
        ("ALSO BY seen ORDERED UPDATE KEY (seen)", '"seen" is a time of the stream', "seen"),
        ("UPDATE KEY (k, k)", '"k" is listed twice', "k"),
        ("UPDATE KEY (z)", 'column "z" does not exist', "z"),
        ("UPDATE KEY (k) WITH (strategy = 'bfs')", 'option "strategy" is not for a stream', "strategy"),
        ("UPDATE KEY (k) WITH (queue = 'fast')", 'option "queue" cannot be "fast"', "'fast'"),
        ("UPDATE KEY (k) WITH (keep = 0)", 'option "keep" cannot be "0"', "0"),
        ("UPDATE KEY (k) WITH (budget = '0 rows')", 'option "budget" cannot be "0 rows"', "'0 rows'"),
        ("UPDATE KEY (k) WITH (tick = '0 seconds')", 'option "tick" cannot be', "'0 seconds'"),
        ("WITH (queue = 'inplace')", 'option "queue" = "inplace" is for update streams', "queue"),
        ("WITH (update_window = 'lazy')", 'option "update_window" = "lazy" is for update streams', "update_window"),
    ],
)
def test_a_wrong_update_stream_is_refused_at_its_place(clauses: str, fact: str, offending: str) -> None:
    columns = "(k STRING, v DOUBLE, seen TIMESTAMP, ts TIMESTAMP)"
    with pytest.raises(QueryError) as raised:
        parse_network(f"CREATE STREAM s {columns} TIMESTAMP BY ts ORDERED {clauses} FROM csv")
    assert fact in raised.value.fact
    assert raised.value.hint
    assert raised.value.place is not None and raised.value.place.text == offending


# Keys of results


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SELECT symbol, price FROM quotes", ("symbol",)),
        ("SELECT price, symbol AS s FROM quotes WHERE size > 3", ("s",)),
        ("SELECT s AS t, price FROM (SELECT symbol AS s, price FROM quotes)", ("t",)),
        ("SELECT * FROM quotes UNION more", ("symbol",)),
        ("SELECT a, b, v FROM pairs UNION SELECT a, b, v FROM turned", ("a", "b")),
        ("SELECT v FROM gauge", ()),
        (COUNTS, ("symbol",)),
        (f"SELECT symbol, venue AS v, count(*) AS n FROM quotes {WINDOW} GROUP BY venue, symbol", ("symbol", "v")),
        (f"SELECT symbol, max(n) AS m FROM ({COUNTS}) [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY symbol", ("symbol",)),
        ("SELECT y.symbol AS s, x.price FROM quotes AS x JOIN more AS y ON x.symbol = y.symbol", ("s",)),
        ("SELECT * FROM quotes JOIN cut USING (symbol) WITH (queue = 'inplace')", ("symbol",)),
        ("SELECT p.b, t.a FROM pairs AS p JOIN turned AS t ON p.a = t.a AND p.b = t.b", ("a", "b")),
        ("SELECT z.symbol FROM quotes AS x JOIN more AS y USING (symbol) JOIN quotes AS z USING (symbol)", ("symbol",)),
        (f"SELECT y.symbol, x.n FROM ({COUNTS}) AS x JOIN more AS y ON x.symbol = y.symbol", ("symbol",)),
        (
            f"SELECT venue, x.symbol FROM ({BY_VENUE}) AS x JOIN ({BY_VENUE}) AS y USING (symbol, venue)",
            ("symbol", "venue"),
        ),
        (
            f"SELECT x.symbol, count(*) {WINDOW} AS n FROM quotes AS x JOIN more AS y USING (symbol) GROUP BY x.symbol",
            ("symbol",),
        ),
        (f"{COUNTS} UNION {COUNTS.replace('quotes', 'more')}", ("symbol",)),
        ("SELECT symbol, count(*) AS n FROM quotes [SESSION 1 MINUTE] GROUP BY symbol", ("symbol",)),
        ("SELECT symbol, count(*) AS n FROM quotes [RANGE 1 MINUTE] GROUP BY symbol", ("symbol",)),
        ("SELECT symbol, count(*) AS n FROM quotes [ROWS 9 SLIDE 9] GROUP BY symbol", ("symbol",)),
        ("SELECT symbol, count(*) AS n FROM quotes [ROWS 9 PARTITION BY symbol] GROUP BY symbol", ("symbol",)),
        ("SELECT symbol, date_trunc('month', ts) AS m, count(*) AS n FROM quotes GROUP BY symbol, 2", ("symbol",)),
        (f"SELECT symbol, max(n) AS m FROM ({COUNTS}) [RANGE 90 s SLIDE 60 s] GROUP BY symbol", ("symbol",)),
        (
            f"SELECT symbol, max(m) AS n FROM ({CHAINED}) {WINDOW} GROUP BY symbol",
            ("symbol",),
        ),
        ("SELECT x.symbol FROM quotes AS x ASOF JOIN more AS y ON x.symbol = y.symbol AND y.ts <= x.ts", ("symbol",)),
        ("SELECT x.symbol, y.price FROM quotes AS x LEFT JOIN more AS y ON x.symbol = y.symbol", ("symbol",)),
        (
            "SELECT x.price, y.symbol FROM quotes [RANGE 1 s] AS x RIGHT JOIN more [RANGE 1 s] AS y USING (symbol)",
            ("symbol",),
        ),
        (f"SELECT symbol, count(*) AS n FROM plain {WINDOW} GROUP BY symbol WITH (queue = 'inplace')", ("symbol",)),
        (f"SELECT count(*) AS n FROM plain {WINDOW} WITH (queue = 'inplace')", ()),
    ],
)
def test_the_key_of_an_update_query_is_found_in_its_results(text: str, key: tuple[str, ...]) -> None:
    assert key_of(query(text)) == key


@pytest.mark.parametrize(
    "text",
    [
        "SELECT symbol, x FROM plain",
        "SELECT symbol, price FROM quotes WITH (queue = 'append')",
        "SELECT symbol, price FROM whole",
        "SELECT v FROM gone",
    ],
)
def test_other_queries_have_no_key(text: str) -> None:
    assert key_of(query(text)) is None


# Refusals of 002 section 3.2


@pytest.mark.parametrize(
    ("text", "fact", "offending"),
    [
        ("SELECT price FROM quotes", 'the update key "symbol" is not selected', "SELECT"),
        ("SELECT upper(symbol) AS symbol FROM quotes", 'the update key "symbol" is altered: upper(symbol)', "SELECT"),
        (f"SELECT venue, count(*) AS n FROM quotes {WINDOW} GROUP BY venue", 'not contain the update key "symbol"',
         "venue"),
        (f"SELECT count(*) AS n FROM quotes {WINDOW}", 'GROUP BY does not contain the update key "symbol"', WINDOW),
        (f"SELECT symbol, count(*) AS n FROM quotes {WINDOW} GROUP BY symbol, venue", "all columns of GROUP BY",
         "SELECT"),
        ("SELECT symbol, venue FROM quotes UNION SELECT venue, symbol FROM more",
         "different update keys, (symbol) and (venue)", "SELECT"),
        ("SELECT x.symbol FROM quotes AS x JOIN more AS y ON x.venue = y.venue",
         "does not equate the update keys of its inputs, (x.symbol) and (y.symbol)", "JOIN"),
        ("SELECT x.symbol FROM quotes AS x JOIN gauge AS y ON x.price = y.v", "(x.symbol) and ()", "JOIN"),
        ("SELECT p.a FROM pairs AS p JOIN turned AS t ON p.a = t.a", "(p.a, p.b) and (t.b, t.a)", "JOIN"),
        ("SELECT x.symbol FROM quotes AS x JOIN plain AS y ON x.symbol = y.symbol",
         '"quotes" is an update stream and "plain" is not', "plain"),
        ("SELECT v FROM gauge UNION gone", '"gauge" is an update stream and "gone" is not', "gone"),
        ("SELECT symbol, count(*) AS n FROM quotes UNION more [ROWS 9 SLIDE 9] GROUP BY symbol",
         "this window over a union is not supported yet", "[ROWS 9 SLIDE 9]"),
        ("SELECT DISTINCT symbol, ts FROM quotes", "DISTINCT has no meaning", "DISTINCT"),
        ("SELECT symbol, ts FROM quotes ORDER BY ts", "ORDER BY has no meaning", "ts"),
        (f"SELECT symbol, n, rank() OVER (PARTITION BY window_start ORDER BY n) AS r FROM ({WITH_WINDOW})", "a rank",
         "SELECT"),
        ("SELECT y.symbol FROM quotes AS x SEQ more AS y ON x.symbol = y.symbol MODE CHRONICLE WITHIN 1 MINUTE",
         "uses each row once", "SEQ"),
        ("SELECT x.symbol FROM quotes AS x FULL JOIN more AS y ON x.symbol = y.symbol",
         "FULL JOIN is not supported yet", "FULL"),
        ("SELECT y.symbol FROM quotes AS x LEFT JOIN more AS y ON x.symbol = y.symbol",
         'the update key "symbol" is not selected', "SELECT"),
        ("SELECT x.symbol FROM quotes [ROWS 9] AS x JOIN more [ROWS 9] AS y ON x.symbol = y.symbol",
         "a join by ROWS is not supported yet", "JOIN"),
        (("SELECT x.symbol, count(*) [RANGE 1 m SLIDE 1 m WA x.ts] AS n FROM quotes AS x JOIN more AS y "
         "ON x.symbol = y.symbol GROUP BY x.symbol"), "another time than the later one is not supported yet",
         "[RANGE 1 m SLIDE 1 m WA x.ts]"),
        ((f"SELECT x.symbol FROM ({COUNTS}) AS x JOIN (SELECT symbol, price FROM quotes UNION more TRUTH more) AS y "
         "ON x.symbol = y.symbol"), "TRUTH below a join with windows is not supported yet",
         "quotes UNION more TRUTH more"),
        (f"SELECT x.symbol FROM ({BY_VENUE}) AS x JOIN more AS y ON x.symbol = y.symbol",
         "(x.symbol, x.venue) and (y.symbol)", "JOIN"),
        ((f"SELECT x.symbol FROM (SELECT symbol, count(*) AS n FROM quotes {WINDOW} GROUP BY symbol, venue) AS x "
         "JOIN more AS y ON x.symbol = y.symbol"), "all columns of GROUP BY", "JOIN"),
        (("SELECT x.symbol FROM quotes AS x JOIN more AS y ON x.symbol = y.symbol JOIN cut AS z ON z.price = y.price "
         "WITH (queue = 'inplace')"), "(x.symbol) and (z.symbol)", "JOIN"),
        ("SELECT symbol, x FROM plain WITH (queue = 'inplace')", 'rows of "plain" have no key', "plain"),
    ],
)  # fmt: skip
def test_what_has_no_update_semantics_is_refused_at_its_place(text: str, fact: str, offending: str) -> None:
    error = refused(text)
    assert isinstance(error, QueryError | NotYet)
    assert fact in error.fact
    assert error.hint
    assert error.place is not None and error.place.text == offending


@pytest.mark.parametrize(
    "text",
    [
        "SELECT price FROM quotes",
        "SELECT x.symbol FROM quotes [RANGE 1 s] AS x JOIN plain [RANGE 1 s] AS y ON x.symbol = y.symbol",
        "SELECT venue, count(*) AS n FROM quotes [SESSION 1 MINUTE] GROUP BY venue",
        "SELECT symbol, ts FROM quotes ORDER BY ts",
    ],
)
def test_with_an_append_queue_all_queries_are_ordinary_ones(text: str) -> None:
    refused(text)
    assert query(f"{text} WITH (queue = 'append')").options == {"queue": "append"}


def test_updates_may_match_however_old_they_are_and_others_may_not() -> None:
    text = "SELECT * FROM quotes JOIN more USING (symbol)"
    (join,) = [each for each in walk(query(text).root) if isinstance(each, Join)]
    assert [side.ahead for side in join.sides] == [None, None]
    assert "for ever" in refused(f"{text} WITH (queue = 'append')").fact
    assert "for ever" in refused("SELECT * FROM whole JOIN whole AS w USING (symbol)").fact


# TRUTH


def test_a_union_may_name_its_source_of_truth() -> None:
    (union,) = [each for each in walk(query("SELECT * FROM quotes UNION more TRUTH MORE").root) if type(each) is Union]
    assert union.truth == 1
    named = query("SELECT u.symbol FROM quotes UNION more TRUTH quotes AS u WHERE u.size > 3")
    assert [each.truth for each in walk(named.root) if isinstance(each, Union)] == [0]
    counts = query(f"SELECT symbol, count(*) AS n FROM quotes UNION more TRUTH more {WINDOW} GROUP BY symbol")
    assert [each.truth for each in walk(counts.root) if isinstance(each, Union)] == [1]


@pytest.mark.parametrize(
    ("text", "fact", "offending"),
    [
        ("SELECT * FROM quotes UNION more TRUTH cut", '"cut" is not a stream of this union', "cut"),
        ("SELECT * FROM quotes TRUTH quotes", "TRUTH is given without a union", "quotes"),
        ("SELECT * FROM quotes TRUTH quotes UNION more", "not allowed inside a union", "quotes"),
    ],
)
def test_a_wrong_source_of_truth_is_refused(text: str, fact: str, offending: str) -> None:
    error = refused(text)
    assert fact in error.fact and error.hint
    assert error.place is not None and error.place.text == offending


def test_a_hint_does_not_lead_to_another_refusal() -> None:
    joined = refused("SELECT x.symbol FROM quotes AS x JOIN plain AS y ON x.symbol = y.symbol")
    followed = refused("SELECT x.symbol FROM quotes AS x ASOF JOIN plain AS y ON x.symbol = y.symbol AND y.ts <= x.ts")
    assert "Declare UPDATE KEY" in joined.hint
    assert "Declare UPDATE KEY" not in followed.hint and "append" in followed.hint


# Options


def test_options_of_streams_hold_for_queries_unless_they_say_otherwise() -> None:
    assert query("SELECT symbol, price FROM cut").options == {"queue": "linecutting"}
    assert query("SELECT symbol, price FROM cut WITH (queue = 'update_fifo')").options == {"queue": "update_fifo"}
    assert query("SELECT symbol, price FROM quotes").options == {}
    agreed = query("SELECT x.symbol FROM cut AS x JOIN cut AS y ON x.symbol = y.symbol")
    assert agreed.options == {"queue": "linecutting"}


def test_streams_that_are_joined_may_have_different_queues() -> None:
    joined = query("CREATE QUERY q AS SELECT x.symbol FROM quotes AS x JOIN cut AS y ON x.symbol = y.symbol")
    assert queue_policies(joined) == {"q": "inplace", "q#2": "linecutting"}
    three = "SELECT x.symbol FROM quotes AS x JOIN cut AS y USING (symbol) JOIN whole AS z USING (symbol)"
    found = query(f"CREATE QUERY q AS {three}")
    assert queue_policies(found) == {"q": "inplace", "q#2": "linecutting", "q#3": "append"}
    assert key_of(found) == ("symbol",)
    assert set(queue_policies(query(f"{three} WITH (queue = 'update_fifo')")).values()) == {"update_fifo"}
    assert "when keys are read" in refused(f"CREATE QUERY q ACCESS EVERY 1 MINUTE AS {three}").fact
    assert (
        'differ in option "update_window"'
        in refused(
            "SELECT x.symbol FROM lazy AS x JOIN quotes AS y ON x.symbol = y.symbol;"
            "CREATE STREAM lazy (symbol STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (symbol) FROM csv "
            "OPTIONS (path 'l.csv') WITH (update_window = 'lazy')"
        ).fact
    )


def test_options_of_streams_that_a_query_has_no_use_for_are_left_out() -> None:
    text = STREAMS.replace("WITH (queue = 'linecutting')", "WITH (update_window = 'lazy', keep = 0.5)")
    (plain,) = parse_network(f"SELECT symbol, price FROM cut;{text}").queries
    counts = f"SELECT symbol, count(*) AS n FROM cut {WINDOW} GROUP BY symbol"
    (windowed,) = parse_network(f"{counts};{text}").queries
    assert plain.options == {}
    assert windowed.options == {"update_window": "lazy"}


@pytest.mark.parametrize(
    ("text", "fact", "offending"),
    [
        ("SELECT symbol, price FROM quotes UNION SELECT symbol, price FROM cut",
         'differ in option "queue": "quotes" has none and "cut" has linecutting', "SELECT"),
        ("SELECT symbol, price FROM quotes WITH (slack = '1 second')", '"slack" has no effect on an update', "slack"),
        ("SELECT symbol, price FROM quotes WITH (baseline = 'in_order')", '"in_order" has no effect on an update',
         "baseline"),
        (f"{COUNTS} WITH (panes = 'off')", '"panes" has no effect on an update', "panes"),
        ("SELECT symbol, price FROM quotes WITH (update_window = 'lazy')", '"update_window" has no effect',
         "update_window"),
        (f"{COUNTS} WITH (queue = 'append', close = 'own')", '"close" has no effect', "close"),
        (f"{COUNTS} WITH (tick = '1 second')", '"tick" has no effect', "tick"),
        (f"{COUNTS} WITH (baseline = 'naive_memory')", 'baseline "naive_memory" has no effect', "baseline"),
        (f"{COUNTS} WITH (keep = 0.4)", '"keep" has no effect', "keep"),
        (f"{COUNTS} WITH (queue = 'auto')", '"queue" = "auto" is not supported yet with windows', "queue"),
        ("SELECT symbol, x FROM plain WITH (budget = '4 rows')", '"budget" has no effect', "budget"),
        ("SELECT symbol, x FROM plain WITH (baseline = 'naive_memory')", '"naive_memory" has no effect', "baseline"),
        ("SELECT symbol, price FROM quotes WITH (queue = 'append', baseline = 'naive_memory')",
         '"naive_memory" has no effect', "baseline"),
        ("SELECT symbol, x FROM plain WITH (queue = 'append_shed', baseline = 'naive_memory')",
         '"naive_memory" has no effect', "baseline"),
        ("SELECT symbol, price FROM quotes WITH (page = 16)", 'option "page" is unknown', "page"),
    ],
)  # fmt: skip
def test_an_option_without_effect_is_refused_at_its_place(text: str, fact: str, offending: str) -> None:
    error = refused(text)
    assert fact in error.fact
    assert error.hint
    assert error.place is not None and error.place.text == offending


def test_options_with_an_effect_are_kept() -> None:
    options = "baseline = 'random_windows', keep = 0.5, close = 'own', tick = '2 seconds'"
    assert query(f"{COUNTS} WITH ({options})").options == {
        "update_window": "random", "keep": "0.5", "close": "own", "tick": "2000000"
    }  # fmt: skip
    naive = query("SELECT symbol, price FROM quotes WITH (baseline = 'naive_memory')")
    assert naive.options == {"memory": "naive"}
    shed = query("SELECT symbol, x FROM plain WITH (queue = 'append_shed', keep = 1, budget = '1 row')")
    assert shed.options == {"queue": "append_shed", "keep": "1", "budget": "1 rows"}


# ACCESS


def test_access_is_by_classes_of_keys_as_the_results_name_them() -> None:
    access = "ACCESS EVERY INTERVAL 1 MINUTE WHEN s = 'GOOG', EVERY INTERVAL 1 HOUR"
    found = query(f"CREATE QUERY q WITH (queue = 'auto') {access} AS SELECT symbol AS s, price FROM quotes").access
    assert [each.every for each in found] == [60_000_000, 3_600_000_000]
    assert str(found[0].when) == "(s = 'GOOG')" and found[1].when is None
    added = query("ADD QUERY q ACCESS EVERY 5 SECONDS AS SELECT v FROM gauge")
    assert added.access == (Access(5_000_000),)


@pytest.mark.parametrize(
    ("access", "select", "fact", "offending"),
    [
        ("EVERY 1 MINUTE WHEN price > 3", "symbol, price FROM quotes", '"price" is not part of', "price > 3"),
        ("EVERY 1 MINUTE WHEN v > 3", "v FROM gauge", '"v" is not part of the update key', "v > 3"),
        ("EVERY 1 MINUTE WHEN z", "symbol FROM quotes", 'column "z" does not exist', "z"),
        ("EVERY 1 MINUTE WHEN symbol", "symbol FROM quotes", "the condition of WHEN", "symbol"),
        ("EVERY 1 MINUTE, EVERY 1 HOUR", "symbol FROM quotes", "followed by another class", "EVERY 1 HOUR"),
        ("EVERY 0 SECONDS", "symbol FROM quotes", "takes a positive interval", "EVERY 0 SECONDS"),
        ("EVERY 1 MINUTE", "symbol FROM plain", "ACCESS is for update queries", "EVERY 1 MINUTE"),
        ("EVERY 1 MINUTE", "symbol FROM whole", "ACCESS is for update queries", "EVERY 1 MINUTE"),
        ("EVERY 1 MINUTE", COUNTS.removeprefix("SELECT "), "not supported yet with windows", "EVERY 1 MINUTE"),
        ("EVERY 1 MINUTE", "symbol FROM cut", "does not know when keys are read", "EVERY 1 MINUTE"),
        ("1 MINUTE", "symbol FROM quotes", "expected EVERY", "1"),
    ],
)
def test_a_wrong_access_is_refused_at_its_place(access: str, select: str, fact: str, offending: str) -> None:
    error = refused(f"CREATE QUERY q ACCESS {access} AS SELECT {select}")
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.hint
    assert error.place is not None and error.place.text == offending


# ALTER QUERY


def altered(select: str, options: str) -> Query:
    return query(f"CREATE QUERY q {select}; ALTER QUERY q SET ({options})")


@pytest.mark.parametrize(
    ("select", "options"),
    [
        ("AS SELECT symbol, price FROM quotes", "queue = 'append'"),
        ("AS SELECT symbol, price FROM quotes", "queue = 'auto', budget = '9 rows'"),
        ("WITH (queue = 'append') AS SELECT symbol, price FROM quotes", "queue = 'append_shed', keep = 0.5"),
        ("WITH (queue = 'append') AS SELECT symbol, price FROM quotes UNION more", "queue = 'linecutting'"),
        (f"AS {COUNTS}", "queue = 'update_fifo'"),
        (
            "AS SELECT x.symbol FROM quotes AS x JOIN more AS y ON x.symbol = y.symbol",
            "baseline = 'linecutting_as_printed'",
        ),
        ("WITH (queue = 'append') AS SELECT symbol, x FROM plain", "queue = 'append_shed'"),
    ],
)
def test_the_queue_of_a_query_may_change_where_its_operators_stay(select: str, options: str) -> None:
    found = altered(select, options)
    assert all(key in found.options for key in ("queue",))
    assert found.options["queue"] == options.split("'")[1]


@pytest.mark.parametrize(
    ("select", "options", "fact", "offending"),
    [
        (f"AS {COUNTS}", "queue = 'append'", 'of query "q" cannot be changed from inplace to "append"', "'append'"),
        (f"WITH (queue = 'append') AS {COUNTS}", "queue = 'inplace'", 'cannot be changed from append to "inplace"',
         "'inplace'"),
        ("AS SELECT symbol, x FROM plain", "queue = 'append_shed'", "changed from none", "'append_shed'"),
        ("WITH (queue = 'append') AS SELECT price FROM quotes", "queue = 'inplace'", '"symbol" is not selected',
         "'inplace'"),
        ("AS SELECT symbol FROM quotes", "keep = 0.5", 'option "keep" has no effect', "keep"),
        ("AS SELECT symbol FROM quotes", "baseline = 'naive_memory'", "lays its memory out when it starts", "baseline"),
        (f"AS {COUNTS}", "update_window = 'lazy'", "it decides which windows are answered", "update_window"),
        (f"AS {COUNTS}", "close = 'own'", "it decides which windows are answered", "close"),
        (f"AS {COUNTS}", "tick = '1 s'", "it decides which windows are answered", "tick"),
        ("ACCESS EVERY 1 MINUTE AS SELECT symbol FROM quotes", "queue = 'linecutting'", "when keys are read",
         "'linecutting'"),
        ("AS SELECT symbol FROM quotes", "slack = '1 s'", 'option "slack" of a query cannot be altered', "slack"),
    ],
)  # fmt: skip
def test_other_changes_of_a_queue_are_refused_with_the_reason(
    select: str, options: str, fact: str, offending: str
) -> None:
    error = refused(f"CREATE QUERY q {select}; ALTER QUERY q SET ({options})")
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.hint
    assert error.place is not None and error.place.text == offending


def test_a_running_query_is_altered_by_the_same_rules() -> None:
    running = query("CREATE QUERY q AS SELECT symbol, price FROM quotes")
    (change,) = bind_changes(STREAMS, "ALTER QUERY q SET (queue = 'linecutting')", [running]).changes
    assert change == Altered("q", {"queue": "linecutting"})
    with pytest.raises(QueryError, match="lays its memory out"):
        bind_changes(STREAMS, "ALTER QUERY q SET (baseline = 'naive_memory')", [running])


def test_a_query_that_is_added_to_a_running_network_is_checked() -> None:
    with pytest.raises(QueryError, match="is not selected"):
        bind_changes(STREAMS, "ADD QUERY q AS SELECT price FROM quotes", [])
    (change,) = bind_changes(STREAMS, "ADD QUERY q AS SELECT symbol FROM quotes", []).changes
    assert Column("symbol") in [each for _, each in change.query.root.columns]  # type: ignore[union-attr]
