"""Columns and tables as HTML, for what shows itself in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import pyarrow as pa

from millrace.kernel.columns.sql_types import sql_name


def column_types(schema: pa.Schema) -> list[tuple[str, str]]:
    """The columns of rows, and their types as SQL spells them.

    >>> column_types(pa.schema([("n", pa.int64())]))
    [('n', 'BIGINT')]
    """
    return [(field.name, sql_name(field.type)) for field in schema]


def html_table(title: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a title; texts are escaped.

    >>> html_table("a < b", ["n"], [[1]])
    '<table><caption>a &lt; b</caption><tr><th>n</th></tr><tr><td>1</td></tr></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption><tr>{head}</tr>{body}</table>"
