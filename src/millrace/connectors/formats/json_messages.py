"""json values -> rows: one object per message, on one line or several."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.connectors.files.conversion import conversion, from_column
from millrace.connectors.files.file_blocks import Fault
from millrace.connectors.files.file_options import ReadOptions
from millrace.connectors.files.json_reader import Lines, all_lines, object_fields, object_or_fault, raw_schema
from millrace.connectors.formats.decoded import Decoded, Values, converted, no_fault


class JsonMessages:
    """A decoder of objects; a missing key is null, a key that is not in the schema is ignored."""

    def __init__(self, schema: pa.Schema, options: ReadOptions) -> None:
        self._raw = raw_schema(schema, options.times.format)
        self._plan = conversion(schema, from_column, options.times)
        self._fields = object_fields(schema, self._raw)

    def decode(self, values: Values) -> Decoded:
        """The rows of some values; Arrow parses all at once, and only where it fails each is parsed by itself."""
        if all(values):
            data = b"\n".join(values)  # type: ignore[arg-type]
            block = all_lines(Lines(data, 1, 0), self._raw, self._plan)
            if block is not None and block.rows.num_rows == len(values) == data.count(b"\n") + 1:
                return Decoded(block.rows, np.arange(len(values)), no_fault)
        return self._one_by_one(values)

    def _one_by_one(self, values: Values) -> Decoded:
        faults: dict[int, Fault] = {}
        objects = {}
        for number, value in enumerate(values):
            found = {} if value is None else object_or_fault(value, self._fields, "")
            if isinstance(found, Fault):
                faults[number] = found
            else:
                objects[number] = found
        columns = [pa.array([each.get(field.name) for each in objects.values()], field.type) for field in self._raw]
        return converted(columns, np.array(list(objects), np.int64), self._plan, faults)
