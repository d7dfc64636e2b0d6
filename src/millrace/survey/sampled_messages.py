"""The rows of messages, decoded as a run would decode them: csv as text, json in the types that it has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.connectors.formats.decoded import Decoded
from millrace.connectors.formats.decoders import OPTIONS, open_decoder
from millrace.connectors.kafka.message_columns import is_of_message
from millrace.survey.sampled_rows import SampledRows, declarable, json_schema
from millrace.survey.topic_messages import KEY, STAMP, VALUE, TopicMessages
from millrace.survey.topic_shape import TopicShape, is_text


def sampled_messages(messages: TopicMessages, shape: TopicShape) -> SampledRows:
    """The rows of the messages, partition by partition, with their key and their time where they have such."""
    whole = pa.concat_tables(messages.partitions.values())
    values = whole.column(VALUE).to_pylist()
    schema, left_out = _schema(values, shape)
    decoded = _decoded(values, schema, shape)
    columns = {name: pa.chunked_array([decoded.rows.column(name)]) for name in schema.names}
    kept = whole.take(pa.array(decoded.kept))
    columns |= {name: _text(kept.column(name)) for name in (KEY, STAMP) if kept.column(name).null_count < len(kept)}
    ends = np.cumsum([len(table) for table in messages.partitions.values()])
    counts = np.diff(np.searchsorted(decoded.kept, ends), prepend=0).tolist()
    parts = dict(zip(messages.partitions, counts, strict=True))
    malformed = len(values) - len(decoded.kept) - len(decoded.no_rows)
    return SampledRows(columns, len(kept), malformed, messages.whole, left_out, parts)


def _decoded(values: Sequence[bytes | None], schema: pa.Schema, shape: TopicShape) -> Decoded:
    options = {name: value for name, value in shape.options.items() if name in ("format", *OPTIONS[shape.format])}
    return open_decoder(schema, schema, options, f'topic "{shape.path}"').decode(values)


def _schema(values: Sequence[bytes | None], shape: TopicShape) -> tuple[pa.Schema, list[str]]:
    """The columns of the values, and the names of those that cannot be declared."""
    if shape.format == "csv":
        return pa.schema([(f"column_{number}", pa.string()) for number in range(1, shape.width + 1)]), []
    if shape.format == "raw":
        text = all(value is None or is_text(value) for value in values)
        return pa.schema([(VALUE, pa.string() if text else pa.binary())]), []
    present = [value for value in values if value]
    # A line break in an object stands between its parts: in its texts it is written as \n.
    lines = b"\n".join(value.replace(b"\n", b" ") for value in present)
    found = json_schema(lines, lambda schema: len(present) - len(_decoded(present, schema, shape).kept))
    taken = [field.name for field in found if is_of_message(field.name)]
    schema, left_out = declarable(pa.schema([field for field in found if field.name not in taken]))
    return schema, taken + left_out


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of bytes as text, if all of it is; others as they are."""
    if not (pa.types.is_binary(column.type) and all(map(is_text, pc.unique(pc.drop_null(column)).to_pylist()))):
        return column
    return column.cast(pa.string())
