"""Values as they are: one column, text or bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.connectors.files.conversion import as_text
from millrace.connectors.files.file_blocks import Fault
from millrace.connectors.formats.decoded import Decoded, Values


class RawMessages:
    """A decoder of values that are one column; bytes that are not UTF-8 are no text."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def decode(self, values: Values) -> Decoded:
        """The rows of some values."""
        kept = np.arange(len(values))
        if pa.types.is_string(self._schema.field(0).type):
            kept = np.flatnonzero([_is_text(value) for value in values])
        column = pa.array([values[number] for number in kept.tolist()], pa.binary()).cast(self._schema.field(0).type)
        rows = pa.RecordBatch.from_arrays([column], schema=self._schema)
        return Decoded(rows, kept, lambda number: Fault("", "is not text in UTF-8", as_text(values[number])))


def _is_text(value: bytes | None) -> bool:
    try:
        return value is None or value.isascii() or bool(value.decode()) or True
    except UnicodeDecodeError:
        return False
