from __future__ import annotations

import pytest

from millrace.errors import QueryError
from millrace.language import bind_changes, parse_network
from millrace.plan.evolution.changes import Added
from millrace.plan.nodes.query_network import QueryNetwork

MINUTE = 60_000_000
STREAMS = """
CREATE STREAM a (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'a');
CREATE STREAM b (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED MAX FUTURE SKEW 5 MINUTES FROM csv OPTIONS (path 'b');
CREATE STREAM c (v INT, ts TIMESTAMP) INTERNAL TIMESTAMP AS ts FROM csv OPTIONS (path 'c');
"""


def skews(text: str) -> dict[str, int | None]:
    """The guards of all streams, the same in every query that reads them."""
    network = parse_network(STREAMS + text)
    streams = {each.name: each for each in network.streams()}
    assert network.with_streams(streams) == network
    return {name: each.time.max_future_skew for name, each in streams.items()}


def refusal(text: str) -> QueryError:
    with pytest.raises(QueryError) as error:
        parse_network(STREAMS + text)
    assert error.value.hint and error.value.place is not None
    return error.value


def test_the_option_of_a_query_guards_its_streams_for_every_query() -> None:
    text = "SELECT v FROM a; SELECT v FROM a UNION b UNION c WITH (max_future_skew = '5 minutes'); SELECT v FROM a"
    assert skews(text) == {"a": 5 * MINUTE, "b": 5 * MINUTE, "c": None}


def test_a_stream_that_the_query_does_not_read_is_not_guarded() -> None:
    assert skews("SELECT v FROM a; SELECT v FROM b WITH (max_future_skew = INTERVAL 5 MINUTES)")["a"] is None


def test_two_values_for_one_stream_are_refused() -> None:
    first = "SELECT v FROM a WITH (max_future_skew = '1 minute'); "
    error = refusal(first + "SELECT v FROM a WITH (max_future_skew = '2 minutes')")
    assert error.fact == 'stream "a" has another max_future_skew already, 1 MINUTE'
    assert error.place is not None and error.place.text == "'2 minutes'"
    assert "5 MINUTES" in refusal("SELECT v FROM b WITH (max_future_skew = '1 minute')").fact
    assert skews(first + "SELECT v FROM a WITH (max_future_skew = '60 s')") == {"a": MINUTE}


def test_streams_with_our_own_clock_need_no_guard() -> None:
    assert "external" in refusal("SELECT v FROM c WITH (max_future_skew = '1 minute')").fact


def test_a_running_stream_keeps_the_guard_it_has() -> None:
    running = parse_network(STREAMS + "CREATE QUERY q AS SELECT v FROM a WITH (max_future_skew = '1 minute')").queries
    (added,) = bind_changes(STREAMS, "ADD QUERY r AS SELECT v FROM a", running).changes
    assert isinstance(added, Added)
    assert QueryNetwork((added.query,)).streams()[0].time.max_future_skew == MINUTE
    with pytest.raises(QueryError, match="another max_future_skew"):
        bind_changes(STREAMS, "ADD QUERY r AS SELECT v FROM a WITH (max_future_skew = '2 minutes')", running)
    running = parse_network(STREAMS + "CREATE QUERY q AS SELECT v FROM a").queries
    with pytest.raises(QueryError, match="runs without max_future_skew"):
        bind_changes(STREAMS, "ADD QUERY r AS SELECT v FROM a WITH (max_future_skew = '2 minutes')", running)
