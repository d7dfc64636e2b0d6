from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.errors import NotYet, QueryError
from millrace.kernel.columns.expressions import Column
from millrace.kernel.elements import TIMESTAMP
from millrace.kernel.progress.time_contract import LATE, TimeContract
from millrace.language import parse_network
from millrace.plan.nodes.endpoints import Connector, Replay, Stream
from millrace.plan.nodes.relational_nodes import Filter, Project, Scan
from millrace.plan.physical.stages import physical

COLUMNS = "(a INT, k STRING, ts TIMESTAMP)"


def stream(declaration: str) -> Stream:
    (found,) = parse_network(f"SELECT * FROM s; CREATE STREAM s {declaration}").streams()
    return found


def refused(declaration: str) -> QueryError | NotYet:
    with pytest.raises((QueryError, NotYet)) as error:
        parse_network(f"CREATE STREAM s {declaration}")
    assert error.value.hint
    assert error.value.place is not None
    return error.value


@pytest.mark.parametrize(
    ("clauses", "contract"),
    [
        ("TIMESTAMP BY ts ORDERED", TimeContract("external", "ts")),
        ("TIMESTAMP BY TS DISORDER INTERVAL 5 SECONDS", TimeContract("external", "ts", 5_000_000)),
        ("TIMESTAMP BY ts DISORDER 5 SECONDS", TimeContract("external", "ts", 5_000_000)),
        ("TIMESTAMP BY ts DISORDER INTERVAL '5' SECOND", TimeContract("external", "ts", 5_000_000)),
        ("TIMESTAMP BY ts DISORDER INTERVAL '5 seconds' ETS NONE", TimeContract("external", "ts", 5_000_000)),
        (
            "ETS ON DEMAND SKEW INTERVAL 1 SECOND TIMESTAMP BY ts ORDERED",
            TimeContract("external", "ts", 0, "on_demand", 1_000_000),
        ),
        ("INTERNAL TIMESTAMP AS ts", TimeContract("internal", "ts", 0, "on_demand")),
        ("INTERNAL TIMESTAMP AS ts ETS NONE", TimeContract("internal", "ts", 0, "none")),
        ("LATENT TIMESTAMP", TimeContract("latent", None, 0, "on_demand")),
        ("LATENT TIMESTAMP ETS NONE", TimeContract("latent", None, 0, "on_demand")),
        ("TIMESTAMP BY ts DISORDER 100 ROWS", TimeContract("external", "ts", rows=100)),
        ("TIMESTAMP BY ts PUNCTUATED BY ts", TimeContract("external", "ts", punctuation=Column("ts"))),
        (
            "TIMESTAMP BY ts ORDERED PARTITIONED BY (K, a)",
            TimeContract("external", "ts", partitions=("k", "a")),
        ),
        (
            "TIMESTAMP BY ts ORDERED ETS EVERY INTERVAL 10 MILLISECONDS SKEW 1 s",
            TimeContract("external", "ts", 0, "periodic", 1_000_000, every=10_000),
        ),
        ("INTERNAL TIMESTAMP AS ts ETS EVERY 1 s", TimeContract("internal", "ts", 0, "periodic", every=1_000_000)),
        (
            "TIMESTAMP BY ts ORDERED ETS ON DEMAND LULL INTERVAL 1 MINUTE",
            TimeContract("external", "ts", 0, "on_demand", lull=60_000_000),
        ),
        (
            "TIMESTAMP BY ts ORDERED ETS ON DEMAND LULL 1 MINUTE SKEW 1 s MAX FUTURE SKEW INTERVAL 5 MINUTES",
            TimeContract("external", "ts", 0, "on_demand", 1_000_000, lull=60_000_000, max_future_skew=300_000_000),
        ),
    ],
)
def test_the_time_clauses_become_a_contract(clauses: str, contract: TimeContract) -> None:
    assert stream(f"{COLUMNS} {clauses} FROM csv OPTIONS (path 'x')").time == contract


def test_a_promise_may_be_any_condition() -> None:
    promise = stream(f"{COLUMNS} TIMESTAMP BY ts PUNCTUATED BY a > 5 OR k = 'end' ETS NONE FROM csv").time.punctuation
    assert str(promise) == "((a > 5) OR (k = 'end'))"


def test_a_contract_names_the_columns_that_it_reads() -> None:
    clauses = "TIMESTAMP BY ts PUNCTUATED BY a > 5 PARTITIONED BY (k)"
    assert sorted(stream(f"{COLUMNS} {clauses} FROM csv").time.columns()) == ["a", "k", "ts"]


def test_a_watermark_in_the_column_list_is_disorder() -> None:
    found = stream("(ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) FROM csv")
    assert found.time == TimeContract("external", "ts", 5_000_000)


def test_all_types_and_their_other_names_are_known() -> None:
    found = stream(
        "(a BOOLEAN, b TINYINT, c SMALLINT, d INT, e INTEGER, f BIGINT, g LONG, h FLOAT, i DOUBLE, j STRING, "
        "k VARCHAR(20), l TEXT, m DATE, n TIMESTAMP) LATENT TIMESTAMP FROM csv"
    )
    expected = [
        pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int32(), pa.int64(), pa.int64(), pa.float32(), pa.float64(),
        pa.string(), pa.string(), pa.string(), pa.date32(), TIMESTAMP,
    ]  # fmt: skip
    assert found.schema.types == expected


def test_an_internal_time_column_is_added_when_it_is_not_declared() -> None:
    assert stream("(a INT) INTERNAL TIMESTAMP AS ts FROM csv").schema.names == ["a", "ts"]
    assert stream("(ts TIMESTAMP, a INT) INTERNAL TIMESTAMP AS ts FROM csv").schema.names == ["ts", "a"]


def test_connector_options_have_lower_case_keys_and_text_values() -> None:
    found = stream(f"{COLUMNS} LATENT TIMESTAMP FROM CSV OPTIONS (Path 'A b', header true, max.files = 3)")
    assert found.connector == Connector("csv", {"path": "A b", "header": "true", "max.files": "3"})


def test_replay_names_its_column_and_speed() -> None:
    assert stream(f"{COLUMNS} TIMESTAMP BY ts ORDERED FROM csv REPLAY BY ts SPEED 2.5").replay == Replay("ts", 2.5)
    assert stream(f"{COLUMNS} TIMESTAMP BY ts ORDERED FROM csv REPLAY BY ts").replay == Replay("ts", 1.0)


def test_clauses_stand_in_any_order() -> None:
    found = stream(f"{COLUMNS} FROM csv OPTIONS (path 'x') REPLAY BY ts ETS NONE TIMESTAMP BY ts ORDERED")
    assert found.time.column == "ts"


@pytest.mark.parametrize(
    ("declaration", "fact", "offending"),
    [
        (f"{COLUMNS} FROM csv", "no time", "s"),
        (f"{COLUMNS} TIMESTAMP BY a ORDERED FROM csv", "is INT, not TIMESTAMP", "a"),
        (f"{COLUMNS} TIMESTAMP BY tss ORDERED FROM csv", 'column "tss" does not exist', "tss"),
        (f"{COLUMNS} INTERNAL TIMESTAMP AS k FROM csv", "is STRING, not TIMESTAMP", "k"),
        (f"{COLUMNS} TIMESTAMP BY ts ORDERED LATENT TIMESTAMP FROM csv", "two clauses of the same kind", "LATENT"),
        (f"{COLUMNS} TIMESTAMP BY ts ORDERED", "no source", "s"),
        (f"{COLUMNS} TIMESTAMP BY ts ORDERED ETS ON DEMAND FROM csv", "needs a SKEW or a LULL", "ETS ON DEMAND"),
        (f"{COLUMNS} TIMESTAMP BY ts ORDERED ETS EVERY 1 s FROM csv", "ETS EVERY needs a SKEW", "ETS EVERY 1 s"),
        (f"{COLUMNS} TIMESTAMP BY ts DISORDER 5 s ETS ON DEMAND LULL 1 s FROM csv", "LULL is less than", "1 s"),
        (f"{COLUMNS} TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW 1 s SKEW 1 s FROM csv", "SKEW is given twice", "SKEW"),
        (f"{COLUMNS} INTERNAL TIMESTAMP AS at ETS EVERY 0 s FROM csv", "a positive interval", "0 s"),
        (f"{COLUMNS} LATENT TIMESTAMP ETS EVERY 1 s FROM csv", "latent timestamps need no ETS", "ETS EVERY 1 s"),
        (f"{COLUMNS} LATENT TIMESTAMP ETS ON DEMAND FROM csv", "latent timestamps need no ETS", "ETS ON DEMAND"),
        (f"{COLUMNS} LATENT TIMESTAMP ETS ON DEMAND LULL 1 s FROM csv", "LULL is for external", "1 s"),
        (f"{COLUMNS} LATENT TIMESTAMP MAX FUTURE SKEW 1 s FROM csv", "MAX FUTURE SKEW is for external", "1 s"),
        (f"{COLUMNS} LATENT TIMESTAMP PARTITIONED BY (k) FROM csv", "is for external", "PARTITIONED BY (k)"),
        (f"{COLUMNS} TIMESTAMP BY ts ORDERED MAX FUTURE SKEW -1 s FROM csv", "expected a length", "-"),
        (f"{COLUMNS} TIMESTAMP BY ts DISORDER 1.5 ROWS FROM csv", "a whole number", "1.5"),
        (
            f"{COLUMNS} TIMESTAMP BY ts PUNCTUATED BY a + 1 FROM csv",
            "takes a TIMESTAMP or a condition, not INT",
            "a + 1",
        ),
        (f"{COLUMNS} TIMESTAMP BY ts PUNCTUATED BY b FROM csv", 'column "b" does not exist', "b"),
        (
            f"{COLUMNS} TIMESTAMP BY ts DISORDER 9 ROWS PARTITIONED BY (k) FROM csv",
            "cannot be combined",
            "PARTITIONED BY (k)",
        ),
        (f"{COLUMNS} TIMESTAMP BY ts DISORDER 5 s ETS ON DEMAND SKEW 1 s FROM csv", "less than DISORDER", "1 s"),
        (f"{COLUMNS} LATENT TIMESTAMP ETS ON DEMAND SKEW 1 s FROM csv", "SKEW is for external", "1 s"),
        (f"{COLUMNS} LATENT TIMESTAMP PARTITIONED BY (b) FROM csv", 'column "b" does not exist', "b"),
        (f"{COLUMNS} LATENT TIMESTAMP UPDATE KEY (b) FROM csv", 'column "b" does not exist', "b"),
        (f"{COLUMNS} LATENT TIMESTAMP FROM csv REPLAY BY a", "is INT, not TIMESTAMP", "a"),
        (f"{COLUMNS} LATENT TIMESTAMP FROM csv REPLAY BY ts SPEED 0", 'SPEED cannot be "0"', "0"),
        (f"{COLUMNS} LATENT TIMESTAMP FROM csv OPTIONS (path 'a', PATH 'b')", "is given twice", "PATH"),
        ("(a INT, A INT) LATENT TIMESTAMP FROM csv", "declared twice", "A"),
        ("(a DECIMAL(3, 4)) LATENT TIMESTAMP FROM csv", 'type "DECIMAL(3, 4)" is unknown', "DECIMAL(3, 4)"),
        ("(__time INT) LATENT TIMESTAMP FROM csv", "reserved", "__time"),
        ("(a INT b INT) LATENT TIMESTAMP FROM csv", 'expected "," or ")"', "b"),
        ("(a INT LATENT TIMESTAMP FROM csv", '"(" is never closed', "("),
        ("(ts TIMESTAMP, WATERMARK FOR ts AS ts + 1) FROM csv", "a watermark must be", "WATERMARK FOR ts AS ts + 1"),
        ("(ts TIMESTAMP, WATERMARK FOR ts AS ts) LATENT TIMESTAMP FROM csv", "two times", "TIMESTAMP"),
        (f"{COLUMNS} TIMESTAMP BY ts ODERED FROM csv", "expected ORDERED, DISORDER", "ODERED"),
        (f"{COLUMNS} LATENT TIMESTAMP FORM csv", "a clause of CREATE STREAM", "FORM"),
    ],
)
def test_a_wrong_declaration_is_refused_at_its_place(declaration: str, fact: str, offending: str) -> None:
    error = refused(declaration)
    assert isinstance(error, QueryError)
    assert fact in error.fact
    assert error.place is not None and error.place.text == offending


# Further times, promises of groups, late rows

TIMES = "(k STRING, a INT, ended TIMESTAMP, started TIMESTAMP, seen TIMESTAMP)"


@pytest.mark.parametrize(
    ("clauses", "also"),
    [
        ("TIMESTAMP BY ended ORDERED ALSO BY started DISORDER INTERVAL 30 s", (("started", 30_000_000),)),
        ("TIMESTAMP BY ended DISORDER 5 s ALSO BY started ALSO BY SEEN ORDERED", (("started", 0), ("seen", 0))),
    ],
)
def test_a_stream_has_further_times(clauses: str, also: tuple[tuple[str, int], ...]) -> None:
    found = stream(f"{TIMES} {clauses} FROM csv").time
    assert (found.column, found.also) == ("ended", also)


def test_further_watermarks_are_further_times() -> None:
    watermarks = "WATERMARK FOR ended AS ended - INTERVAL 5 s, WATERMARK FOR started AS started"
    columns = f"{TIMES[:-1]}, {watermarks})"
    assert stream(f"{columns} FROM csv").time == TimeContract("external", "ended", 5_000_000, also=(("started", 0),))
    found = stream(f"{columns} TIMESTAMP BY seen ORDERED FROM csv").time
    assert (found.column, found.also) == ("seen", (("ended", 5_000_000), ("started", 0)))


def test_a_promise_may_be_per_group() -> None:
    found = stream(f"{TIMES} TIMESTAMP BY ended PUNCTUATED BY a > 5 PER (K, a) FROM csv").time
    assert found.per == ("k", "a")
    assert str(found.punctuation) == "(a > 5)"


@pytest.mark.parametrize(
    ("clauses", "fact", "offending"),
    [
        ("TIMESTAMP BY ended ORDERED ALSO BY k", "is STRING, not TIMESTAMP", "k"),
        ("TIMESTAMP BY ended ORDERED ALSO BY ended", "already a time of the stream", "ended"),
        ("TIMESTAMP BY ended ORDERED ALSO BY begun", 'column "begun" does not exist', "begun"),
        ("TIMESTAMP BY ended ORDERED ALSO BY started DISORDER 5 ROWS", "ALSO BY is an interval", "5"),
        ("LATENT TIMESTAMP ALSO BY started", "a clause of CREATE STREAM", "ALSO"),
        ("TIMESTAMP BY ended PUNCTUATED BY a > 5 PER (b)", 'column "b" does not exist', "b"),
        ("TIMESTAMP BY ended PUNCTUATED BY a > 5 PER (k) PARTITIONED BY (k)", "cannot be combined", "k"),
    ],
)
def test_wrong_times_and_promises_are_refused_at_their_place(clauses: str, fact: str, offending: str) -> None:
    error = refused(f"{TIMES} {clauses} FROM csv")
    assert fact in error.fact
    assert error.place is not None and error.place.text == offending


LATE_STREAM = "CREATE STREAM s (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED LATE INTO s_late FROM csv;"


def test_late_rows_can_be_read_as_a_stream_without_a_time() -> None:
    found = parse_network(f"{LATE_STREAM} SELECT v FROM S_LATE WHERE v > 1").queries[0].root
    assert isinstance(found, Project) and isinstance(found.input, Filter)
    assert found.input.input == Scan(
        stream("(v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED LATE INTO s_late FROM csv"), LATE
    )
    with pytest.raises(QueryError, match="ordered by its time"):
        parse_network(f"{LATE_STREAM} SELECT v FROM s_late ORDER BY ts")


def test_late_rows_go_to_the_sink_of_their_name() -> None:
    sink = "CREATE SINK s_late TO csv OPTIONS (path 'late');"
    implied, query = parse_network(f"{LATE_STREAM}{sink} CREATE QUERY q AS SELECT v FROM s").queries
    assert (implied.name, implied.sink.connector.format, query.name) == ("s_late", "csv", "q")
    assert isinstance(implied.root, Scan) and implied.root.outlet == LATE
    read = "SELECT v FROM s; CREATE QUERY l INTO s_late AS SELECT v FROM s_late"
    assert [each.name for each in parse_network(f"{LATE_STREAM}{sink}{read}").queries] == ["query_1", "l"]
    assert parse_network(LATE_STREAM + sink).queries == ()


@pytest.mark.parametrize(
    "text",
    [
        LATE_STREAM + "CREATE STREAM s_late (v INT) LATENT TIMESTAMP FROM csv",
        LATE_STREAM + "CREATE QUERY s_late AS SELECT v FROM s",
        LATE_STREAM + "CREATE STREAM t (v INT) LATENT TIMESTAMP LATE INTO S_late FROM csv",
    ],
)
def test_the_name_of_late_rows_is_taken(text: str) -> None:
    with pytest.raises(QueryError, match="is declared twice"):
        parse_network(text)


QUARANTINE_STREAM = "CREATE STREAM s (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED QUARANTINE INTO bad FROM csv;"


def test_quarantined_rows_can_be_read_with_columns_of_their_own() -> None:
    network = parse_network(QUARANTINE_STREAM + "CREATE QUERY q AS SELECT * FROM bad")
    (query,) = network.queries
    assert query.root.schema.names == ["raw", "file", "line", "reason"]
    # What is wrong with a row may be in any column.
    assert physical(network).columns_read("s") == ["v", "ts"]


def test_quarantined_rows_go_to_the_sink_of_their_name_beside_late_ones() -> None:
    stream = QUARANTINE_STREAM.replace("FROM", "LATE INTO late FROM")
    sinks = "CREATE SINK bad TO memory; CREATE SINK late TO console;"
    network = parse_network(stream + sinks + "CREATE QUERY q AS SELECT v FROM s")
    assert {each.name: each.sink.name for each in network.queries} == {"late": "late", "bad": "bad", "q": "q"}


def test_the_name_of_quarantined_rows_is_taken() -> None:
    with pytest.raises(QueryError) as raised:
        parse_network(QUARANTINE_STREAM + "CREATE STREAM bad (v INT) LATENT TIMESTAMP FROM csv; SELECT v FROM s")
    assert raised.value.fact == '"bad" is declared twice' and "QUARANTINE INTO" in raised.value.hint
