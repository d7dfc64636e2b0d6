"""Columns as a file holds them -> the good rows in the declared schema, and why another row is not among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.connectors.files.times.timestamp_patterns import is_pattern, timestamp_pattern
from millrace.connectors.files.times.timestamps import TimeSpelling, tidy, timestamps
from millrace.kernel.columns import decimals
from millrace.kernel.columns.nested.json_values import RAW_DECIMAL, of_base64
from millrace.kernel.columns.nested.nested_columns import brought
from millrace.kernel.columns.sql_types import sql_name

Values = Any  # pa.Array
Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Convert = Callable[[Values], Values]

UNFIT = (ValueError, TypeError, OverflowError)
"""What Arrow raises for a value that does not fit a type."""

# What a value of a type looks like as text. All text that Arrow takes matches; of the text that matches, Arrow refuses
# little: a number out of range, the 29th of February of some years. These cells are found by bisection.
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_DAY = r"\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|[12]\d))"
_TIME = r"([01]\d|2[0-3])(:[0-5]\d(:[0-5]\d(\.\d+)?)?)?(Z|[+-]\d\d(:?\d\d)?)?"
_PATTERNS = (
    (pa.types.is_integer, r"-?0*\d{1,19}|0[xX][0-9a-fA-F]{1,16}"),
    (pa.types.is_floating, rf"{_NUMBER}|[+-]?(?i:nan(\(\w*\))?|inf|infinity)"),
    (pa.types.is_decimal, _NUMBER),
    (pa.types.is_boolean, r"(?i:true|false|1|0)"),
    (pa.types.is_date, _DAY),
)
_ISO_PATTERN = rf"{_DAY}([T ]{_TIME})?"
# Integers of so many digits fit an int64 for certain, and can be compared instead of tried.
_SHORT_INTEGER = r"^\s*-?\d{1,18}\s*$"


@dataclass(frozen=True, slots=True)
class Conversion:
    """How each column of a file becomes a column of `schema`; text that does not match its pattern cannot fit."""

    schema: pa.Schema
    converts: tuple[Convert, ...]
    patterns: tuple[str | None, ...]

    def good_rows(self, columns: Sequence[Values]) -> tuple[pa.RecordBatch, Positions]:
        """The rows whose every cell fits, and their positions."""
        length = len(columns[0])
        try:
            return self.all_rows(columns), np.arange(length)
        except UNFIT:
            kept = np.flatnonzero(~self._unfit(columns))
        return self.all_rows([column.take(pa.array(kept)) for column in columns]), kept

    def blame(self, columns: Sequence[Values], position: int) -> tuple[str, str, str]:
        """The first column whose cell does not fit at a position, the cell as text, and what is wrong."""
        for field, convert, column in zip(self.schema, self.converts, columns, strict=True):
            if not fits(column.slice(position, 1), convert):
                return field.name, as_text(column[position].as_py()), f"is not a valid {sql_name(field.type)}"
        raise AssertionError("a row whose cells all fit is not malformed")

    def reasons(self, columns: Sequence[Values], positions: Positions) -> list[str]:
        """What is wrong with rows by their positions: the first column of each that does not fit."""
        blamed = np.full(len(positions), -1)
        for place, (field, convert, pattern, column) in enumerate(
            zip(self.schema, self.converts, self.patterns, columns, strict=True)
        ):
            cells = column.take(pa.array(positions))
            if not fits(cells, convert):
                unfit = unfit_positions(cells, field.type, convert, pattern)
                blamed[unfit] = np.where(blamed[unfit] < 0, place, blamed[unfit])
        words = [f'column "{field.name}" is not a valid {sql_name(field.type)}' for field in self.schema]
        return [words[place] for place in blamed]

    def all_rows(self, columns: Sequence[Values]) -> pa.RecordBatch:
        """The rows in the schema; raises one of `UNFIT` if a cell does not fit."""
        arrays = [convert(column) for convert, column in zip(self.converts, columns, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _unfit(self, columns: Sequence[Values]) -> Values:
        unfit = np.zeros(len(columns[0]), dtype=np.bool_)
        for field, convert, pattern, column in zip(self.schema, self.converts, self.patterns, columns, strict=True):
            if not fits(column, convert):
                unfit[unfit_positions(column, field.type, convert, pattern)] = True
        return unfit


def conversion(
    schema: pa.Schema, convert: Callable[[pa.DataType, TimeSpelling], Convert], times: TimeSpelling
) -> Conversion:
    """The conversion of every column of `schema` by its type."""
    converts = tuple(convert(field.type, times) for field in schema)
    return Conversion(schema, converts, tuple(text_pattern(field.type, times) for field in schema))


def as_text(value: object) -> str:
    """A value as text for a message."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def from_text(kind: pa.DataType, times: TimeSpelling) -> Convert:
    """A conversion of bytes to `kind`, as csv spells values."""

    def convert(cells: Values) -> Values:
        text = pc.cast(cells, pa.string())
        if pa.types.is_string(kind):
            return text
        if pa.types.is_timestamp(kind):
            return timestamps(text, times)
        if pa.types.is_decimal(kind):
            return decimals.of_text(tidy(text), kind)
        try:
            return pc.cast(text, kind)
        except pa.ArrowInvalid:
            return pc.cast(tidy(text), kind)

    return convert


def from_column(kind: pa.DataType, times: TimeSpelling) -> Convert:
    """A conversion of typed columns to `kind`; a number that would lose something does not fit."""

    def convert(cells: Values) -> Values:
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        if pa.types.is_large_string(cells.type) or pa.types.is_string_view(cells.type):
            cells = pc.cast(cells, pa.string())
        if pa.types.is_timestamp(kind):
            return timestamps(cells, times)
        if pa.types.is_nested(kind):
            return brought(cells, kind, lambda part, inner: from_column(inner, times)(part))
        if pa.types.is_binary(kind) and pa.types.is_string(cells.type):
            return of_base64(cells)
        if cells.type == RAW_DECIMAL and pa.types.is_decimal(kind):
            return decimals.rescaled(cells, kind)
        return cells if cells.type == kind else pc.cast(cells, kind)

    return convert


def text_pattern(kind: pa.DataType, times: TimeSpelling) -> str | None:
    """A pattern that every value of `kind` matches as text; None where any text might do."""
    if pa.types.is_timestamp(kind):
        pattern: str | None = _ISO_PATTERN if times.format == "iso" else _NUMBER
        if is_pattern(times.format):
            pattern = timestamp_pattern(times.format).expression
    else:
        pattern = next((pattern for is_kind, pattern in _PATTERNS if is_kind(kind)), None)
    return None if pattern is None else rf"^\s*({pattern})?\s*$"


def unfit_positions(cells: Values, kind: pa.DataType, convert: Convert, pattern: str | None = None) -> Positions:
    """The positions that `convert` refuses: found by their pattern, by their range, and the rest by bisection."""
    if pattern is None or not (pa.types.is_string(cells.type) or pa.types.is_binary(cells.type)):
        return _bisect(cells, convert)
    plausible = _matches(cells, pattern)
    if pa.types.is_integer(kind):
        plausible &= ~_out_of_range(cells, kind)
    candidates = np.flatnonzero(plausible)
    refused = _bisect(cells.take(pa.array(candidates)), convert)
    return np.union1d(np.flatnonzero(~plausible), candidates[refused])


def _matches(cells: Values, pattern: str) -> Mask:
    """True where the text matches, or is null."""
    return pc.fill_null(pc.match_substring_regex(cells, pattern), True).to_numpy(zero_copy_only=False).copy()


def _out_of_range(cells: Values, kind: pa.DataType) -> Mask:
    """True where the text is an integer that its type cannot hold."""
    short = pc.if_else(pc.match_substring_regex(cells, _SHORT_INTEGER), cells, pa.scalar(None, cells.type))
    numbers = pc.cast(pc.utf8_trim_whitespace(pc.cast(short, pa.string())), pa.int64())
    bounds = np.iinfo(kind.to_pandas_dtype())
    outside = pc.or_(pc.less(numbers, int(bounds.min)), pc.greater(numbers, int(bounds.max)))
    return pc.fill_null(outside, False).to_numpy(zero_copy_only=False)


def _bisect(cells: Values, convert: Convert) -> Positions:
    ranges, found = [(0, len(cells))], []
    while ranges:
        start, stop = ranges.pop()
        if fits(cells.slice(start, stop - start), convert):
            continue
        if stop - start == 1:
            found.append(start)
            continue
        middle = (start + stop) // 2
        ranges += [(middle, stop), (start, middle)]
    return np.array(found, dtype=np.int64)


def fits(cells: Values, convert: Convert) -> bool:
    """True if `convert` takes all of the cells."""
    try:
        convert(cells)
    except UNFIT:
        return False
    return True
