"""The reference of all functions, made of their declarations; `docs/functions.md` is its text.

Examples are computed here: those of aggregates over a few rows, in one query.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from millrace.api.network import Network
from millrace.errors import RequestError, did_you_mean
from millrace.hosts.run_options import HostName
from millrace.language import bind_expression
from millrace.language.expressions.functions import FAMILIES
from millrace.language.expressions.functions.aggregate_table import AGGREGATES, example_rows
from millrace.language.expressions.functions.declaration import Function
from millrace.language.expressions.functions.differences import DIFFERENCES
from millrace.language.expressions.functions.generator_table import GENERATORS

_AGGREGATES = "Aggregates"
_GENERATORS = "Rows and columns of one value"
_HEAD = """# Functions

All functions that a query may call. This page is made of the declarations in the code (`make golden` writes it again),
and tests run every example. Operators, `CAST`, `EXTRACT`, ranks and windows are on [the pages of SQL](sql/index.md).
On the command line `millrace functions NAME` shows one function.

Arguments are of a type such as `STRING`, to which other values are cast, or of a kind: `TEXT` (a `STRING` or a
`BINARY`), `NUMBER`, `WHOLE` (an integer), `TIME` (a `DATE` or a `TIMESTAMP`), `ANY`, `T` (values of one type), `UNIT`
(a unit of time), `FUNCTION` (`x -> expression`). What stands in brackets may be left out, and `...` repeated.
"""
_ONE_ROW = pa.record_batch({"one": [1]})


def functions_page() -> str:
    """The whole reference as Markdown."""
    parts = [_HEAD]
    for heading, family in _families().items():
        parts.append(f"## {heading}\n")
        if heading == _AGGREGATES:
            parts.append(_rows_text())
        parts.append("\n".join(["| function | what it gives | example |", "|---|---|---|", *_lines(heading, family)]))
    rows = [f"| {' | '.join(each)} |" for each in DIFFERENCES]
    parts.append("\n".join(["## Where they differ from Spark\n", "| what | here | Spark |", "|---|---|---|", *rows]))
    return "\n".join(each.rstrip("\n") + "\n" for each in parts)


def function_text(name: str) -> str:
    """What is to be known of one function."""
    named = {each: function for family in _families().values() for function in family for each in _names(function)}
    if name.lower() not in named:
        raise RequestError(
            f'function "{name}" does not exist',
            hint=f"{did_you_mean(name, named)}millrace functions lists all of them.",
        )
    found = named[name.lower()]
    heading = next(each for each, family in _families().items() if found in family)
    example = f"{found.example} = {examples(heading, [found])[found]}"
    others = [f"also: {', '.join(found.also)}"] * bool(found.also) + [found.forms] * bool(found.forms)
    return "\n".join([found.signature, f"  {found.about}", f"  {example}", *(f"  {each}" for each in others)])


def function_names() -> dict[str, list[str]]:
    """The names of all functions by family."""
    return {heading: sorted(each.name for each in family) for heading, family in _families().items()}


def _families() -> dict[str, tuple[Function, ...]]:
    return {**FAMILIES, _GENERATORS: GENERATORS, _AGGREGATES: AGGREGATES}


def _names(function: Function) -> tuple[str, ...]:
    return (function.name, *function.also)


def _lines(heading: str, family: Iterable[Function]) -> Iterator[str]:
    ordered = sorted(family, key=lambda each: each.name)
    values = examples(heading, ordered)
    for each in ordered:
        others = f" Also {', '.join(f'`{name}`' for name in each.also)}." if each.also else ""
        forms = f" Also written `{each.forms}`." if each.forms else ""
        example = f"{each.example} = {values[each]}"
        yield _row(f"`{each.signature}`", f"{each.about}.{others}{forms}", f"`{example}`")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _rows_text() -> str:
    columns = [f"`{name}` is {', '.join(shown(each) for each in column)}" for name, column in _example_columns()]
    return f"Over the rows of a window or of a group. In the examples {'; '.join(columns)}.\n"


def _example_columns() -> Iterator[tuple[str, pa.Array]]:
    yield from zip(example_rows().schema.names, example_rows().columns, strict=True)


def examples(heading: str, functions: Iterable[Function]) -> dict[Function, str]:
    """The values of the functions' examples, as SQL shows them."""
    found = list(functions)
    if heading == _GENERATORS:
        tables = answers([f"SELECT {each.example} FROM t WHERE x = 4" for each in found])
        return {each: "; ".join(_row_texts(table)) for each, table in zip(found, tables, strict=True)}
    if heading == _AGGREGATES:
        (table,) = answers(
            [f"SELECT {', '.join(each.example for each in found)} FROM t [RANGE 1 MINUTE SLIDE 1 MINUTE]"]
        )
        values = [column[0] for column in table.columns]
    else:
        values = [bind_expression(each.example, _ONE_ROW.schema).over(_ONE_ROW)[0] for each in found]
    return {function: shown(value) for function, value in zip(found, values, strict=True)}


def _row_texts(table: pa.Table) -> Iterator[str]:
    for row in zip(*(column for column in table.columns), strict=True):
        yield ", ".join(map(shown, row))


def answers(selects: Sequence[str], on: HostName = "virtual") -> list[pa.Table]:
    """The results of queries over the rows of the examples, a second apart."""
    net = Network()
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = [{**row, "ts": start + dt.timedelta(seconds=at)} for at, row in enumerate(example_rows().to_pylist())]
    net.stream("t", "x INT, y DOUBLE, s STRING, ok BOOLEAN, ts TIMESTAMP", time="ts", source=rows)
    for place, select in enumerate(selects):
        net.sql(f"CREATE QUERY q{place} AS {select}")
    handle = net.run(on=on).wait()
    return [handle.results(f"q{place}") for place in range(len(selects))]


def shown(value: pa.Scalar) -> str:
    """A value as SQL would write it, nested ones as Spark shows them.

    >>> shown(pa.scalar([{"a": "x", "b": None}])), shown(pa.scalar(1.0)), shown(pa.scalar(b"x"))
    ("[{a: 'x', b: NULL}]", '1.0', "X'78'")
    """
    kind = value.type
    if not value.is_valid:
        return "NULL"
    if pa.types.is_map(kind):
        return (
            f"{{{', '.join(f'{shown(each[0])}: {shown(each[1])}' for each in value.values)}}}" if value.values else "{}"
        )
    if pa.types.is_list(kind):
        return f"[{', '.join(shown(each) for each in value.values)}]"
    if pa.types.is_struct(kind):
        return f"{{{', '.join(f'{name}: {shown(each)}' for name, each in value.items())}}}"
    if pa.types.is_duration(kind):
        rows = pa.record_batch({"v": pa.array([value.as_py()], kind)})
        return str(bind_expression("CAST(v AS STRING)", rows.schema).over(rows)[0])
    return _plain(value.as_py(), kind)


def _plain(value: Any, kind: pa.DataType) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, str):
        return repr(value) if "'" not in value else "'" + value.replace("'", "\\'") + "'"
    if pa.types.is_timestamp(kind):
        return f"TIMESTAMP '{value.replace(tzinfo=None)}'"
    return f"DATE '{value}'" if pa.types.is_date(kind) else str(value)
