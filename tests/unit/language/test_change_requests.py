"""Statements to a running network."""

from __future__ import annotations

import pytest

from millrace.errors import MillraceError, QueryError
from millrace.language import bind_changes, declarations_of, parse_network
from millrace.plan.evolution.changes import Added, Altered, Amendment, Dropped, Listed, WaitsListed
from tests.unit.language.scripts import STREAMS, refusal

RUNNING = "CREATE QUERY lengths AS SELECT len FROM main1;"


def bound(text: str) -> Amendment:
    return bind_changes(STREAMS, text, parse_network(STREAMS + RUNNING).queries)


def refused(text: str) -> MillraceError:
    with pytest.raises(MillraceError) as raised:
        bound(text)
    return raised.value


@pytest.mark.parametrize("word", ["ADD", "CREATE"])
def test_a_query_joins_under_either_word(word: str) -> None:
    (change,) = bound(f"{word} QUERY more WITH (strategy = 'bfs') AS SELECT ts FROM main1").changes
    assert isinstance(change, Added)
    assert (change.query.name, change.query.options) == ("more", {"strategy": "bfs"})
    assert parse_network(f"{STREAMS} {word} QUERY q AS SELECT ts FROM main1").queries[0].name == "q"


def test_a_bare_select_takes_the_first_free_number() -> None:
    first, second = bound("SELECT ts FROM main1; SELECT len FROM main1").changes
    assert isinstance(first, Added) and isinstance(second, Added)
    assert [first.query.name, second.query.name] == ["query_1", "query_2"]


def test_a_query_is_dropped_altered_and_listed_whatever_the_case_of_its_name() -> None:
    added_first = "ADD QUERY q AS SELECT ts FROM main1; DROP QUERY LENGTHS"
    text = f"ALTER QUERY Lengths SET (strategy = 'RR'); SHOW QUERIES; {added_first}"
    altered, listed, added, dropped = bound(text).changes
    assert altered == Altered("lengths", {"strategy": "rr"})
    assert listed == Listed()
    assert isinstance(added, Added)
    assert dropped == Dropped("lengths")


def test_a_name_is_free_again_after_a_drop_in_the_same_request() -> None:
    dropped, added = bound("DROP QUERY lengths; ADD QUERY lengths AS SELECT ts FROM main1").changes
    assert dropped == Dropped("lengths")
    assert isinstance(added, Added) and added.query.root.schema.names == ["ts"]


def test_declarations_of_a_request_hold_from_then_on() -> None:
    stream = "CREATE STREAM late_comer (a INT) LATENT TIMESTAMP FROM csv OPTIONS (path 'a;b')"
    amendment = bound(f"{stream}; ADD QUERY q AS SELECT a FROM late_comer -- the end")
    assert bind_changes(amendment.declared, "ADD QUERY p AS SELECT a FROM late_comer", []).changes
    assert declarations_of(f"DROP QUERY q; {stream}") == f"{stream};"
    assert declarations_of(f"{stream}; {STREAMS}", known=STREAMS) == f"{stream};"


def test_a_script_alters_a_query_that_stands_before() -> None:
    network = parse_network(f"{STREAMS} {RUNNING} ALTER QUERY lengths SET (strategy = 'bfs')")
    assert network.queries[0].options == {"strategy": "bfs"}


@pytest.mark.parametrize(
    ("text", "fact", "hint"),
    [
        ("ADD QUERY lengths AS SELECT ts FROM main1", '"lengths" is declared twice', "another name"),
        ("CREATE STREAM Main1 (a INT) LATENT TIMESTAMP FROM csv; SHOW QUERIES", "is declared twice", "another name"),
        ("DROP QUERY length", 'query "length" does not exist', 'mean "lengths"'),
        ("DROP QUERY lengths", "the last query cannot be dropped", "stop the run"),
        ("ALTER QUERY nobody SET (strategy = 'bfs')", 'query "nobody" does not exist', "lengths"),
        (
            "ALTER QUERY lengths SET (baseline = 'in_order')",
            'baseline "in_order" of a query cannot be altered',
            "add it anew",
        ),
        ("ALTER QUERY lengths SET (strategy = 'best')", 'cannot be "best"', "batch:K"),
        ("ALTER QUERY lengths (strategy = 'bfs')", "expected SET", "ALTER QUERY name SET"),
        ("ADD STREAM s", "expected QUERY", "ADD QUERY name"),
        ("SHOW STREMS", "expected what to show", 'Did you mean "STREAMS"'),
        ("", "changes nothing", "ADD QUERY"),
        ("CREATE SINK o TO csv", "changes nothing", "ADD QUERY"),
        ("ADD QUERY q INTO nowhere AS SELECT len FROM main1", 'sink "nowhere" does not exist', "CREATE SINK"),
    ],
)
def test_a_wrong_request_is_refused(text: str, fact: str, hint: str) -> None:
    error = refused(text)
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert hint in error.hint
    assert error.place is not None


def test_the_place_of_a_mistake_is_that_in_the_request() -> None:
    error = refused("ADD QUERY q AS\n  SELECT lenn FROM main1")
    assert error.place is not None
    assert (error.place.line, error.place.column, error.place.source_line) == (2, 10, "  SELECT lenn FROM main1")


def test_what_holds_results_back_is_asked_for() -> None:
    assert bound("show waits").changes == (WaitsListed(),)


def test_a_script_cannot_ask_what_results_wait_for() -> None:
    waits = refusal("SELECT len FROM main1; SHOW WAITS")
    assert ("SHOW WAITS is for a running network" in waits.fact, "millrace why" in waits.hint) == (True, True)
