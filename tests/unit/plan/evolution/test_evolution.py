"""What is kept of the state of one network when another one goes on from it."""

from __future__ import annotations

import re

import pytest

from millrace.errors import RequestError
from millrace.kernel.elements import NO_BOUND
from millrace.language import parse_network, read_file
from millrace.plan.evolution.evolution import Evolution, Evolved, beginning, evolve, merged
from millrace.plan.evolution.start_points import StreamProgress, start_of
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.nodes.relational_nodes import Since
from millrace.plan.physical.stages import physical

SECOND = 1_000_000


def stream(name: str, columns: str = "k STRING, v BIGINT, ts TIMESTAMP", more: str = "", source: str = "") -> str:
    source = source or f"csv OPTIONS (path '{name}')"
    return f"CREATE STREAM {name} ({columns}) TIMESTAMP BY ts DISORDER INTERVAL 2 SECONDS {more} FROM {source};"


STREAMS = stream("s") + stream("r")
INNER = "SELECT k, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY k"
OUTER = f"SELECT max(n) AS most FROM ({INNER}) [RANGE 60 SECONDS SLIDE 60 SECONDS]"
JOINED = "SELECT a.k, b.v FROM s AS a JOIN r AS b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"


def network(declared: str = STREAMS, **queries: str) -> QueryNetwork:
    return parse_network(declared + "".join(f"CREATE QUERY {name} AS {text};" for name, text in queries.items()))


def at(second: int, bound: int | None = None, **outlets: int) -> dict[str, object]:
    further = {
        name: {"greatest": each * SECOND, "bound": each * SECOND, "sequence": 0} for name, each in outlets.items()
    }
    ahead = second - 2 if bound is None else bound
    return {"greatest": second * SECOND, "bound": ahead * SECOND, "sequence": 7, "outlets": further}


POINTS: StreamProgress = {"s": at(100), "r": at(90)}
START = 100 * SECOND + 1


def evolved(
    before: QueryNetwork, after: QueryNetwork, points: StreamProgress = POINTS, *, spread: bool = False
) -> Evolution:
    found = evolve(before, after, points, spread=spread)
    assert found is not None
    return found


def told(evolution: Evolution, name: str) -> Evolved:
    return next(each for each in evolution.queries if each.name == name)


def kinds(names: tuple[str, ...]) -> list[str]:
    return [name.partition("#")[0] for name in names]


def starts(evolution: Evolution, name: str) -> list[int]:
    root = next(root for query, root in physical(evolution.network).roots if query.name == name)
    return [each.time for each in walk(root) if isinstance(each, Since)]


def test_the_same_queries_in_other_words_change_nothing() -> None:
    before = network(q=INNER, p="SELECT k FROM s")
    assert evolve(before, network(p="SELECT s.k AS k FROM s", q=INNER.replace("  ", " ")), POINTS) is None


def test_having_and_the_select_list_keep_the_aggregate() -> None:
    for after in (f"{INNER} HAVING count(*) > 1", INNER.replace("k, count(*) AS n", "count(*) + 1 AS m, k")):
        found = evolved(network(q=INNER), network(q=after))
        assert told(found, "q").became == "changed"
        assert kinds(told(found, "q").keeps) == ["window_aggregate"]
        assert told(found, "q").starts == () and told(found, "q").began is None
        assert starts(found, "q") == []


@pytest.mark.parametrize(
    "after",
    [
        INNER.replace("RANGE 10", "RANGE 30"),
        INNER.replace("GROUP", "WHERE v > 1 GROUP"),
        INNER.replace("count(*)", "sum(v)"),
        INNER.replace("GROUP BY k", "GROUP BY k, v"),
        INNER.replace("FROM s", "FROM s UNION r"),
    ],
)
def test_another_aggregate_starts_after_what_was_seen(after: str) -> None:
    found = evolved(network(q=INNER), network(q=after))
    assert told(found, "q").keeps == ()
    assert kinds(told(found, "q").starts) == ["window_aggregate"]
    assert told(found, "q").began == told(found, "q").since == START
    assert set(starts(found, "q")) == {START}


def test_the_lower_of_two_aggregates_is_kept_under_another_upper_one() -> None:
    found = evolved(network(q=OUTER), network(q=OUTER.replace("RANGE 60", "RANGE 120")))
    assert kinds(told(found, "q").keeps) == kinds(told(found, "q").starts) == ["window_aggregate"]
    assert starts(found, "q") == [START]


def test_an_aggregate_on_top_of_what_a_query_was_and_one_taken_off_again() -> None:
    found = evolved(network(q=INNER), network(q=OUTER))
    assert len(told(found, "q").keeps) == len(told(found, "q").starts) == 1
    back = evolved(found.network, network(q=INNER), {"s": at(200), "r": at(190)})
    assert (len(told(back, "q").keeps), told(back, "q").starts, starts(back, "q")) == (1, (), [])


def test_a_kept_part_keeps_the_start_that_it_had() -> None:
    before = network(q=INNER)
    joined = QueryNetwork((before.queries[0].starting_at(5 * SECOND),))
    found = evolved(joined, network(q=OUTER))
    assert starts(found, "q") == [5 * SECOND, START]
    again = evolved(found.network, network(q=f"{INNER} HAVING count(*) > 3"), {"s": at(200), "r": at(190)})
    assert starts(again, "q") == [5 * SECOND]


def test_bounds_ahead_of_all_rows_put_off_the_start_above_a_kept_part() -> None:
    found = evolved(network(q=INNER), network(q=OUTER), {"s": at(100, bound=130), "r": at(90)})
    assert starts(found, "q") == [130 * SECOND]
    assert told(found, "q").began == 130 * SECOND


def test_a_join_is_kept_under_filters_and_under_aggregates() -> None:
    found = evolved(network(q=JOINED), network(q=f"{JOINED} AND b.v > a.v"))
    assert kinds(told(found, "q").starts) == ["join"], "what is compared is part of the join"
    filtered = evolved(network(q=JOINED), network(q=f"SELECT k, v + 1 AS w FROM ({JOINED}) WHERE v > 3"))
    assert kinds(told(filtered, "q").keeps) == ["join"] and starts(filtered, "q") == []


@pytest.mark.parametrize("method", ["", " WITH (join = 'sync_filter')", " WITH (join = 'oop')"])
def test_an_order_by_time_and_its_join_are_kept_as_one(method: str) -> None:
    ordered = f"SELECT a.k, b.v, b.ts FROM s AS a JOIN r AS b ON a.k = b.k {JOINED.partition('a.k = b.k ')[2]}"
    before = network(q=f"{ordered} ORDER BY b.ts{method}")
    assert evolve(before, network(q=f"{ordered} ORDER BY b.ts{method}"), POINTS) is None
    found = evolved(before, network(q=f"{ordered.replace('b.v,', 'b.v + 1 AS w,')} ORDER BY b.ts{method}"))
    names = set(physical(found.network).whole().nodes)
    assert set(told(found, "q").keeps) | set(told(found, "q").starts) <= names
    assert not ("join" in "".join(told(found, "q").starts) and starts(found, "q") == [])


def test_options_that_make_another_operator_start_it_anew() -> None:
    for option in ("panes = 'off'", "baseline = 'in_order'", "low_level_groups = '100'", "slack = '1 second'"):
        found = evolved(network(q=INNER), network(q=f"{INNER} WITH ({option})"))
        assert "window_aggregate" in kinds(told(found, "q").starts), option
        assert starts(found, "q") == [START]
    scheduled = evolved(network(q=INNER), network(q=f"{INNER} WITH (strategy = 'bfs')"))
    assert (told(scheduled, "q").starts, told(scheduled, "q").notes) == ((), ("other options",))


def test_what_remembers_nothing_goes_on_without_a_start() -> None:
    found = evolved(network(q="SELECT k FROM s"), network(q="SELECT k, v FROM s WHERE v > 1"))
    assert told(found, "q").began is None and starts(found, "q") == []
    joined = QueryNetwork((network(q="SELECT k FROM s").queries[0].starting_at(5 * SECOND),))
    assert starts(evolved(joined, network(q="SELECT v FROM s")), "q") == [5 * SECOND]


def test_a_query_that_joins_has_a_start_whatever_it_shares() -> None:
    found = evolved(network(q=INNER), network(q=INNER, p=INNER, w="SELECT v FROM s"))
    assert starts(found, "p") == starts(found, "w") == [START]
    assert kinds(told(found, "p").keeps) == ["window_aggregate"] and told(found, "p").starts == ()
    assert (told(found, "p").became, told(found, "q").became) == ("started", "kept")
    (live,) = network(w="SELECT v FROM s").queries
    live = live.starting_at(*start_of(live, POINTS))
    assert physical(QueryNetwork((live,))).roots[0][1] == next(
        root for query, root in physical(found.network).roots if query.name == "w"
    )


def test_a_query_that_comes_under_another_name_goes_on() -> None:
    for text in (INNER, "SELECT k FROM s"):
        found = evolved(network(q=text), network(p=text))
        assert [(each.name, each.became, each.was) for each in found.queries] == [("p", "kept", "q")]
        assert starts(found, "p") == [] and found.renamed == {"p": "q"}


def test_the_part_of_its_own_is_taken_before_that_of_others_and_the_earliest_of_those() -> None:
    first, later = network(a=INNER).queries[0], network(b=INNER).queries[0].starting_at(50 * SECOND)
    own = evolved(QueryNetwork((first, later)), network(a=INNER, b=f"{INNER} HAVING count(*) > 1"))
    assert starts(own, "b") == [50 * SECOND]
    other = evolved(QueryNetwork((later, first)), network(a=INNER, b=INNER, c=OUTER))
    assert starts(other, "c") == [START]


def test_whose_part_is_kept_does_not_depend_on_filters_above_it() -> None:
    filtered = f"{INNER} HAVING count(*) > 1"
    first, later = network(a=INNER).queries[0], network(b=filtered).queries[0].starting_at(50 * SECOND)
    new = evolved(QueryNetwork((first, later)), network(a=INNER, b=filtered, c=filtered))
    assert starts(new, "c") == [START], "the earliest, though another has the same HAVING"
    own = evolved(QueryNetwork((first, later)), network(a=filtered, b=filtered))
    assert starts(own, "a") == [], "its own, though another has the same HAVING"


def test_times_that_say_nothing_of_what_was_given_start_all_anew() -> None:
    rows = "SELECT k, count(*) AS n FROM s [ROWS 5 SLIDE 5] GROUP BY k"
    upper = f"SELECT * FROM ({rows}) WHERE n > 1"
    kept = evolved(network(q=rows), network(q=upper))
    assert starts(kept, "q") == [] and kinds(told(kept, "q").keeps) == ["window_aggregate"]
    joined = evolved(network(q=rows), network(q=rows, p=rows))
    assert starts(joined, "p") == [7], "the number of rows so far"
    assert kinds(told(joined, "p").starts) == ["window_aggregate"]


def test_streams_come_and_go() -> None:
    found = evolved(network(q="SELECT k FROM s"), network(q="SELECT k FROM r"), {"s": at(100)})
    assert (found.streams["added"], found.streams["removed"]) == (["r"], ["s"])
    assert starts(found, "q") == []


def test_columns_come_and_go_and_options_change_without_a_loss() -> None:
    wider = stream(
        "s", "k STRING, more INT, v BIGINT, ts TIMESTAMP, last STRING", source="csv OPTIONS (path 's', header 'false')"
    )
    narrow = stream("s", "k STRING, ts TIMESTAMP")
    before = network(q=OUTER, j=JOINED)
    for declared in (wider, narrow):
        found = evolved(before, network(declared + stream("r"), q=OUTER, j=JOINED))
        assert [each.became for each in found.queries] == ["kept", "kept"]
        assert found.streams["altered"] == ["s"]
        assert set(physical(found.network).whole().nodes) == set(physical(before).whole().nodes)


def test_all_columns_of_a_wider_stream_are_another_query() -> None:
    wider = stream("s", "k STRING, v BIGINT, ts TIMESTAMP, more INT")
    ordered = evolved(network(q="SELECT * FROM s ORDER BY ts"), network(wider, q="SELECT * FROM s ORDER BY ts"))
    assert kinds(told(ordered, "q").starts) == ["merge"]
    plain = evolved(network(q="SELECT * FROM s"), network(wider, q="SELECT * FROM s"))
    assert told(plain, "q").notes == ("other columns",)


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        (
            "CREATE STREAM s (k STRING, v BIGINT, ts TIMESTAMP) INTERNAL TIMESTAMP AS ts FROM csv OPTIONS (path 's');",
            'its time was external "ts" and would be internal "ts"',
        ),
        (
            STREAMS.replace("v BIGINT, ts", "v BIGINT, at TIMESTAMP, ts", 1).replace("BY ts", "BY at", 1),
            'its time was external "ts" and would be external "at"',
        ),
        (stream("s", more="PARTITIONED BY (k)"), "it was without PARTITIONED BY and would be PARTITIONED BY (k)"),
        (
            STREAMS.replace("DISORDER INTERVAL 2 SECONDS", "PUNCTUATED BY v > 3 PER (k)", 1),
            "its promises were without PER and would be PER (k)",
        ),
        (
            stream("s", "k STRING, v BIGINT, at TIMESTAMP, ts TIMESTAMP", more="ALSO BY at ORDERED"),
            "ALSO BY names other columns",
        ),
        (stream("s", more="LATE BY WINDOW"), "LATE BY WINDOW was added"),
        (
            stream("s", "k STRING, v BIGINT AS length(k), ts TIMESTAMP"),
            'its column "v" would be computed in another way',
        ),
        (stream("s", "k STRING, v INT, ts TIMESTAMP"), 'the type of its column "v" has changed'),
        (stream("s", source="json OPTIONS (path 's')"), 'it came from "csv" and would come from "json"'),
        (stream("s", source="csv OPTIONS (path 'elsewhere')"), "it would be read from another path"),
        (stream("s", source="csv OPTIONS (path 's') REPLAY BY ts"), "it would be replayed in another way"),
    ],
)
def test_a_stream_that_cannot_go_on_is_refused(declared: str, reason: str) -> None:
    with pytest.raises(RequestError, match=re.escape(f'stream "s" cannot go on: {reason}')):
        evolve(network(q="SELECT k FROM s"), network(declared, q="SELECT k FROM s"), POINTS)


@pytest.mark.parametrize(
    ("clauses", "told"),
    [
        ("DISORDER INTERVAL 9 SECONDS", "disorder 2 SECONDS becomes disorder 9 SECONDS"),
        ("ORDERED", "disorder 2 SECONDS becomes ordered"),
        ("DISORDER 100 ROWS", "disorder 2 SECONDS becomes disorder 100 ROWS"),
        ("PUNCTUATED BY v > 3", "disorder 2 SECONDS becomes punctuated by (v > 3)"),
        (
            "DISORDER INTERVAL 2 SECONDS ETS ON DEMAND SKEW INTERVAL 3 SECONDS LULL INTERVAL 1 MINUTE",
            "ETS none becomes ETS on demand skew 3 SECONDS lull 1 MINUTE",
        ),
        (
            "DISORDER INTERVAL 2 SECONDS ETS EVERY INTERVAL 1 SECOND SKEW INTERVAL 3 SECONDS",
            "ETS none becomes ETS every 1 SECOND skew 3 SECONDS",
        ),
        (
            "DISORDER INTERVAL 2 SECONDS MAX FUTURE SKEW INTERVAL 1 HOUR",
            "no limit ahead becomes at most 1 HOUR ahead",
        ),
    ],
)
def test_tunings_of_a_stream_change_without_a_loss(clauses: str, told: str) -> None:
    queries = {"q": OUTER, "j": JOINED, "o": "SELECT k FROM s UNION r ORDER BY ts"}
    before = network(**queries)
    after = network(STREAMS.replace("DISORDER INTERVAL 2 SECONDS", clauses, 1), **queries)
    for spread in (False, True):
        found = evolved(before, after, spread=spread)
        assert [each.became for each in found.queries] == ["kept"] * 3
        assert set(physical(found.network).whole().nodes) == set(physical(before).whole().nodes)
        assert set(physical(found.network).cuts()) == set(physical(before).cuts())
    bound = "its bound is 1970-01-01 00:01:38 and does not go back"
    assert found.lines()[3:] == [f"stream s altered: {told}; {bound}"]
    assert [f"{each['before']} becomes {each['after']}" for each in found.data()["tunings"]["s"].values()] == [told]


def test_further_times_and_partitions_are_tuned_as_well() -> None:
    columns = "k STRING, v BIGINT, at TIMESTAMP, ts TIMESTAMP"
    further = stream("s", columns, more="ALSO BY at DISORDER INTERVAL 4 SECONDS")
    found = evolved(network(further, q=INNER), network(further.replace("4 SECONDS", "5 SECONDS"), q=INNER))
    assert "at disorder 4 SECONDS becomes disorder 2 SECONDS, also at disorder 5 SECONDS" in found.lines()[1]
    parted = stream("s", more="PARTITIONED BY (k)")
    tuned = stream("s", more="PARTITIONED BY (k) VALUES ('a', 'b') GRACE INTERVAL 1 MINUTE").replace("2 S", "3 S")
    found = evolved(network(parted, q=INNER), network(tuned, q=INNER))
    assert found.data()["tunings"] == {
        "s": {
            "order": {
                "before": "disorder 2 SECONDS in each partition of k",
                "after": "disorder 3 SECONDS in each partition of k, 2 declared, grace 1 MINUTE",
            }
        }
    }


def test_computed_columns_come_and_go_without_a_loss() -> None:
    before = stream("s", "k STRING, v BIGINT, t STRING, ts TIMESTAMP AS to_timestamp(t)")
    wider = stream("s", "k STRING, v BIGINT, w BIGINT AS v + 1, t STRING, ts TIMESTAMP AS to_timestamp(t)")
    for old, new in ((before, wider), (wider, before)):
        found = evolved(network(old, q=OUTER), network(new, q=OUTER))
        assert found.lines() == ["q kept", "stream s altered: other columns"]
        assert told(found, "q").starts == ()


def test_where_rows_are_spread_a_part_is_kept_only_where_it_stays() -> None:
    before, after = network(q=INNER), network(q=f"{INNER} ORDER BY window_start")
    assert told(evolved(before, after), "q").keeps != ()
    assert kinds(told(evolved(before, after, spread=True), "q").keeps) == []
    outer = network(q=OUTER), network(q=OUTER.replace("RANGE 60", "RANGE 120"))
    assert len(told(evolved(*outer, spread=True), "q").keeps) == 1


def test_a_sink_may_be_another_one() -> None:
    declared = STREAMS + "CREATE SINK o TO csv OPTIONS (path 'o');"
    after = parse_network(f"{declared} CREATE QUERY q INTO o AS {INNER};")
    assert told(evolved(network(q=INNER), after), "q").notes == ("another sink",)


def test_a_new_file_is_applied_to_what_runs() -> None:
    old, new = network(a=INNER, b="SELECT k FROM s", c="SELECT v FROM s"), network(a=OUTER, b="SELECT k FROM s")
    live = network(d="SELECT ts FROM s").queries[0].starting_at(START)
    running = QueryNetwork((*old.queries[:1], old.queries[2], live))
    found = merged(running, old, new, read_file(STREAMS).streams)
    # One has changed, one had been taken out, one is gone from the file, one was asked for.
    assert [query.name for query in found.queries] == ["a", "d"]
    assert found.queries[0].root == new.queries[0].root and found.queries[1] == live


def test_it_is_told_in_words_and_as_data() -> None:
    found = evolved(network(q=OUTER, p="SELECT k FROM s"), network(q=OUTER.replace("RANGE 60", "RANGE 120")))
    first, second = found.lines()
    assert re.fullmatch(
        r"q changed: window_aggregate#\w+ keeps state; window_aggregate#\w+ starts empty, "
        r"from 1970-01-01 00:01:40.000001 on",
        first,
    )
    assert second == "p dropped"
    data = found.data()
    assert data["queries"][0]["starts_at_microseconds"] == START
    assert data["streams"] == {"added": [], "removed": [], "altered": []} and data["tunings"] == {}
    assert "from the beginning of its streams" in beginning(network(q=INNER)).lines()[0]
    assert told(beginning(network(q=INNER)), "q").since == NO_BOUND
