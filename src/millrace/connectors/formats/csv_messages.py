"""csv values -> rows: one record per message, without a header, its fields in the order of the declared columns."""

from __future__ import annotations

import csv
import io

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.connectors.files.conversion import as_text, conversion, from_text
from millrace.connectors.files.file_blocks import Fault
from millrace.connectors.files.file_options import ReadOptions
from millrace.connectors.formats.decoded import Decoded, Values, converted, no_fault

_ONE_RECORD = "is not one record"


class CsvMessages:
    """A decoder of records that have a field for each of the `declared` columns, of which some are read."""

    def __init__(self, schema: pa.Schema, declared: list[str], options: ReadOptions) -> None:
        self._declared, self._options = declared, options
        self._plan = conversion(schema, from_text, options.times)
        self._read = [declared.index(name) for name in schema.names]

    def decode(self, values: Values) -> Decoded:
        """The rows of some values; Arrow splits all at once, and only where it fails each is split by itself."""
        columns = self._split(values)
        if columns is not None:
            rows, kept = self._plan.good_rows(columns)
            if len(kept) == len(values):
                return Decoded(rows, kept, no_fault)
        return self._one_by_one(values)

    def _split(self, values: Values) -> list[pa.Array] | None:
        """The fields of all values as columns; None if some value is not one plain line of so many fields."""
        quote = self._options.quote.encode()
        if not all(values) or any(
            each is not None and (b"\n" in each or b"\r" in each or quote in each) for each in values
        ):
            return None
        cells = pa.array(values, pa.binary())
        fields = pc.split_pattern(cells, self._options.delimiter)
        counts = pc.list_value_length(fields)
        if pc.min_max(counts).as_py() != {"min": len(self._declared), "max": len(self._declared)}:
            return None
        nulls = pa.array([each.encode() for each in self._options.null_values], pa.binary())
        columns = (pc.list_element(fields, place) for place in self._read)
        return [pc.if_else(pc.is_in(each, nulls), pa.scalar(None, pa.binary()), each) for each in columns]

    def _one_by_one(self, values: Values) -> Decoded:
        faults: dict[int, Fault] = {}
        records: dict[int, list[str | None]] = {}
        for number, value in enumerate(values):
            found = [None] * len(self._declared) if value is None else self._record(value)
            if isinstance(found, str):
                faults[number] = Fault("", found, as_text(value))
            else:
                records[number] = [found[place] for place in self._read]
        cells = zip(*records.values(), strict=True) if records else [()] * len(self._read)
        columns = [pa.array(each, pa.string()).cast(pa.binary()) for each in cells]
        return converted(columns, np.array(list(records), np.int64), self._plan, faults)

    def _record(self, value: bytes) -> list[str | None] | str:
        """The fields of a record, None for a null; or what is wrong with it."""
        try:
            text = value.decode()
            found = list(
                csv.reader(
                    io.StringIO(text, newline=""),
                    delimiter=self._options.delimiter,
                    quotechar=self._options.quote,
                    strict=True,
                )
            )
        except (ValueError, csv.Error):
            return _ONE_RECORD
        if len(found) != 1:
            return _ONE_RECORD
        if len(found[0]) != len(self._declared):
            return f"has {len(found[0])} fields instead of {len(self._declared)}"
        return [None if field in self._options.null_values else field for field in found[0]]
