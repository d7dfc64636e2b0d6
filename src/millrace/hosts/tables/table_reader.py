"""The rows of a table, read as a whole from where it is declared to be.

Rules:
- A table that cannot be read, lacks a column, holds a malformed row, or breaks its primary key gives no version at all.
- A function of the user's own is called in the process that runs the network, once per version.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.connectors.fed_rows import as_rows
from millrace.connectors.files.file_reader import read_file
from millrace.connectors.files.input_files import list_files
from millrace.connectors.native import ITERABLE
from millrace.errors import MillraceError, RequestError, RunError, machine_fault
from millrace.kernel.columns.user_functions import found_at
from millrace.kernel.elements import integer_column
from millrace.kernel.joins.tables.table_index import HASH
from millrace.kernel.joins.tables.table_versions import as_stored
from millrace.plan.nodes.endpoints import Table
from millrace.secrets import resolved

_CHUNK = 1 << 18


def read_table(table: Table, feeds: Mapping[str, Any]) -> pa.Table:
    """All rows of a table as they are stored; refuses a table that breaks its declaration."""
    try:
        rows = _rows(table, feeds)
    except OSError as error:
        raise _unreadable(table, machine_fault(error) or RunError(str(error))) from error
    except MillraceError as error:
        raise _unreadable(table, error) from error
    for name in table.key:
        if rows.column(name).null_count:
            raise RunError(
                f'table "{table.name}" has a row without "{name}", which is part of its primary key',
                hint="Mend the row, or declare another PRIMARY KEY.",
            )
    kept = as_stored(rows, table.key)
    _check_key(table, kept)
    return kept


def _rows(table: Table, feeds: Mapping[str, Any]) -> pa.Table:
    connector, schema = table.connector, table.schema
    if table.name in feeds and connector.format == ITERABLE:
        return _of_python(feeds[table.name], table)
    if connector.format == ITERABLE:
        raise RequestError("its rows are given in Python, and none were", hint="Run the network from Python.")
    if connector.format == "python":
        place = connector.options.get("function")
        if not place:
            raise RequestError("it names no function", hint="Write OPTIONS (function 'package.module:function').")
        return _of_python(found_at(place, "its function", "'package.module:function'"), table)
    if connector.format == "postgres":
        # Imported where such a table is read: other runs need not load it.
        from millrace.connectors.postgres.table_rows import table_rows

        return table_rows(resolved(connector.options, f'table "{table.name}"'), schema, table.name)
    batches = [
        batch.rows
        for path in list_files(connector, table.name)
        for batch in read_file(Path(path), connector, schema, batch_rows=_CHUNK)
    ]
    return pa.Table.from_batches(batches, schema=schema)


def _of_python(source: Any, table: Table) -> pa.Table:
    """Rows that a program gives: a table, record batch or list of dictionaries, or what a function returns of it."""
    # A user's code may raise anything.
    try:
        given = source() if callable(source) else source
    except Exception as error:
        raise RunError(f"its function failed: {type(error).__name__}: {error}", hint="Mend the function.") from error
    return pa.Table.from_batches([as_rows(given, table.schema, table.name)], schema=table.schema)


def _check_key(table: Table, rows: pa.Table) -> None:
    """Refuse two rows of one primary key; equal hashes are next to each other."""
    if not table.key:
        return
    found = integer_column(rows, HASH)
    same = np.flatnonzero(found[1:] == found[:-1])
    if not len(same):
        return
    suspects = rows.select(list(table.key)).take(pa.array(np.unique(np.concatenate([same, same + 1]))))
    counts = suspects.group_by(list(table.key)).aggregate([([], "count_all")])
    twice = next((row for row in counts.to_pylist() if row["count_all"] > 1), None)
    if twice is not None:
        key = ", ".join(f"{name} = {twice[name]!r}" for name in table.key)
        raise RunError(
            f'table "{table.name}" has {twice["count_all"]} rows with the primary key {key}',
            hint="Remove all but one of them, or declare another PRIMARY KEY.",
        )


def _unreadable(table: Table, error: MillraceError) -> MillraceError:
    named = f'stream "{table.name}"'
    fact = error.fact.replace(f" of {named}", "").removeprefix(f"{named} ")
    kind = RequestError if isinstance(error, RequestError) else RunError
    return kind(f'table "{table.name}" cannot be read: {fact}', hint=error.hint)
