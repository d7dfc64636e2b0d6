"""The rows of a table or query of PostgreSQL, for lookup joins: read as a whole, in one statement.

Rules:
- Rows come by `COPY`, as text. A value that is not of the declared type is an error: nothing is rounded or cut off.
- Times without a zone are UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from millrace.connectors.postgres.connection import CONNECTION_OPTIONS, connect, faults, table_name
from millrace.errors import RequestError, RunError, did_you_mean, listed
from millrace.kernel.columns.functions.encodings import ENCODING_FUNCTIONS
from millrace.kernel.columns.sql_types import sql_name

if TYPE_CHECKING:
    from psycopg import sql

_KNOWN = (*CONNECTION_OPTIONS, "table", "query")
_SETTINGS = "SET TIME ZONE 'UTC'; SET DateStyle = 'ISO'; SET bytea_output = 'hex'; SET extra_float_digits = 1"


def table_rows(options: Mapping[str, str], schema: pa.Schema, name: str) -> pa.Table:
    """All rows of the table, or the query, that the options name; by default of the table `name`."""
    check_table_options(options, schema)
    with connect(options) as connection, faults(hint="Mend the declaration of the table, or the rights of the user."):
        connection.execute(_SETTINGS)
        text = pa.BufferOutputStream()
        with connection.cursor().copy(_selection(options, schema, name)) as copy:
            for block in copy:
                text.write(block)
    return _parsed(text.getvalue(), schema)


def check_table_options(options: Mapping[str, str], schema: pa.Schema) -> None:
    """Refuse options that a table in PostgreSQL does not have, and columns that cannot be read."""
    for name in options:
        if name not in _KNOWN:
            raise RequestError(
                f'PostgreSQL has no option "{name}" for a table',
                hint=f"{did_you_mean(name, _KNOWN)}The options are {listed(_KNOWN)}.",
            )
    if "table" in options and "query" in options:
        raise RequestError("the options name a table and a query", hint="Name one of them.")
    for field in schema:
        if pa.types.is_nested(field.type):
            raise RequestError(
                f'column "{field.name}" is {sql_name(field.type)}, which is not read from PostgreSQL',
                hint="Declare it as STRING, and read it with from_json in the query.",
            )


def _selection(options: Mapping[str, str], schema: pa.Schema, name: str) -> sql.Composed:
    from psycopg import sql

    columns = sql.SQL(", ").join(
        sql.SQL("{}::timestamptz" if pa.types.is_timestamp(each.type) else "{}").format(sql.Identifier(each.name))
        for each in schema
    )
    source: sql.Composable = table_name(options.get("table", name))
    if "query" in options:
        # The user's own text, as it is: it is run with the user's own rights.
        source = sql.SQL("({}) AS rows").format(sql.SQL(options["query"]))
    return sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT csv)").format(columns, source)


def _parsed(text: pa.Buffer, schema: pa.Schema) -> pa.Table:
    if not text.size:
        return schema.empty_table()
    read = {each.name: pa.string() if pa.types.is_binary(each.type) else each.type for each in schema}
    try:
        rows = pyarrow.csv.read_csv(
            pa.BufferReader(text),
            pyarrow.csv.ReadOptions(column_names=schema.names),
            pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            pyarrow.csv.ConvertOptions(
                column_types=read,
                null_values=[""],
                true_values=["t"],
                false_values=["f"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise RunError(f"it does not fit its columns: {error}", hint="Declare the types that it has.") from None
    for place, field in enumerate(schema):
        if pa.types.is_binary(field.type):
            digits = pc.utf8_slice_codeunits(rows.column(place).combine_chunks(), 2)
            rows = rows.set_column(place, field, ENCODING_FUNCTIONS["unhex"](digits))
    return rows
