"""Values that a library reads one by one -> rows: one record per message, its fields found by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.connectors.files.file_blocks import Fault
from millrace.connectors.formats.decoded import Decoded, Values
from millrace.connectors.formats.schema_registry import UnknownSchema
from millrace.errors import MillraceError
from millrace.kernel.columns.sql_types import sql_name

_NO_RECORD = "is not a record of its schema"


class RecordMessages:
    """A decoder of records that `read` makes of values; a field that a record does not have is null."""

    def __init__(self, schema: pa.Schema, read: Callable[[bytes], Mapping[str, Any]]) -> None:
        self._schema, self._read = schema, read

    def decode(self, values: Values) -> Decoded:
        """The rows of some values."""
        records: dict[int, Mapping[str, Any]] = {}
        faults: dict[int, Fault] = {}
        for number, value in enumerate(values):
            found = {} if value is None else self._record(value)
            if isinstance(found, Fault):
                faults[number] = found
            else:
                records[number] = found
        for field in self._schema:
            for number in _unfit(records, field):
                reason = f"is not a valid {sql_name(field.type)}"
                faults[number] = Fault("", reason, str(records.pop(number)[field.name]), field.name)
        columns = [pa.array([each.get(field.name) for each in records.values()], field.type) for field in self._schema]
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return Decoded(rows, np.array(list(records), np.int64), faults.__getitem__)

    def _record(self, value: bytes) -> Mapping[str, Any] | Fault:
        try:
            return self._read(value)
        except MillraceError:
            raise
        except UnknownSchema as error:
            return Fault("", str(error), value[:40].hex())
        # A library that meets other bytes than a record's may raise anything.
        except Exception:
            return Fault("", _NO_RECORD, value[:40].hex())


def _unfit(records: Mapping[int, Mapping[str, Any]], field: pa.Field) -> list[int]:
    """The numbers of the records whose value of a field does not fit its type."""
    if _fits([each.get(field.name) for each in records.values()], field.type):
        return []
    return [number for number, each in records.items() if not _fits([each.get(field.name)], field.type)]


def _fits(values: list[Any], kind: pa.DataType) -> bool:
    try:
        pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True
