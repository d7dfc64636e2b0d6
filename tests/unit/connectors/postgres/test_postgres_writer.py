"""The writer of PostgreSQL against a real server: what a table holds after epochs, repeated, superseded and refused."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from millrace.connectors.postgres.postgres_writer import PostgresWriter
from millrace.errors import CheckpointError, RequestError, RunError
from millrace.kernel.elements import INTERVAL, MONTHS, TIMESTAMP
from tests.postgres import database, fetched

pytestmark = pytest.mark.slow

KEYED = pa.schema([("k", pa.string()), ("n", pa.int32()), ("ts", TIMESTAMP), ("gone", pa.bool_())])
_NAMES = count()


@pytest.fixture
def dsn(postgres: str) -> str:
    return database(postgres, f"d{next(_NAMES)}")


def writer(dsn: str, schema: pa.Schema = KEYED, **options: str) -> PostgresWriter:
    return PostgresWriter({"dsn": dsn, "run": "r", "retry_seconds": "0", **options}, schema, "q")


def upserts(dsn: str, **options: str) -> PostgresWriter:
    return writer(dsn, mode="upsert", deleted="gone", **{"results_key": '["k"]', **options})


def rows(*given: tuple[Any, ...], schema: pa.Schema = KEYED) -> Iterator[pa.RecordBatch]:
    """Rows in two batches."""
    columns = [dict(zip(schema.names, row, strict=True)) for row in given]
    whole = pa.RecordBatch.from_pylist(columns, schema)
    return iter([whole.slice(0, 1), whole.slice(1)])


def at(second: int) -> datetime:
    return datetime(2024, 1, 1, 0, 0, second, tzinfo=UTC)


def test_an_epoch_is_appended_once_and_one_of_another_run_beside_it(dsn: str) -> None:
    for run in ("r", "r", "other"):
        writer(dsn, run=run).write(4, rows(("a", 1, at(1), None), ("b", None, None, True)))
    assert sorted(fetched(dsn, "SELECT k, n FROM q")) == [("a", 1), ("a", 1), ("b", None), ("b", None)]


def test_every_type_reaches_its_column_as_it_is(dsn: str) -> None:
    values: dict[str, tuple[pa.DataType, Any, Any]] = {
        "yes": (pa.bool_(), True, True),
        "small": (pa.int8(), -128, -128),
        "long": (pa.int64(), -(2**63), -(2**63)),
        "real": (pa.float32(), 0.5, 0.5),
        "double": (pa.float64(), 1e-300, 1e-300),
        "huge": (pa.float64(), float("-inf"), float("-inf")),
        "exact": (pa.decimal128(38, 4), Decimal("-1234567890.1234"), Decimal("-1234567890.1234")),
        'odd "name"': (pa.string(), 'a,"b"\n\\N\\.é', 'a,"b"\n\\N\\.é'),
        "nothing": (pa.string(), "", ""),
        "bytes": (pa.binary(), b"\x00\xff\\", b"\x00\xff\\"),
        "day": (pa.date32(), date(1969, 12, 31), date(1969, 12, 31)),
        "ts": (TIMESTAMP, at(1), at(1)),
        "micro": (TIMESTAMP, datetime(1901, 1, 1, 0, 0, 0, 1, UTC), datetime(1901, 1, 1, 0, 0, 0, 1, UTC)),
        "span": (INTERVAL, timedelta(days=-40, microseconds=5), timedelta(days=-40, microseconds=5)),
        "months": (MONTHS, timedelta(seconds=2), timedelta(days=60)),
        "list": (pa.list_(pa.int32()), [1, None], [1, None]),
        "struct": (pa.struct([("a", TIMESTAMP)]), {"a": at(2)}, {"a": "2024-01-01 00:00:02"}),
        "map": (pa.map_(pa.string(), pa.bool_()), [("x", True)], {"x": True}),
    }
    schema = pa.schema([(name, kind) for name, (kind, _, _) in values.items()])
    given = tuple(each for _, each, _ in values.values())
    writer(dsn, schema).write(0, rows(given, (None,) * len(given), schema=schema))
    found, empty = fetched(dsn, "SELECT * FROM q ORDER BY yes NULLS LAST")
    assert dict(zip(values, found, strict=True)) == {name: each for name, (_, _, each) in values.items()}
    assert set(empty) == {None}


def test_the_last_row_of_a_key_counts_and_a_deleted_one_goes(dsn: str) -> None:
    one = upserts(dsn)
    one.write(1, rows(("a", 1, at(1), False), ("b", 1, at(1), None), (None, 1, at(1), False), ("a", 2, at(1), False)))
    one.write(2, rows(("b", 2, at(2), True), ("c", 1, at(2), True), (None, 3, at(2), False)))
    assert fetched(dsn, "SELECT k, n FROM q ORDER BY k") == [("a", 2), (None, 3)]
    one.write(3, rows((None, 3, at(2), True), ("b", 5, at(3), False), ("a", 3, at(3), True), ("a", 4, at(3), False)))
    assert fetched(dsn, "SELECT k, n FROM q ORDER BY k") == [("a", 4), ("b", 5)]
    columns = "SELECT attname FROM pg_attribute WHERE attrelid = 'q'::regclass AND attnum > 0 ORDER BY attnum"
    assert fetched(dsn, columns) == [("k",), ("n",), ("ts",)]


def test_what_is_superseded_never_overwrites_what_is_newer(dsn: str) -> None:
    one = upserts(dsn, version="ts")
    one.write(1, rows(("a", 2, at(2), False), ("a", 1, at(1), False), ("b", 1, at(5), False)))
    one.write(2, rows(("a", 0, at(0), False), ("b", 0, at(4), True), ("c", 1, None, False)))
    assert fetched(dsn, "SELECT k, n FROM q ORDER BY k") == [("a", 2), ("b", 1), ("c", 1)]
    # A run that begins anew, from rows that are long superseded, and then as far as before.
    other = upserts(dsn, version="ts", run="anew")
    other.write(0, rows(("a", 1, at(1), False), ("c", 2, at(1), False)))
    other.write(1, rows(("a", 9, at(2), False), ("b", 9, at(5), True), ("c", 7, None, False)))
    assert fetched(dsn, "SELECT k, n FROM q ORDER BY k") == [("a", 9), ("c", 2)]


def test_an_epoch_that_was_committed_unseen_is_not_upserted_again(dsn: str) -> None:
    upserts(dsn).write(1, rows(("a", 1, at(1), False), ("b", 1, at(1), False)))
    with psycopg.connect(dsn) as connection:
        connection.execute("DELETE FROM q WHERE k = 'a'")
    upserts(dsn).write(1, rows(("a", 1, at(1), False), ("b", 1, at(1), False)))
    assert fetched(dsn, "SELECT k FROM q") == [("b",)]


def test_an_epoch_before_the_last_is_that_of_an_old_copy(dsn: str) -> None:
    writer(dsn).write(7, rows(("a", 1, at(1), None)))
    with pytest.raises(CheckpointError, match="has taken epoch 7 of this checkpoint already"):
        writer(dsn).write(6, rows(("b", 1, at(1), None)))


def test_a_refused_row_leaves_nothing_of_its_epoch_and_the_epoch_can_be_given_again(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE q (k text, n int CHECK (n < 5), ts timestamptz, gone boolean)")
    one = writer(dsn)
    with pytest.raises(RunError, match=r"PostgreSQL refused: new row .* violates check constraint"):
        one.write(1, rows(("a", 1, at(1), None), ("b", 7, at(1), None)))
    assert fetched(dsn, "SELECT * FROM q") == fetched(dsn, "SELECT * FROM millrace_ledger") == []
    one.write(1, rows(("a", 1, at(1), None), ("b", 4, at(1), None)))
    assert fetched(dsn, "SELECT n FROM q ORDER BY n") == [(1,), (4,)]


@pytest.mark.parametrize(
    ("table", "fact"),
    [
        ("k text, n int, gone boolean", 'it has no column "ts"'),
        ("k text, n smallint, ts timestamptz", 'its column "n" is smallint, which does not hold every INT'),
        ("k text, n int, ts timestamptz(0)", 'its column "ts" is timestamp\\(0\\) with time zone'),
        ("k bytea, n int, ts timestamptz", 'its column "k" is bytea, which does not hold every STRING'),
        ("k text, n int, ts timestamptz, more int NOT NULL", 'its column "more" takes no null'),
        ("k text, n int, ts timestamptz", "it has no unique index on \\(k\\)"),
        ("k text UNIQUE, n int, ts timestamptz", "it takes rows with nulls in \\(k\\) twice"),
    ],
)
def test_a_table_of_another_shape_is_refused_before_anything_is_written(dsn: str, table: str, fact: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(f"CREATE TABLE q ({table})")
    options = {"dsn": dsn, "mode": "upsert", "results_key": '["k"]', "deleted": "gone"}
    with pytest.raises(RequestError, match=f'the table "q" does not take the results: {fact}'):
        PostgresWriter.check(options, KEYED, "q")


def test_a_table_that_is_wide_enough_is_taken_and_its_types_are_kept(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TYPE letter AS ENUM ('a', 'b')")
        connection.execute("CREATE SCHEMA s")
        connection.execute(
            "CREATE TABLE s.t (id serial, k letter PRIMARY KEY, n numeric, ts timestamp, more int DEFAULT 5)"
        )
    options = {"dsn": dsn, "mode": "upsert", "key": "k", "version": "ts", "deleted": "gone", "table": "s.t"}
    PostgresWriter.check(options, KEYED, "q")
    writer(**{**options, "run": "r"}).write(1, rows(("a", 1, at(1), False), ("b", 2, at(1), True)))
    assert fetched(dsn, "SELECT k, n, ts, more FROM s.t") == [("a", 1, datetime(2024, 1, 1, 0, 0, 1), 5)]


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"tabel": "x"}, 'no option "tabel"'),
        ({"mode": "merge"}, 'option "mode" does not take "merge"'),
        ({"key": "k"}, 'option "key" is for upserts'),
        ({"mode": "upsert"}, "nothing tells the results of the query apart"),
        ({"mode": "upsert", "key": "k"}, r"several results of one key \(k\), in any order"),
        ({"mode": "upsert", "key": "n", "results_key": '["k"]'}, r"several results of one key \(n\), in any order"),
        ({"mode": "upsert", "key": "kk", "version": "ts"}, 'names "kk", which the results do not have'),
        ({"mode": "upsert", "key": "k", "version": "k"}, '"k" is a part of the key'),
        ({"mode": "upsert", "results_key": '["k"]', "deleted": "n"}, 'names "n", which is no BOOLEAN'),
        ({"retry_seconds": "soon"}, 'option "retry_seconds" does not take "soon"'),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], fact: str) -> None:
    with pytest.raises(RequestError, match=fact):
        PostgresWriter.check({"dsn": "", **options}, KEYED, "q")


def test_a_wider_key_than_that_of_the_query_needs_no_version() -> None:
    options = {"mode": "upsert", "key": "n, k", "results_key": json.dumps(["k"])}
    assert PostgresWriter({**options, "run": "r"}, KEYED, "q").options.key == ("n", "k")


def test_a_server_that_is_not_there_is_named(tmp_path: Any) -> None:
    with pytest.raises(RunError, match=r"PostgreSQL does not answer: .*nowhere"):
        PostgresWriter.check({"host": str(tmp_path / "nowhere"), "user": "me"}, KEYED, "q")


def test_an_epoch_waits_for_a_server_that_drops_its_connections(dsn: str) -> None:
    one = writer(dsn, retry_seconds="300")
    one.write(1, rows(("a", 1, at(1), None)))
    with psycopg.connect(dsn, autocommit=True) as connection:
        blocker = connection.cursor()
        blocker.execute("BEGIN; LOCK TABLE q")
        waiting = threading.Thread(target=one.write, args=(2, rows(("b", 2, at(2), None))))
        waiting.start()
        time.sleep(0.2)
        killed = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'millrace'"
        assert fetched(dsn, killed) == [(True,)]
        blocker.execute("COMMIT")
        waiting.join(300)
    assert fetched(dsn, "SELECT k, n FROM q ORDER BY k") == [("a", 1), ("b", 2)]
