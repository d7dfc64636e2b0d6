"""Raw columns of some rows -> the good rows in the declared schema, and why another is not among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millrace.connectors.files.cells import UNFIT, Convert, Positions, Values, fits, looks, unfit_positions
from millrace.kernel.columns.expressions import sql_name


@dataclass(frozen=True, slots=True)
class Conversion:
    """How each column of a file becomes a column of `schema`; `patterns` tell hopeless text at a glance."""

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
        """The first column whose cell does not fit at a position, the cell as text, and what is wrong with it."""
        for field, convert, column in zip(self.schema, self.converts, columns, strict=True):
            if not fits(column.slice(position, 1), convert):
                return field.name, as_text(column[position].as_py()), f"is not a valid {sql_name(field.type)}"
        raise AssertionError("a row whose cells all fit is not malformed")

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


def conversion(schema: pa.Schema, convert: Callable[[pa.DataType, str], Convert], timestamp_format: str) -> Conversion:
    """The conversion that treats every column of `schema` by its type."""
    converts = tuple(convert(field.type, timestamp_format) for field in schema)
    return Conversion(schema, converts, tuple(looks(field.type, timestamp_format) for field in schema))


def as_text(value: object) -> str:
    """A value as a message shows it."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
