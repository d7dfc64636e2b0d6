"""Changes of tables as Debezium writes them in json -> rows: what a row was changed to, or what a deleted one was.

Rules:
- The columns are those of the table. Beside them `debezium_op` (c, r, u or d), `debezium_deleted`, and `debezium_ts`,
  when Debezium saw the change, can be declared.
- The envelope may stand in `payload`, beside its schema.
- The message without a value that follows a delete is no row.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.connectors.files.conversion import as_text
from millrace.connectors.files.file_blocks import Fault
from millrace.connectors.files.file_options import ReadOptions
from millrace.connectors.formats.decoded import Decoded, Values
from millrace.connectors.formats.json_messages import JsonMessages
from millrace.errors import RequestError
from millrace.kernel.columns.sql_types import sql_name
from millrace.kernel.elements import TIMESTAMP

_OWN = {"debezium_op": pa.string(), "debezium_deleted": pa.bool_(), "debezium_ts": TIMESTAMP}
_DELETE = "d"


class DebeziumMessages:
    """A decoder of changes."""

    def __init__(self, schema: pa.Schema, options: ReadOptions, owner: str) -> None:
        for name, kind in _OWN.items():
            if name in schema.names and schema.field(name).type != kind:
                raise RequestError(
                    f'column "{name}" of {owner} is {sql_name(schema.field(name).type)}',
                    hint=f"Declare it as {sql_name(kind)}.",
                )
        self._schema = schema
        row = pa.struct([field for field in schema if field.name not in _OWN] or [pa.field("__none", pa.string())])
        fields = [("before", row), ("after", row), ("op", pa.string()), ("ts_ms", pa.int64())]
        envelope = pa.schema([pa.field(*each) for each in fields])
        self._decoder = JsonMessages(envelope.append(pa.field("payload", pa.struct(list(envelope)))), options)

    def decode(self, values: Values) -> Decoded:
        """The rows of some values."""
        numbers = np.array([number for number, value in enumerate(values) if value is not None], np.int64)
        found = self._decoder.decode([values[number] for number in numbers.tolist()])
        change = {name: self._of_envelope(found.rows, name) for name in ("before", "after", "op", "ts_ms")}
        named = pc.is_valid(change["op"]).to_numpy(zero_copy_only=False)
        rows = pa.RecordBatch.from_arrays([self._column(field, change) for field in self._schema], schema=self._schema)

        def explain(number: int) -> Fault:
            place = int(np.searchsorted(numbers, number))
            if place in found.kept:
                return Fault("", "is no change of Debezium", as_text(values[number]))
            return found.explain(place)

        tombstones = np.setdiff1d(np.arange(len(values)), numbers)
        return Decoded(rows.filter(pa.array(named)), numbers[found.kept[named]], explain, tombstones)

    def _of_envelope(self, rows: pa.RecordBatch, name: str) -> pa.Array:
        """A field of the envelope, wherever that stands."""
        payload = rows.column("payload")
        return pc.if_else(pc.is_valid(payload), pc.struct_field(payload, name), rows.column(name))

    def _column(self, field: pa.Field, change: dict[str, pa.Array]) -> pa.Array:
        deleted = pc.fill_null(pc.equal(change["op"], _DELETE), False)
        if field.name == "debezium_op":
            return change["op"]
        if field.name == "debezium_deleted":
            return deleted
        if field.name == "debezium_ts":
            return pc.multiply(change["ts_ms"], 1000).cast(TIMESTAMP)
        before, after = (pc.struct_field(change[name], field.name) for name in ("before", "after"))
        return pc.if_else(deleted, before, after)
