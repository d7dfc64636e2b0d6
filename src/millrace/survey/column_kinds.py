"""The type of each column from all of its values, its nulls, and which words stand for null.

Rules:
- A type is taken only if every value fits it, as a run would read it. A column of whole numbers is BIGINT: the next
  file may have larger ones. Numbers with a zero before them, such as postal codes, are text.
- Words such as NA stand for null only where a column of numbers or times would be text without that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millrace.connectors.files.conversion import fits, from_text
from millrace.connectors.files.times.timestamps import TimeSpelling

Values = Any  # pa.ChunkedArray

NULL_WORDS = ("NA", "N/A", "n/a", "null", "NULL", "None", "nan", "NaN", "\\N", "-", "?")
_ZERO_FIRST = r"^\s*[+-]?0\d"
_COMMA_NUMBER = r"^\s*[+-]?\d+(\.\d{3})*,\d+\s*$"


@dataclass(frozen=True)
class ColumnKind:
    """A column: its SQL type, how many values it has and how many are null, and what else was seen in it."""

    name: str
    type: pa.DataType
    rows: int
    nulls: int
    distinct: int
    null_words: tuple[str, ...] = ()
    comma_numbers: bool = False
    """True if it is text of numbers with a decimal comma."""
    nearly: str = ""
    """A value that alone keeps the column from being one of numbers."""


_ISO = TimeSpelling("iso")


def text_kind(column: Values) -> str:
    """What the values of a column of text are: nothing, truth, number, time or text.

    >>> text_kind(pa.array(["1", None, "2.5"])), text_kind(pa.array(["2024-01-01 10:00"])), text_kind(pa.array(["7x"]))
    ('number', 'time', 'text')
    """
    found = without(column, NULL_WORDS)
    if found.null_count == len(found):
        return "nothing"
    if fits(found, from_text(pa.float64(), _ISO)):
        return "number"
    if fits(found, from_text(pa.timestamp("us", tz="UTC"), _ISO)):
        return "time"
    return "truth" if fits(found, from_text(pa.bool_(), _ISO)) else "text"


def without(column: Values, words: Iterable[str]) -> Values:
    """A column of text with null in the place of these words."""
    is_word = pc.is_in(pc.utf8_trim_whitespace(column), pa.array(list(words), pa.string()))
    return pc.if_else(is_word, pa.scalar(None, pa.string()), column)


def column_kind(
    name: str,
    column: Values,
    *,
    commas_are_decimal: bool = True,
    null_words: Sequence[str] = NULL_WORDS,
    settled: bool = False,
) -> ColumnKind:
    """The kind of a column; one that is not text, or whose type is `settled`, has its type already.

    Where fields are separated by commas, a comma in a number is that of thousands: 1,234.
    """
    words: tuple[str, ...] = ()
    kind, nearly, commas = column.type, "", False
    if pa.types.is_string(column.type) and not settled:
        kind, words = _text_type(column, null_words)
        if words:
            column = without(column, words)
        if pa.types.is_string(kind):
            nearly, commas = _nearly_number(column), commas_are_decimal and _matches_all(column, _COMMA_NUMBER)
    scalar = not pa.types.is_nested(column.type)
    distinct = pc.count_distinct(column).as_py() if scalar else 0
    return ColumnKind(name, kind, len(column), column.null_count, distinct, words, commas, nearly)


def _text_type(column: Values, null_words: Sequence[str]) -> tuple[pa.DataType, tuple[str, ...]]:
    """The type of a column of text, and which of these words in it must be null for that."""
    if column.null_count == len(column):
        return pa.string(), ()
    if (found := _fitting(column)) is not None:
        return found, ()
    present = set(pc.unique(pc.utf8_trim_whitespace(column)).to_pylist()) if _few_words(column) else set()
    words = tuple(word for word in null_words if word in present)
    rest = without(column, words)
    if words and rest.null_count < len(rest) and (found := _fitting(rest)) is not None:
        return found, words
    return pa.string(), words if words and text_kind(rest) == "time" else ()


def _fitting(column: Values) -> pa.DataType | None:
    """The first of the types that every value fits."""
    if pc.any(pc.match_substring_regex(column, _ZERO_FIRST)).as_py() and _matches_all(column, r"^\s*[+-]?\d+\s*$"):
        return None
    kinds = [pa.int64(), pa.float64(), pa.date32()]
    if not _matches_all(column, r"^\s*[01]\s*$"):
        kinds.insert(0, pa.bool_())
    return next((kind for kind in kinds if fits(column, from_text(kind, _ISO))), None)


def _few_words(column: Values) -> bool:
    return bool(pc.any(pc.is_in(pc.utf8_trim_whitespace(column), pa.array(list(NULL_WORDS)))).as_py())


def _matches_all(column: Values, pattern: str) -> bool:
    """True if there are values, and all of them match."""
    matched = pc.match_substring_regex(column, pattern)
    return matched.null_count < len(matched) and bool(pc.all(matched).as_py())


def _nearly_number(column: Values) -> str:
    """A value that is no number in a column where 99 of 100 are; nothing if it is not such a column."""
    numbers = pc.fill_null(pc.match_substring_regex(column, r"^\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*$"), True)
    others = len(column) - (pc.sum(numbers).as_py() or 0)
    if not others or others * 100 > len(column) - column.null_count:
        return ""
    return str(column.filter(pc.invert(numbers))[0].as_py())[:40]
