"""Streams as small text tables, one row per line, with the time at which each row arrives.

Rules:
- The first line names the columns, between bars; a line of dashes below it is ignored.
- `arrive` is the arrival after the start (`0s`, `1.5s`, `200ms`), unless the schema has a column of that name.
- A time is `HH:MM:SS[.ffffff]` on 1970-01-01, or a full ISO date and time; UTC without a zone.
- `null` is null. Text stands as it is; in quotes where it is empty, is the word null, or holds a bar or spaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from millrace.errors import Place, RequestError
from millrace.kernel.elements import ARRIVED

ARRIVE = "arrive"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_QUOTED = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*(?=\||$)""")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|)")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?")


@dataclass(frozen=True)
class Rows:
    """Rows of a stream and, if the table has them, their arrivals in microseconds after the start.

    >>> rows = table("arrive | k \\n 0s | a \\n 1.5s | null", {"k": pa.string()})
    >>> rows.table.to_pylist(), rows.arrivals
    ([{'k': 'a'}, {'k': None}], (0, 1500000))
    """

    table: pa.Table
    arrivals: tuple[int, ...] | None = None

    def arriving(self, start: int = 0) -> pa.Table:
        """The table with a column of arrivals, as hosts read it; the table itself if it has none."""
        if self.arrivals is None:
            return self.table
        times = np.array(self.arrivals, dtype=np.int64) + start
        return self.table.append_column(ARRIVED, pa.array(times))


@dataclass(frozen=True)
class _Cell:
    text: str
    place: Place

    def refuse(self, fact: str, hint: str) -> NoReturn:
        raise RequestError(fact, hint=hint, place=self.place)


def table(text: str, schema: pa.Schema | Mapping[str, pa.DataType]) -> Rows:
    """The rows of a text table.

    >>> schema = {"srcIP": pa.string(), "len": pa.int64(), "ts": pa.timestamp("us", tz="UTC")}
    >>> rows = table(
    ...     '''
    ...     srcIP | len  | ts
    ...     a     | 10   | 00:00:01
    ...     b     | null | 00:00:03.5
    ... ''',
    ...     schema,
    ... )
    >>> rows.table.column("len").to_pylist()
    [10, None]
    """
    declared = schema if isinstance(schema, pa.Schema) else pa.schema(list(schema.items()))
    lines = list(_lines(text))
    if not lines:
        raise RequestError("the table has no line with the names of its columns", hint="Write them between bars.")
    names, body = lines[0], lines[1:]
    _check_names(names, declared)
    columns: dict[str, list[Any]] = {cell.text: [] for cell in names}
    for cells in body:
        _check_width(cells, names)
        for name, cell in zip(columns, cells, strict=True):
            columns[name].append(_value(cell, None if _is_arrival(name, declared) else declared.field(name).type))
    arrivals = columns.pop(ARRIVE) if ARRIVE in columns and ARRIVE not in declared.names else None
    arrays = [pa.array(columns[field.name], field.type) for field in declared]
    return Rows(pa.Table.from_arrays(arrays, schema=declared), None if arrivals is None else tuple(arrivals))


def _lines(text: str) -> Iterator[list[_Cell]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip(" \t|-+"):
            yield list(_cells(line, number))


def _cells(line: str, number: int) -> Iterator[_Cell]:
    for start, stop in _spans(line, *_inside(line)):
        text = line[start:stop].strip()
        column = line.index(text, start) + 1
        cell = _Cell(text, Place(number, column, text, line))
        if text[:1] in ("'", '"') and not _QUOTED.match(text):
            cell.refuse("a quoted text does not end", "Close its quote before the bar.")
        yield cell


def _inside(line: str) -> tuple[int, int]:
    """The start and end of the cells: a row may stand between bars."""
    outer = re.fullmatch(r"\s*\|(.*)\|\s*", line)
    return outer.span(1) if outer else (0, len(line))


def _spans(line: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The start and end of each cell; a bar within quotes is part of its cell."""
    while True:
        quoted = _QUOTED.match(line, start, end)
        bar = line.find("|", quoted.end() if quoted else start, end)
        yield start, bar if bar >= 0 else end
        if bar < 0:
            return
        start = bar + 1


def _check_names(names: list[_Cell], schema: pa.Schema) -> None:
    known = {*schema.names, ARRIVE}
    for number, cell in enumerate(names):
        if cell.text not in known:
            cell.refuse(f'the table has a column "{cell.text}" that the schema has not', _known(schema))
        if cell.text in {each.text for each in names[:number]}:
            cell.refuse(f'the table has two columns "{cell.text}"', "Drop one of them.")
    missing = [name for name in schema.names if name not in {cell.text for cell in names}]
    if missing:
        names[0].refuse(f'the table has no column "{missing[0]}"', _known(schema))


def _known(schema: pa.Schema) -> str:
    return f"The columns are {', '.join(schema.names)}, and {ARRIVE} if you like."


def _check_width(cells: list[_Cell], names: list[_Cell]) -> None:
    if len(cells) != len(names):
        cells[-1].refuse(f"a row has {len(cells)} cells under {len(names)} names", "Give each column one cell.")


def _is_arrival(name: str, schema: pa.Schema) -> bool:
    return name == ARRIVE and name not in schema.names


def _value(cell: _Cell, kind: pa.DataType | None) -> Any:
    """A cell's value; the kind None is an arrival."""
    if kind is None:
        return _arrival(cell)
    if not cell.text:
        cell.refuse("a cell is empty", 'Write null, or "" for an empty text.')
    if cell.text == "null":
        return None
    read = next((read for is_kind, read in _READERS if is_kind(kind)), None)
    if read is None:
        cell.refuse(f'a text table cannot show a "{kind}"', "Build such rows with pyarrow.")
    return read(cell)


def _arrival(cell: _Cell) -> int:
    found = _SPAN.fullmatch(cell.text)
    if found is None:
        cell.refuse(f'"{cell.text}" is no arrival', "Write it as seconds after the start: 0s, 1.5s or 200ms.")
    return round(float(found.group(1)) * (1_000 if found.group(2) == "ms" else 1_000_000))


def _parsed(cell: _Cell, read: Callable[[str], Any], what: str) -> Any:
    try:
        return read(cell.text)
    except (ValueError, ArithmeticError):
        cell.refuse(f'"{cell.text}" is no {what}', f"Write a {what}, or null.")


def _boolean(cell: _Cell) -> bool:
    if cell.text not in ("true", "false"):
        cell.refuse(f'"{cell.text}" is neither true nor false', "Write true, false or null.")
    return cell.text == "true"


def _text(cell: _Cell) -> str:
    if cell.text[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", cell.text[1:-1])
    return cell.text


def _timestamp(cell: _Cell) -> datetime:
    found = _CLOCK.fullmatch(cell.text)
    if found is not None:
        hours, minutes, seconds = int(found.group(1)), int(found.group(2)), float(found.group(3) or 0)
        return _EPOCH + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    moment: datetime = _parsed(cell, datetime.fromisoformat, "time")
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


_READERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[_Cell], Any]], ...] = (
    (pa.types.is_integer, lambda cell: _parsed(cell, int, "whole number")),
    (pa.types.is_floating, lambda cell: _parsed(cell, float, "number")),
    (pa.types.is_decimal, lambda cell: _parsed(cell, Decimal, "number")),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_string, _text),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_date, lambda cell: _parsed(cell, date.fromisoformat, "date")),
)
