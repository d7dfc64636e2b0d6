"""The input of a stream, by what the stream is read from: files, a source, a generator, or rows fed from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from millrace.connectors.feed_input import FeedInput
from millrace.connectors.files.file_input import FileInput
from millrace.connectors.files.file_options import FORMATS
from millrace.connectors.files.pieces.file_piece import ReadPiece
from millrace.connectors.generators.generated_input import GeneratedInput
from millrace.connectors.native import DATAFRAME, is_generated, refuse_source
from millrace.connectors.opened_source import is_sourced
from millrace.connectors.partitioned_input import PartitionedInput
from millrace.connectors.stream_input import InputFeed, Position, Reopening, StreamInput, read_schema
from millrace.plan.nodes.endpoints import Stream


def open_input(
    stream: Stream,
    columns: list[str],
    feed: Iterable[Any] | None,
    position: Position | None,
    read: Mapping[int, ReadPiece] | None = None,
    *,
    ends: bool = True,
    live: bool = False,
) -> StreamInput:
    """A stream's input at a position (None: the beginning); `read` are the pieces of files before it.

    `ends` says that files that are being written are taken to end where they do now, `live` that the run goes on until
    it is stopped: then a source has no end.
    """
    schema = read_schema(stream, columns)
    if isinstance(feed, InputFeed):
        return feed.open(stream, schema, position)
    if feed is not None and stream.connector.format != DATAFRAME:
        return FeedInput(stream, schema, feed, position)
    if is_sourced(stream):
        return PartitionedInput(stream, schema, position, live=live)
    if is_generated(stream.connector):
        return GeneratedInput(stream, schema, position)
    if stream.connector.format not in FORMATS:
        raise refuse_source(stream)
    return FileInput(stream, schema, position, read, ends=ends, follows=live)


def reopen_input(source: StreamInput, stream: Stream, columns: list[str], position: Position) -> StreamInput:
    """The input with other columns, from one of its positions; a feed can only return to its last item."""
    if isinstance(source, Reopening):
        return source.again(read_schema(stream, columns), position)
    if isinstance(source, FileInput):
        return source.reopened(stream, read_schema(stream, columns), position)
    return open_input(stream, columns, None, position)
