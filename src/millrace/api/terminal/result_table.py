"""Results as a table that fits the terminal, in pieces as they come.

Rules:
- Numbers stand at the right of their column, text at the left. A column is as wide as what it has shown so far; when it
  must grow, the head is written again.
- Where the terminal is too narrow the widest texts and names give way, and what is cut is marked; numbers and times
  are never cut. Columns for which there is no room are left out, the last ones first, and the head says how many.
- Doubles are shown with six digits after the point.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import category, east_asian_width

import pyarrow as pa

from millrace.api.terminal.colours import BOLD, CYAN, DIM, Colours
from millrace.api.terminal.status_line import fitted

_BETWEEN = "  "
_LEAST = 8
"""Columns of the terminal that a column of results keeps, if it needs them."""
_NULL = "NULL"
_JOINER = "\u200d"
"""Makes one picture of two."""
_WITHOUT_WIDTH = frozenset({"Mn", "Me", "Cf"})
"""Kinds of characters that change the one before them, or show nothing."""
_LONG_DOUBLE = re.compile(r"-?(0\.0{0,3}[1-9]|[1-9]\d*\.)\d{7,}")
"""One that loses nothing of weight with six digits."""


@dataclass
class _Shape:
    """The columns of a query as they were last shown: their widths, and how many were left out."""

    names: tuple[str, ...]
    cells: list[int]
    """The width of the widest value of each."""
    widths: list[int]
    left_out: int = 0


class ResultTables:
    """The tables of a run, one per query, on a terminal of so many columns."""

    def __init__(self, colours: Colours) -> None:
        self._colours = colours
        self._shapes: dict[str, _Shape] = {}
        self._last = ""

    def lines(self, query: str, rows: pa.Table, texts: Sequence[Sequence[str]], width: int) -> list[str]:
        """The lines that show further rows of a query, whose values are `texts`, column by column."""
        pairs = zip(rows.schema, texts, strict=True)
        texts = [_short(cells) if pa.types.is_floating(field.type) else cells for field, cells in pairs]
        right = [_is_number(field.type) for field in rows.schema]
        shape, before = self._shape(query, rows.schema, texts, width), self._shapes.get(query)
        again = self._last != query or before is None or before.widths != shape.widths or before.names != shape.names
        self._shapes[query], self._last = shape, query
        return [*(self._head(query, shape, right) if again else ()), *self._body(shape, right, texts)]

    def _shape(self, query: str, schema: pa.Schema, texts: Sequence[Sequence[str]], width: int) -> _Shape:
        """The widths of the columns, with what has been shown of them before."""
        names, before = tuple(schema.names), self._shapes.get(query)
        known = before.cells if before is not None and before.names == names else [0] * len(names)
        cells = [max(map(text_width, values), default=0) for values in texts]
        cells = [max(pair) for pair in zip(known, cells, strict=True)]
        wanted = [max(text_width(name), cell) for name, cell in zip(names, cells, strict=True)]
        rigid = [_is_number(field.type) or pa.types.is_temporal(field.type) for field in schema]
        least = [cell if keeps else min(want, _LEAST) for cell, want, keeps in zip(cells, wanted, rigid, strict=True)]
        widths = _fitting(wanted, least, width)
        return _Shape(names, cells, widths, len(names) - len(widths))

    def _head(self, query: str, shape: _Shape, right: Sequence[bool]) -> list[str]:
        words = "column does" if shape.left_out == 1 else "columns do"
        more = f" ({shape.left_out} more {words} not fit)" if shape.left_out else ""
        cells = [
            _cell(name, width, at_right)
            for name, width, at_right in zip(shape.names, shape.widths, right, strict=False)
        ]
        title = self._colours.paint(f"# {query}", CYAN) + self._colours.paint(more, DIM)
        return [title, self._colours.paint(_BETWEEN.join(cells).rstrip(), BOLD)]

    def _body(self, shape: _Shape, right: Sequence[bool], texts: Sequence[Sequence[str]]) -> list[str]:
        columns = [
            [self._value(cell, width, at_right) for cell in cells]
            for cells, width, at_right in zip(texts, shape.widths, right, strict=False)
        ]
        return [_BETWEEN.join(row).rstrip() for row in zip(*columns, strict=True)]

    def _value(self, text: str, width: int, right: bool) -> str:
        cell = _cell(text, width, right)
        return self._colours.paint(cell, DIM) if text == _NULL else cell


def text_width(text: str) -> int:
    """How many columns of a terminal a text takes: two for a wide character, none for one that joins others.

    >>> text_width("Zürich"), text_width("東京"), text_width("👨\u200d👩\u200d👧")
    (6, 4, 2)
    """
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text, "\0" + text))


def _character_width(character: str, before: str) -> int:
    """The columns of a character; what is joined to the one before it stands in that one's place."""
    if before == _JOINER or category(character) in _WITHOUT_WIDTH:
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def _cell(text: str, width: int, right: bool) -> str:
    """A text in exactly so many columns."""
    if text_width(text) > width:
        text = fitted(text, width)
        while text_width(text) > width:
            text = text[:-2] + "…"
    room = " " * (width - text_width(text))
    return room + text if right else text + room


def _fitting(wanted: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """The widths of the columns on a terminal: the widest give way first, none below its least; some find no room."""
    count = len(wanted)
    while count > 1 and sum(least[:count]) + len(_BETWEEN) * (count - 1) > width:
        count -= 1
    pairs = list(zip(wanted[:count], least[:count], strict=True))
    room, limit = width - len(_BETWEEN) * (count - 1), max(wanted[:count], default=0)
    while limit > 1 and sum(max(low, min(want, limit)) for want, low in pairs) > room:
        limit -= 1
    return [max(low, min(want, limit)) for want, low in pairs]


def _short(cells: Sequence[str]) -> list[str]:
    """Doubles with at most six digits after the point, where that leaves something of them.

    >>> _short(["0.9424460431654677", "2.0", "1e-09", "NULL"])
    ['0.942446', '2.0', '1e-09', 'NULL']
    """
    return [f"{float(cell):.6f}" if _LONG_DOUBLE.fullmatch(cell) else cell for cell in cells]


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
