"""Rows of PostgreSQL as a table has them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import millrace as mr
from millrace.connectors.postgres.table_rows import table_rows
from millrace.errors import MillraceError, RequestError, RunError
from millrace.kernel.elements import TIMESTAMP
from tests.e2e.commands import wait_for
from tests.postgres import database

pytestmark = pytest.mark.slow

COLUMNS = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("ok", pa.bool_()),
        ("price", pa.decimal128(10, 2)),
        ("rate", pa.float64()),
        ("day", pa.date32()),
        ("ts", TIMESTAMP),
        ("local", TIMESTAMP),
        ("raw", pa.binary()),
    ]
)
TIME = datetime(2024, 1, 1, 12, 0, 0, 5, UTC)


@pytest.fixture(scope="module")
def dsn(postgres: str) -> str:
    dsn, plain = database(postgres, "tables"), TIME.replace(tzinfo=None)
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "CREATE TABLE things (raw bytea, ts timestamptz, local timestamp, day date, rate float8, price numeric,"
            " ok bool, name text, id bigint, more int)"
        )
        insert = "INSERT INTO things (id, name, ok, price, rate, day, ts, local, raw) VALUES (" + "%s, " * 8 + "%s)"
        first = (1, 'a,"b"\n', True, Decimal("1.50"), 1e-300, date(1960, 1, 1), TIME, plain, b"\x00\\")
        connection.execute(insert, first)
        connection.execute(insert, (2, "", False, None, float("nan"), None, None, None, b""))
        connection.execute(insert, (3, *[None] * 8))
    return dsn


def test_every_value_is_read_as_it_is(dsn: str) -> None:
    first, second, third = table_rows({"dsn": dsn}, COLUMNS, "things").to_pylist()
    assert list(first.values()) == [
        1,
        'a,"b"\n',
        True,
        Decimal("1.50"),
        1e-300,
        date(1960, 1, 1),
        TIME,
        TIME,
        b"\x00\\",
    ]
    assert str(list(second.values())) == "[2, '', False, None, nan, None, None, None, b'']"
    assert set(third.values()) == {3, None}


def test_a_query_is_read_and_one_without_rows_is_empty(dsn: str) -> None:
    schema = pa.schema([("n", pa.int64())])
    assert table_rows({"dsn": dsn, "query": "SELECT count(*) AS n FROM things"}, schema, "t").to_pylist() == [{"n": 3}]
    assert table_rows({"dsn": dsn, "query": "SELECT 1 AS n LIMIT 0"}, schema, "t").num_rows == 0


@pytest.mark.parametrize(
    ("options", "columns", "fact"),
    [
        ({"table": "nowhere"}, {"id": pa.int32()}, 'relation "nowhere" does not exist'),
        ({}, {"idd": pa.int32()}, 'column "idd" does not exist'),
        ({}, {"price": pa.int32()}, "it does not fit its columns"),
        ({"tabel": "x"}, {"id": pa.int32()}, 'PostgreSQL has no option "tabel"'),
        ({"table": "a", "query": "b"}, {"id": pa.int32()}, "the options name a table and a query"),
        ({}, {"id": pa.list_(pa.int32())}, r'column "id" is ARRAY<INT>, which is not read from PostgreSQL'),
    ],
)
def test_what_cannot_be_read_is_refused(
    dsn: str, options: dict[str, str], columns: dict[str, pa.DataType], fact: str
) -> None:
    with pytest.raises(MillraceError, match=fact):
        table_rows({"dsn": dsn, **options}, pa.schema(columns), "things")


def test_a_join_meets_the_table_of_a_server_and_its_next_version(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE users (id int PRIMARY KEY, name text); INSERT INTO users VALUES (1, 'one')")
    net, clicks = mr.Network(), mr.Pushed()
    net.stream("clicks", "id INT, ts TIMESTAMP", time="ts", source=clicks)
    net.sql(f"CREATE TABLE users (id INT PRIMARY KEY, name STRING) FROM postgres OPTIONS (dsn '{dsn}')")
    net.sql("CREATE QUERY q AS SELECT c.id, u.name FROM clicks c LEFT JOIN users u ON c.id = u.id")
    handle = net.run(on="local")
    clicks.push([{"id": 1, "ts": datetime(2024, 1, 1, tzinfo=UTC)}])
    wait_for(lambda: handle.results("q").num_rows == 1)
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE users SET name = 'first'")
    handle.refresh_table("users")
    clicks.push([{"id": 1, "ts": datetime(2024, 1, 2, tzinfo=UTC)}])
    wait_for(lambda: handle.results("q").num_rows == 2)
    assert handle.stop().results("q").column("name").to_pylist() == ["one", "first"]


def test_a_server_that_is_not_there_lets_no_run_begin(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,ts\n1,2024-01-01\n")
    net = mr.Network()
    net.sql(f"""
        CREATE STREAM s (id INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path '{tmp_path}/in.csv');
        CREATE TABLE t (id INT PRIMARY KEY) FROM postgres OPTIONS (host '{tmp_path}', user 'me');
        CREATE QUERY q AS SELECT s.id FROM s JOIN t ON s.id = t.id;
    """)
    with pytest.raises(RunError, match='table "t" cannot be read: PostgreSQL does not answer'):
        net.run(on="local", until="end")


def test_a_password_in_plain_is_refused() -> None:
    with pytest.raises(RequestError, match='the address in the option "dsn" has a secret in plain'):
        mr.Network().sql("CREATE TABLE t (id INT) FROM postgres OPTIONS (dsn 'host=db password=hunter2')")
