"""Results into a table of PostgreSQL, each once: the rows of an epoch and the note that it has been taken are one
transaction.

Rules:
- The ledger has the last epoch of each run and query. An epoch that it has is not written again. An earlier one is an
  error: the checkpoint is an old copy, and its rows would be lost.
- Upserts go through a staging table that ends with the transaction. Of the rows of a key the newest counts, by the
  version if there is one, else the last. A row never takes the place of one with a greater version.
- A row that says that it is deleted removes the row of its key.
- While the server does not answer, an epoch is tried again, for as long as the options say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millrace.connectors.postgres.column_types import copy_text
from millrace.connectors.postgres.connection import CONNECTION_OPTIONS, connect, driver, fault, table_name
from millrace.connectors.postgres.sink_options import SinkOptions, sink_options
from millrace.connectors.postgres.table_shape import check_table, make_table
from millrace.connectors.retries import Retries
from millrace.errors import CheckpointError, RunError

if TYPE_CHECKING:
    from psycopg import Connection, Cursor, sql

_LEDGER = """CREATE TABLE IF NOT EXISTS millrace_ledger
    (run text, query text, epoch bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (run, query))"""
_TAKE = """INSERT INTO millrace_ledger AS known (run, query, epoch) VALUES (%(run)s, %(query)s, %(epoch)s)
    ON CONFLICT (run, query) DO UPDATE SET epoch = excluded.epoch, at = now() WHERE known.epoch < excluded.epoch"""
_TAKEN = "SELECT epoch FROM millrace_ledger WHERE run = %(run)s AND query = %(query)s"
_STAGED, _PLACE = "millrace_staged", "millrace_place"


class PostgresWriter:
    """Appends or upserts the results of a query; see `sink_options` for the options."""

    def __init__(self, options: Mapping[str, str], schema: pa.Schema, query: str) -> None:
        self.given, self.schema = options, schema
        self.options = sink_options(options, schema, query)
        self.ledger = {"run": options["run"], "query": query}
        self.connection: Connection[Any] | None = None

    @staticmethod
    def check(options: Mapping[str, str], schema: pa.Schema, query: str) -> None:
        """Refuse wrong options, a server that does not answer, and a table of another shape."""
        checked = sink_options(options, schema, query)
        with connect(options) as connection:
            check_table(connection, checked, schema)

    @staticmethod
    def reaches(option: str) -> bool:
        """True if an option says how the server is reached."""
        return option in (*CONNECTION_OPTIONS, "retry_seconds")

    def write(self, epoch: int, batches: Iterator[pa.RecordBatch]) -> None:
        psycopg, rows, retries = driver(), list(batches), Retries(self.options.retry_seconds)
        while True:
            try:
                self._write(epoch, rows)
                return
            except (psycopg.Error, RunError) as error:
                cause = error if isinstance(error, psycopg.Error) else error.__cause__
                self.close()
                if not isinstance(cause, psycopg.OperationalError) or retries.are_over:
                    raise (fault(cause) if isinstance(cause, psycopg.Error) else error) from error
            retries.pause()

    def _write(self, epoch: int, batches: Sequence[pa.RecordBatch]) -> None:
        connection = self._connected()
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute(_TAKE, {**self.ledger, "epoch": epoch})
            if not cursor.rowcount:
                self._refuse_old_copy(cursor, epoch)
            elif self.options.key:
                self.upsert(cursor, batches)
            else:
                self.copy(cursor, table_name(self.options.table), batches)

    def _connected(self) -> Connection[Any]:
        if self.connection is None:
            self.connection = connect(self.given)
            make_table(self.connection, self.options, self.schema, _LEDGER)
        return self.connection

    def _refuse_old_copy(self, cursor: Cursor[Any], epoch: int) -> None:
        cursor.execute(_TAKEN, self.ledger)
        row = cursor.fetchone()
        if row is not None and row[0] > epoch:
            raise CheckpointError(
                f"the store has taken epoch {row[0]} of this checkpoint already",
                hint="The checkpoint is an old copy, or another run goes on from it: use the newest one.",
            )

    def copy(self, cursor: Cursor[Any], table: sql.Composable, batches: Iterable[pa.RecordBatch]) -> None:
        """Send rows to a table."""
        from psycopg import sql

        statement: sql.Composed | None = None
        for batch in batches:
            names = sql.SQL(", ").join(map(sql.Identifier, batch.schema.names))
            statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(table, names)
            with cursor.copy(statement) as copy:
                copy.write(copy_text(batch))

    def upsert(self, cursor: Cursor[Any], batches: Sequence[pa.RecordBatch]) -> None:
        """Let rows take the place of those with the same key, through a staging table."""
        statements = UpsertStatements(self.options, self.options.stored(self.schema).names)
        cursor.execute(statements.staging())
        self.copy(cursor, statements.staged, _numbered(batches))
        for statement in statements.merge():
            cursor.execute(statement)

    def close(self) -> None:
        connection, self.connection = self.connection, None
        with suppress(Exception):
            if connection is not None:
                connection.close()


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows with their place among all rows of the epoch."""
    before = 0
    for batch in batches:
        places = pa.array(range(before, before + batch.num_rows), pa.int64())
        before += batch.num_rows
        yield batch.append_column(_PLACE, places)


class UpsertStatements:
    """The statements by which staged rows are merged into a table."""

    def __init__(self, options: SinkOptions, names: Sequence[str]) -> None:
        from psycopg import sql

        self.options, self.names = options, names
        self.target, self.staged = table_name(options.table), sql.Identifier("pg_temp", _STAGED)

    def staging(self) -> sql.Composed:
        """Make the staging table, with the types of the target."""
        from psycopg import sql

        deleted = [] if self.options.deleted is None else [_as("NULL::boolean", self.options.deleted)]
        columns = [_as("NULL::bigint", _PLACE), *map(sql.Identifier, self.names), *deleted]
        return sql.SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA").format(
            sql.Identifier(_STAGED), sql.SQL(", ").join(columns), self.target
        )

    def merge(self) -> Iterator[sql.Composed]:
        """Delete what is deleted, and put the newest row of each key that is left."""
        if self.options.deleted is not None:
            yield self._deletion("=", sql_or="")
            # An index does not find nulls by a comparison that holds for them; such keys are few.
            nulls = " OR ".join("newest.{} IS NULL" for _ in self.options.key)
            yield self._deletion("IS NOT DISTINCT FROM", sql_or=f" AND ({nulls})")
        yield self._insertion()

    def _newest(self) -> sql.Composed:
        from psycopg import sql

        key = sql.SQL(", ").join(map(sql.Identifier, self.options.key))
        version = self.options.version
        order = [] if version is None else [sql.SQL("{} DESC NULLS LAST").format(sql.Identifier(version))]
        latest = sql.SQL(", ").join([key, *order, sql.SQL("{} DESC").format(sql.Identifier(_PLACE))])
        return sql.SQL("(SELECT DISTINCT ON ({}) * FROM {} ORDER BY {})").format(key, self.staged, latest)

    def _not_older(self, known: str, given: str) -> sql.Composed:
        """The condition that a known row is not newer than a given one."""
        from psycopg import sql

        if self.options.version is None:
            return sql.SQL("TRUE").format()
        names = {
            "known": sql.Identifier(known, self.options.version),
            "given": sql.Identifier(given, self.options.version),
        }
        return sql.SQL("({known} IS NULL OR {known} <= {given})").format(**names)

    def _deletion(self, equals: str, sql_or: str) -> sql.Composed:
        from psycopg import sql

        key = [sql.Identifier(name) for name in self.options.key]
        same = sql.SQL(" AND ").join(
            sql.SQL(f"known.{{name}} {equals} newest.{{name}}").format(name=name) for name in key
        )
        nulls = sql.SQL(sql_or).format(*key) if sql_or else sql.SQL("").format()
        return sql.SQL("DELETE FROM {} AS known USING {} AS newest WHERE newest.{} AND {} AND {}{}").format(
            self.target, self._newest(), sql.Identifier(self.options.deleted or ""), same,
            self._not_older("known", "newest"), nulls,
        )  # fmt: skip

    def _insertion(self) -> sql.Composed:
        from psycopg import sql

        names = sql.SQL(", ").join(map(sql.Identifier, self.names))
        deleted = self.options.deleted
        stays = sql.SQL("TRUE") if deleted is None else sql.SQL("{} IS NOT TRUE").format(sql.Identifier(deleted))
        others = [name for name in self.names if name not in self.options.key]
        assigned = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in others)
        action = sql.SQL("UPDATE SET {} WHERE {}").format(assigned, self._not_older("known", "excluded"))
        into = "INSERT INTO {} AS known ({}) SELECT {} FROM {} AS newest WHERE {} ON CONFLICT ({}) DO {}"
        return sql.SQL(into).format(
            self.target, names, names, self._newest(), stays,
            sql.SQL(", ").join(map(sql.Identifier, self.options.key)), action if others else sql.SQL("NOTHING"),
        )  # fmt: skip


def _as(expression: str, name: str) -> sql.Composable:
    from psycopg import sql

    return sql.SQL("{} AS {}").format(sql.SQL(expression), sql.Identifier(name))
