"""What goes wrong with PostgreSQL in the midst of a run: an error that says what to do, and nothing lost or twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import millrace as mr
from millrace.connectors.postgres.postgres_writer import PostgresWriter
from millrace.errors import RunError
from tests.postgres import database, fetched, outage

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int32())])
_NAMES = count()


@pytest.fixture
def dsn(postgres: str) -> str:
    return database(postgres, f"f{next(_NAMES)}")


_OPEN: list[PostgresWriter] = []


@pytest.fixture(autouse=True)
def close_writers() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


def writer(dsn: str, **options: str) -> PostgresWriter:
    _OPEN.append(PostgresWriter({"dsn": dsn, "run": "r", "retry_seconds": "0", **options}, SCHEMA, "q"))
    return _OPEN[-1]


def rows(*given: tuple[str, int]) -> Any:
    return iter([pa.RecordBatch.from_pylist([{"k": k, "n": n} for k, n in given], SCHEMA)])


def execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def found(dsn: str) -> list[tuple[Any, ...]]:
    return fetched(dsn, "SELECT k, n FROM q ORDER BY k, n")


def test_a_server_that_goes_down_is_waited_for_and_then_an_error(dsn: str) -> None:
    patient, hasty = writer(dsn, retry_seconds="300"), writer(dsn, run="h")
    patient.write(0, rows(("a", 1)))
    hasty.write(0, rows(("b", 1)))
    with outage(dsn):
        waiting = threading.Thread(target=patient.write, args=(1, rows(("a", 2))))
        waiting.start()
        with pytest.raises(RunError, match="PostgreSQL does not answer") as caught:
            hasty.write(1, rows(("b", 2)))
        assert "start again on the same --checkpoint" in caught.value.hint
        time.sleep(0.2)
        assert waiting.is_alive()
    waiting.join(300)
    hasty.write(1, rows(("b", 2)))
    assert found(dsn) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("change", "back", "fact"),
    [
        ("DROP COLUMN n", "ADD COLUMN n int", 'column "n" of relation "q" does not exist'),
        ("ALTER COLUMN n TYPE smallint", "ALTER COLUMN n TYPE int", "out of range for type smallint"),
        ("ADD CONSTRAINT small CHECK (n < 9)", "DROP CONSTRAINT small", 'violates check constraint "small"'),
        ("RENAME TO other", "", 'relation "q" does not exist'),
    ],
)
def test_a_table_that_changes_while_a_run_writes_to_it(dsn: str, change: str, back: str, fact: str) -> None:
    one = writer(dsn)
    one.write(0, rows(("a", 1)))
    execute(dsn, f"ALTER TABLE q {change}")
    with pytest.raises(RunError, match=fact) as caught:
        one.write(1, rows(("b", 100_000)))
    assert "start again on the same --checkpoint" in caught.value.hint
    execute(dsn, f"ALTER TABLE q {back}" if back else "ALTER TABLE other RENAME TO q")
    one.write(1, rows(("b", 100_000)))
    one.write(1, rows(("b", 100_000)))
    assert [k for k, _ in found(dsn)] == ["a", "b"]
    assert found(dsn)[1] == ("b", 100_000)


def test_a_right_that_is_missing_is_named(dsn: str) -> None:
    user = f"clerk{next(_NAMES)}"
    execute(dsn, f"CREATE ROLE {user} LOGIN", f"GRANT CREATE ON SCHEMA public TO {user}")
    one = writer(dsn.replace("user=postgres", f"user={user}"))
    one.write(0, rows(("a", 1)))
    execute(dsn, "ALTER TABLE q OWNER TO postgres")
    with pytest.raises(RunError, match="permission denied for table q") as caught:
        one.write(1, rows(("b", 2)))
    assert "GRANT" in caught.value.hint
    execute(dsn, f"GRANT SELECT, INSERT ON q TO {user}")
    one.write(1, rows(("b", 2)))
    assert found(dsn) == [("a", 1), ("b", 2)]


def test_an_epoch_that_was_under_way_goes_to_the_address_that_the_sink_has_now(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.csv").write_text("k,n,ts\na,1,2024-01-01 00:00:00\n")

    def run(address: str) -> None:
        net = mr.Network().sql(
            "CREATE STREAM s (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED "
            f"FROM csv OPTIONS (path '{tmp_path / 'in'}');"
            f"CREATE SINK p TO postgres OPTIONS (dsn '{address}', retry_seconds '0');"
            "CREATE QUERY q INTO p AS SELECT k, n FROM s;"
        )
        net.run(on="local", until="available", checkpoint=tmp_path / "state")

    user = f"gone{next(_NAMES)}"
    execute(dsn, f"CREATE ROLE {user} LOGIN", f"GRANT CREATE ON SCHEMA public TO {user}")
    gone = dsn.replace("user=postgres", f"user={user}")
    run(gone)
    (tmp_path / "in" / "1.csv").write_text("k,n,ts\nb,2,2024-01-01 00:00:01\n")
    execute(dsn, "ALTER TABLE q OWNER TO postgres", f"GRANT SELECT ON q TO {user}")
    with pytest.raises(RunError, match="permission denied"):
        run(gone)
    execute(dsn, f"ALTER TABLE millrace_ledger OWNER TO postgres; ALTER ROLE {user} NOLOGIN")
    run(dsn)
    assert found(dsn) == [("a", 1), ("b", 2)]
