"""Views, queries that are read by name, INSERT INTO, OR REPLACE, and what SHOW, DESCRIBE and EXPLAIN answer."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.errors import QueryError
from millrace.language import bind_changes, bind_script, parse_network, parse_script, read_file
from millrace.plan.evolution.changes import Added, Dropped, Shown
from millrace.plan.nodes.node import Node
from millrace.plan.physical.stages import physical
from tests.unit.language.scripts import STREAMS, refusal

READS = "CREATE QUERY q AS SELECT srcIP FROM c WHERE n > 1"
COUNTS = "SELECT srcIP, count(*) AS n FROM main1 [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY srcIP"


def roots(text: str) -> dict[str, Node]:
    return {query.name: query.root for query in parse_network(f"{text};{STREAMS}").queries}


def shown(text: str) -> list[list[dict[str, Any]]]:
    return [each.rows.to_pylist() for each in bind_script(parse_script(f"{STREAMS};{text}"))[1]]


@pytest.mark.parametrize(
    "text",
    [
        f"CREATE VIEW c AS {COUNTS}; {READS}",
        f"{READS}; CREATE VIEW C AS {COUNTS}",
        f"CREATE VIEW a AS {COUNTS}; CREATE VIEW c AS SELECT * FROM a; {READS}",
        f"CREATE QUERY c AS {COUNTS}; CREATE QUERY q AS SELECT x.srcIP FROM C AS x WHERE x.n > 1",
        f"CREATE QUERY c AS {COUNTS} ORDER BY window_end; CREATE QUERY q AS SELECT srcIP FROM c WHERE c.n > 1",
        f"CREATE VIEW c AS SELECT len AS n FROM main1; CREATE OR REPLACE VIEW c AS {COUNTS}; {READS}",
    ],
)
def test_a_view_or_query_is_read_as_if_it_were_written_there(text: str) -> None:
    assert roots(text)["q"] == roots(f"CREATE QUERY q AS SELECT srcIP FROM ({COUNTS}) WHERE n > 1")["q"]


@pytest.mark.parametrize(
    "text",
    [
        "WITH c (a, b) AS (SELECT srcIP, len FROM main1) SELECT a, b FROM c WHERE b > 1",
        "SELECT a, b FROM (SELECT srcIP, len FROM main1) AS c (a, b) WHERE c.b > 1",
        "CREATE VIEW c (a, b) AS SELECT srcIP, len FROM main1; SELECT a, b FROM c WHERE b > 1",
        "CREATE SINK o TO csv OPTIONS (path 'o'); INSERT INTO o (a, b) SELECT srcIP, len FROM main1 WHERE len > 1",
    ],
)
def test_columns_can_be_named_where_a_query_is(text: str) -> None:
    (root,) = roots(text).values()
    assert root.schema.names == ["a", "b"]


def test_a_renamed_time_column_is_still_the_time() -> None:
    named = "WITH c (k, at) AS (SELECT srcIP, ts FROM main1)"
    text = f"{named} SELECT k, count(*) AS n FROM c [RANGE 1 MINUTE SLIDE 1 MINUTE WA at] GROUP BY k"
    assert roots(text)["query_1"].schema.names[-1] == "n"


def test_what_queries_compute_alike_runs_once() -> None:
    text = f"CREATE QUERY c AS {COUNTS}; CREATE QUERY q AS SELECT srcIP FROM c WHERE n > 1"
    graph = physical(parse_network(f"{text};{STREAMS}")).whole()
    assert sum(node.operator.label == "window aggregate" for node in graph.nodes.values() if node.operator) == 1


def test_insert_into_is_a_query_with_the_name_of_its_sink() -> None:
    sink = "CREATE SINK o TO csv OPTIONS (path 'o')"
    text = f"{sink}; INSERT INTO o SELECT len FROM main1; INSERT INTO o SELECT len FROM main2"
    found = parse_network(f"{text};{STREAMS}").queries
    assert [(each.name, each.sink.name) for each in found] == [("o", "o"), ("o_2", "o")]


@pytest.mark.parametrize(
    ("text", "fact", "hint"),
    [
        ("CREATE VIEW main1 AS SELECT len FROM main2", '"main1" is declared twice', "another name"),
        ("CREATE VIEW a AS SELECT len FROM main1; CREATE VIEW a AS SELECT len FROM main1", "declared twice", "another"),
        (
            "CREATE VIEW a AS SELECT len FROM main1; CREATE QUERY A AS SELECT len FROM main1",
            "declared twice",
            "another",
        ),
        ("CREATE VIEW a AS SELECT len FROM b; CREATE VIEW b AS SELECT len FROM a", '"a" reads itself', "others"),
        ("CREATE VIEW a AS SELECT lenn FROM main1", 'column "lenn" does not exist', "len"),
        ("INSERT INTO nowhere SELECT len FROM main1", 'sink "nowhere" does not exist', "CREATE SINK"),
        ("INSERT INTO o VALUES (1, 2)", "takes a SELECT, not VALUES", "Rows come from streams"),
        ("INSERT OVERWRITE o SELECT len FROM main1", "OVERWRITE is not supported", "mode 'overwrite'"),
        ("SELECT len FROM main1 LIMIT 0", 'expected a number of rows, found "0"', "LIMIT 10"),
        ("CREATE QUERY q AS SELECT len FROM main1 LIMIT 5", "LIMIT is", "console"),
        ("SELECT len FROM (SELECT len FROM main1 LIMIT 5)", "LIMIT is", "console"),
        ("DESCRIBE man1", '"man1" does not exist', 'Did you mean "main1"'),
        ("EXPLAIN main1", "expected SELECT", "EXPLAIN SELECT"),
        ("EXPLAIN SELECT lenn FROM main1", 'column "lenn" does not exist', "len"),
        ("SET a", 'expected "="', "SET name = value"),
        ("SET spark.sql.x = 3", 'expected "="', "WITH (key"),
    ],
)
def test_a_wrong_statement_is_refused(text: str, fact: str, hint: str) -> None:
    error = refusal(text)
    assert fact in error.fact and hint in error.hint and error.place is not None


def test_a_query_needs_a_limit_of_its_own_for_one_that_it_reads() -> None:
    total = "SELECT srcIP, count(*) AS n FROM main1 [RANGE UNLIMITED PRECEDING] GROUP BY srcIP"
    error = refusal(f"CREATE QUERY a WITH (state_limit = 5) AS {total}; CREATE QUERY b AS SELECT n FROM a")
    assert (
        error.place is not None and error.place.text == "a" and 'in "a"' in error.fact and "state_limit" in error.hint
    )


def test_what_is_declared_is_shown() -> None:
    sink = "CREATE SINK o TO csv OPTIONS (path 'out')"
    text = (
        f"{sink}; CREATE VIEW v AS SELECT len FROM main1; CREATE QUERY c INTO o AS {COUNTS}; SELECT len FROM v LIMIT 3"
    )
    streams, sinks, views, queries = shown(f"{text}; SHOW STREAMS; SHOW SINKS; SHOW VIEWS; SHOW QUERIES")
    assert [each["stream"] for each in streams] == ["control", "main1", "main2", "silent", "other"]
    assert streams[2]["time"] == "at" and streams[1]["columns"].startswith("srcIP STRING, destIP STRING, len INT")
    assert sinks == [{"sink": "o", "format": "csv", "path": "out"}]
    assert views == [{"view": "v", "columns": "len INT"}]
    assert [(each["query"], each["sink"]) for each in queries] == [("c", "o"), ("query_1", "query_1")]


def test_functions_are_shown() -> None:
    (rows,) = shown("SHOW FUNCTIONS")
    kinds = {each["function"]: each["kind"] for each in rows}
    assert (kinds["upper"], kinds["sum"]) == ("function", "aggregate")


def test_columns_are_described() -> None:
    stream, late = shown(
        "CREATE STREAM u (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k) LATE INTO u_late "
        "FROM csv OPTIONS (path 'u'); DESCRIBE U; DESCRIBE u_late"
    )
    assert [tuple(each.values()) for each in stream] == [
        ("k", "STRING", "update key"), ("v", "INT", ""), ("ts", "TIMESTAMP", "time"),
    ]  # fmt: skip
    assert [each["column"] for each in late] == ["k", "v", "ts"]
    view, query = shown(
        f"CREATE VIEW v (a) AS SELECT len FROM main1; CREATE QUERY q AS {COUNTS}; DESCRIBE v; DESCRIBE q"
    )
    assert [each["column"] for each in view] == ["a"] and query[-1]["type"] == "BIGINT"


def test_a_select_is_explained_and_not_run() -> None:
    network, answers = bind_script(parse_script(f"{STREAMS}; EXPLAIN {COUNTS}"))
    lines = answers[0].rows.column("plan").to_pylist()
    assert network.queries == () and any("aggregate" in line for line in lines)


# A running network


def test_a_request_reads_views_and_queries_of_the_file_and_of_requests_before() -> None:
    file = read_file(f"{STREAMS}; CREATE VIEW v AS SELECT len FROM main1; CREATE QUERY q AS SELECT len, ts FROM main1")
    first = bind_changes(file.declared, "ADD QUERY r AS SELECT len FROM v WHERE len > 1", file.network.queries)
    (added,) = first.changes
    assert isinstance(added, Added)
    queries = [*file.network.queries, added.query]
    second = bind_changes(first.declared, "ADD QUERY t AS SELECT * FROM r UNION SELECT len FROM q", queries)
    assert isinstance(second.changes[0], Added)


def test_a_request_replaces_a_query() -> None:
    file = read_file(f"{STREAMS}; CREATE QUERY q AS SELECT len, ts FROM main1")
    found = bind_changes(file.declared, "CREATE OR REPLACE QUERY q AS SELECT len FROM main1", file.network.queries)
    dropped, added = found.changes
    assert dropped == Dropped("q") and isinstance(added, Added) and added.query.root.schema.names == ["len"]


def test_a_request_replaces_no_stream_unless_it_is_the_same() -> None:
    file = read_file(f"{STREAMS}; CREATE QUERY q AS SELECT len FROM main1")
    stream = "CREATE OR REPLACE STREAM silent (srcIP STRING, len DOUBLE) LATENT TIMESTAMP FROM csv OPTIONS (path '{}')"
    added = "ADD QUERY r AS SELECT len FROM silent"
    bind_changes(file.declared, f"{stream.format('silent.csv')}; {added}", file.network.queries)
    with pytest.raises(QueryError, match='"silent" cannot be replaced while the network runs'):
        bind_changes(file.declared, f"{stream.format('x.csv')}; {added}", file.network.queries)


def test_a_request_is_answered_with_what_is_declared() -> None:
    file = read_file(f"{STREAMS}; CREATE QUERY q AS SELECT len FROM main1")
    (answer,) = bind_changes(file.declared, "DESCRIBE q", file.network.queries).changes
    assert isinstance(answer, Shown) and answer.rows.column("column").to_pylist() == ["len"]
