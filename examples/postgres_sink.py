"""Results into PostgreSQL, each once, whatever happens to the run: the pattern for a sink of your own.

The rows of an epoch and the note that it has been taken are one transaction. If the run is killed before the commit,
nothing has happened; if it is killed after it, the note turns the second attempt away.

    python examples/postgres_sink.py "host=localhost user=me dbname=shop"

Needs psycopg 3. In SQL, with this file beside the queries:

    CREATE SINK s TO python OPTIONS (writer 'postgres_sink:PostgresWriter', dsn 'dbname=shop', table 'counts');
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

import psycopg
import pyarrow as pa
import pyarrow.csv
from psycopg import sql

import millrace as mr

LEDGER = """CREATE TABLE IF NOT EXISTS millrace_epochs
    (run text, query text, epoch bigint, at timestamptz DEFAULT now(), PRIMARY KEY (run, query, epoch))"""
TAKE = "INSERT INTO millrace_epochs (run, query, epoch) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
TYPES = {
    pa.bool_(): "boolean", pa.int8(): "smallint", pa.int16(): "smallint", pa.int32(): "integer", pa.int64(): "bigint",
    pa.float32(): "real", pa.float64(): "double precision", pa.string(): "text", pa.date32(): "date",
}  # fmt: skip


class PostgresWriter:
    """Appends to a table, which it creates. Options: `dsn`, as psycopg takes it, and `table`, by default the query."""

    def __init__(self, options: Mapping[str, str], schema: pa.Schema, query: str) -> None:
        self.run, self.query, self.schema = options["run"], query, schema
        self.table = sql.Identifier(*options.get("table", query).split("."))
        self.connection = psycopg.connect(options["dsn"], autocommit=True)
        self.connection.execute(LEDGER)
        columns = (sql.SQL("{} {}").format(sql.Identifier(each.name), sql.SQL(type_of(each.type))) for each in schema)
        create = sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})")
        self.connection.execute(create.format(self.table, sql.SQL(", ").join(columns)))

    def write(self, epoch: int, batches: Iterator[pa.RecordBatch]) -> None:
        with self.connection.transaction(), self.connection.cursor() as cursor:
            cursor.execute(TAKE, (self.run, self.query, epoch))
            if cursor.rowcount:
                self.copy(cursor, batches)

    def copy(self, cursor: psycopg.Cursor, batches: Iterator[pa.RecordBatch]) -> None:
        """Send the rows as CSV, in which null is nothing and every other value is in quotes."""
        layout = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid")
        names = sql.SQL(", ").join(map(sql.Identifier, self.schema.names))
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(self.table, names)
        with cursor.copy(statement) as copy:
            for batch in batches:
                text = pa.BufferOutputStream()
                pyarrow.csv.write_csv(batch, text, layout)
                copy.write(text.getvalue())

    def close(self) -> None:
        self.connection.close()


def type_of(kind: pa.DataType) -> str:
    """PostgreSQL's type for a column of results."""
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    return TYPES[kind]


def main(dsn: str) -> None:
    net = mr.Network()
    orders = net.stream(
        "orders", "id INT, item STRING, ts TIMESTAMP", time="ts", disorder="5 seconds",
        source="csv", path="examples/data/orders.csv",
    )  # fmt: skip
    counts = orders.window(range="1 minute", slide="1 minute").group_by("item").agg(n="count(*)")
    net.query("counts", counts, sink="python", writer="postgres_sink:PostgresWriter", dsn=dsn, table="item_counts")
    net.run(on="local", until="end")
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT item, n FROM item_counts ORDER BY window_start, item")
        print(*(f"{item}\t{n}" for item, n in found), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1])
