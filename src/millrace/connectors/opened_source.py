"""The source of a stream, opened by its class; and checks of what it says of its partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from millrace.connectors.source import PartitionSpan, Source, SourcePiece
from millrace.errors import MillraceError, RequestError, RunError
from millrace.kernel.columns.integers import Integers
from millrace.kernel.columns.user_functions import class_at
from millrace.kernel.elements import PARTITION
from millrace.kernel.progress.quarantine import PLACES, UnreadRows
from millrace.plan.nodes.endpoints import Stream
from millrace.secrets import resolved
from millrace.source_index import has_source, source_place

LIMIT = "max_rows_per_trigger"
"""The option that says how many places a micro-batch, or a read of the local host, takes at most."""
_HOST_OPTIONS = ("source", LIMIT)


def is_sourced(stream: Stream) -> bool:
    """True if a stream is read by a source."""
    return has_source(stream.connector.format, stream.connector.options)


def open_source(stream: Stream, schema: pa.Schema) -> Source:
    """The source of a stream, for these columns; its options have what their references stand for."""
    owner = f'stream "{stream.name}"'
    given = stream.connector.options
    row_limit(stream)
    found = class_at(source_place(stream.connector.format, given), f"the source of {owner}")
    if not (isinstance(found, type) and issubclass(found, Source)):
        raise RequestError(
            f"the source of {owner}, {found!r}, is not a class of sources",
            hint="Give a class that inherits from millrace.Source.",
        )
    options = {name: value for name, value in resolved(given, owner).items() if name not in _HOST_OPTIONS}
    columns = pa.schema([field for field in schema if field.name != PARTITION])
    try:
        return found(options, columns, stream.name, stream.schema)
    except MillraceError:
        raise
    # A user's code may raise anything.
    except Exception as error:
        raise RunError(
            f"the source of {owner} cannot be opened: {type(error).__name__}: {error}",
            hint="Look at its options, and at the class of the source.",
        ) from error


def row_limit(stream: Stream) -> int | None:
    """How many places of a stream a trigger takes at most; None if there is no limit."""
    text = stream.connector.options.get(LIMIT)
    if text is not None and not (text.isdecimal() and int(text)):
        raise RequestError(f'option "{LIMIT}" does not take "{text}"', hint="It takes a whole number above zero.")
    return None if text is None else int(text)


def named_rows(piece: SourcePiece, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a piece in a schema, which may name the partition."""
    rows = piece.rows
    if PARTITION not in schema.names:
        return rows
    return rows.append_column(
        schema.field(PARTITION), pa.repeat(pa.scalar(piece.partition, pa.string()), rows.num_rows)
    )


def unread_rows(pieces: Sequence[SourcePiece]) -> UnreadRows | None:
    """What pieces left out; None if that is nothing. The partition stands for the file, the position for the line."""
    left_out = [(piece.partition, each) for piece in pieces for each in piece.unread]
    if not left_out:
        return None

    def locate(wanted: Integers) -> pa.RecordBatch:
        found = [left_out[number] for number in wanted.tolist()]
        rows = [(each.text, partition, each.position) for partition, each in found]
        columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), PLACES, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=PLACES)

    return UnreadRows(pa.array([each.reason for _, each in left_out], pa.string()), locate)


def check_positions(stream: str, positions: Mapping[str, int], spans: Mapping[str, PartitionSpan]) -> None:
    """Refuse to go on where rows after a position are gone, or the partition is another one than was read."""
    for partition, position in positions.items():
        span = spans.get(partition)
        if span is None:
            raise RunError(
                f'partition "{partition}" of stream "{stream}" was read, and no longer exists',
                hint="Bring it back with its rows, or start on a new checkpoint.",
            )
        if position < span.first:
            raise RunError(
                f'rows of stream "{stream}" were deleted before they were read: partition "{partition}" begins at '
                f"{span.first}, and the run goes on at {position}",
                hint="Keep rows longer than a run may be down. To go on without them, start on a new checkpoint.",
            )
        if position > span.end:
            raise RunError(
                f'partition "{partition}" of stream "{stream}" ends at {span.end}, and has been read up to {position}',
                hint="It was deleted and created again, or truncated. Start on a new checkpoint.",
            )
