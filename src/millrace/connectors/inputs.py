"""The rows of a stream in chunks, from a position that can be saved.

Rules:
- A chunk is raw rows in arrival order; `None` means that there are none now.
- A position is plain data. An input opened at a position gives the rows after it, each once.
- Files that have been read must stay as they are: one that was rewritten, replaced or cut off is an error, when an
  input is opened and while it is read. What a file has gained at its end is not looked at again.
- Folders are read in name order. A file that sorts before one already read is an error: it would be missed.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from millrace.connectors.files.file_options import FORMATS
from millrace.connectors.files.file_reader import read_file
from millrace.connectors.files.file_stamp import FileStamp, check_stamp, stamp
from millrace.connectors.files.input_files import list_files, sort_key
from millrace.connectors.generators import nexmark, random_rows
from millrace.connectors.native import DATAFRAME, is_generated, refuse_source
from millrace.errors import RunError, listed
from millrace.kernel.columns.casts import cast
from millrace.kernel.elements import ARRIVED, Times
from millrace.plan.nodes.endpoints import Stream

Position = Mapping[str, Any]
CHUNK_ROWS = 131_072
_CHECKED = 16
"""Files that have been read which are looked at again, in turn, whenever new ones are looked for."""
_WAITS = 0.02
"""Seconds after which an iterable that has not given its next rows is one that waits for them."""
_GENERATORS = {"generate": random_rows, "nexmark": nexmark}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Raw rows, and the number of malformed rows among them."""

    rows: pa.RecordBatch
    malformed: int = 0
    arrived: Times | None = None
    """When each row arrived, by the clock of the host; None if that is when it was read."""


class StreamInput(Protocol):
    """What a host reads a stream from."""

    @property
    def finished(self) -> bool:
        """True if no rows will follow."""

    @property
    def pending(self) -> bool:
        """True if rows are held for a later time."""

    @property
    def more(self) -> bool:
        """True if what comes is in small pieces, so that more of it is worth a read, which will not wait."""

    def read(self) -> Chunk | None:
        """The next rows; None if there are none now."""

    def position(self) -> dict[str, Any]:
        """Where the next chunk begins."""


@runtime_checkable
class Reopening(Protocol):
    """An input that can itself be read again with other columns."""

    def again(self, schema: pa.Schema, position: Position) -> StreamInput:
        """The same rows with other columns, from a position; use it instead of this one."""


@runtime_checkable
class InputFeed(Protocol):
    """A feed that opens its input itself, at positions of its own."""

    def open(self, stream: Stream, schema: pa.Schema, position: Position | None) -> StreamInput:
        """The input at a position (None: the beginning)."""

    def __iter__(self) -> Iterator[Any]:
        """All its rows."""


def open_input(
    stream: Stream,
    columns: list[str],
    feed: Iterable[Any] | None,
    position: Position | None,
    read: Mapping[int, FileStamp] | None = None,
) -> StreamInput:
    """A stream's input at a position (None: the beginning); `read` are the stamps of the files before it."""
    schema = read_schema(stream, columns)
    if isinstance(feed, InputFeed):
        return feed.open(stream, schema, position)
    if feed is not None and stream.connector.format != DATAFRAME:
        return FeedInput(stream, schema, feed, position)
    if is_generated(stream.connector):
        return GeneratedInput(stream, schema, position)
    if stream.connector.format not in FORMATS:
        raise refuse_source(stream)
    return FileInput(stream, schema, position, read)


def reopen_input(source: StreamInput, stream: Stream, columns: list[str], position: Position) -> StreamInput:
    """The input with other columns, from one of its positions; a feed can only return to its last item."""
    if isinstance(source, Reopening):
        return source.again(read_schema(stream, columns), position)
    after = open_input(stream, columns, None, position, source.read_files if isinstance(source, FileInput) else None)
    if isinstance(source, FileInput) and isinstance(after, FileInput):
        after.unsaved |= source.unsaved & after.read_files.keys()
    return after


def read_schema(stream: Stream, columns: list[str]) -> pa.Schema:
    """The columns to read: an internal timestamp is written on arrival, not read.

    It has at least one column, because rows without columns cannot be counted.
    """
    inside = {stream.time.column} if stream.time.kind == "internal" else set()
    outside = [name for name in stream.schema.names if name not in inside]
    wanted = [name for name in columns if name not in inside] or outside[:1]
    return pa.schema([stream.schema.field(name) for name in wanted])


class FileInput:
    """Files of a folder in name order, followed as new ones come; a read gives as much of a file as is worth a turn."""

    pending = False
    more = False

    def __init__(
        self,
        stream: Stream,
        schema: pa.Schema,
        position: Position | None,
        read: Mapping[int, FileStamp] | None = None,
    ) -> None:
        self.stream = stream
        self.schema = schema
        self.finished = False
        self._position = dict(position or {"files": 0, "last": "", "rows": 0})
        self._paths = list_files(stream.connector, stream.name)
        self._batches: Iterator[Any] = iter(())
        self.read_files = {number: each for number, each in (read or {}).items() if number < self._position["files"]}
        """The stamps of the files that were read whole, by their number."""
        self.unsaved: set[int] = set()
        """The numbers of those that are in no checkpoint yet."""
        self._next_checked = 0
        stamped = self._position.pop("stamp", None)
        self._stamp = FileStamp.of(stamped) if stamped else None
        self._read = self._stamp.read if self._stamp else 0
        self._open()
        for number in self.read_files:
            self._check(number)
        self._check_open()

    def read(self) -> Chunk | None:
        """The next rows of the open file, or of the one after it."""
        while True:
            batch = next(self._batches, None)
            if batch is not None:
                self._position["rows"] += batch.rows.num_rows + batch.malformed
                self._read = batch.read or self._read
                return Chunk(batch.rows, batch.malformed)
            if not self._advance():
                return None

    def position(self) -> dict[str, Any]:
        """The number of files read whole, the name of the last, the rows read of the next, and what was read of it."""
        if self._read and self._position["files"] < len(self._paths):
            self._check_open()
            if self._stamp is None or self._stamp.read != self._read:
                self._stamp = stamp(self._paths[self._position["files"]], self._read)
        return {**self._position, **({"stamp": self._stamp.data()} if self._stamp else {})}

    def _check(self, number: int) -> None:
        """Fail if a file that was read whole has changed."""
        self.read_files[number] = check_stamp(self._paths[number], self.read_files[number], self.stream.name)

    def _check_open(self) -> None:
        """Fail if what was read of the open file has changed."""
        if self._stamp is not None:
            self._stamp = check_stamp(self._paths[self._position["files"]], self._stamp, self.stream.name)

    def _open(self) -> None:
        """Open the file after those read whole, if there is one."""
        read, last = self._position["files"], self._position["last"]
        known = bisect_right(self._paths, sort_key(last), key=sort_key) if last else 0
        if known != read:
            raise RunError(
                f'stream "{self.stream.name}" has {known} files up to "{last}", but {read} were read',
                hint="Give new files names that sort after the old ones, and leave the old ones in place.",
            )
        self._batches = iter(())
        if read < len(self._paths):
            rows = self._position["rows"]
            self._batches = read_file(
                Path(self._paths[read]), self.stream.connector, self.schema, batch_rows=CHUNK_ROWS, skip_rows=rows
            )

    def _advance(self) -> bool:
        """Open the next file; False if there is none."""
        read = self._position["files"]
        if read < len(self._paths):
            self._check_open()
            self.read_files[read] = stamp(self._paths[read])
            self.unsaved.add(read)
            self._stamp, self._read = None, 0
            self._position = {"files": read + 1, "last": self._paths[read], "rows": 0}
        if read + 1 >= len(self._paths):
            self._paths = list_files(self.stream.connector, self.stream.name)
            self._open()
            self._check_some()
        else:
            self._open()
        return self._position["files"] < len(self._paths)

    def _check_some(self) -> None:
        """Look at some of the files that were read, after those of the last time."""
        count = len(self.read_files)
        for number in range(self._next_checked, min(self._next_checked + _CHECKED, count)):
            if number in self.read_files:
                self._check(number)
        self._next_checked = 0 if self._next_checked + _CHECKED >= count else self._next_checked + _CHECKED


class GeneratedInput:
    """The slices of a generated stream."""

    pending = False
    more = True

    def __init__(self, stream: Stream, schema: pa.Schema, position: Position | None) -> None:
        self.stream = stream
        self.schema = schema
        self._slices = slices_of(stream)
        self._next = int(position["slice"]) if position else 0

    @property
    def finished(self) -> bool:
        """True if all slices have been read."""
        return self._next >= self._slices

    def read(self) -> Chunk | None:
        """The next slice."""
        if self.finished:
            return None
        self._next += 1
        return Chunk(make_slice(self.stream, self.schema, self._next - 1))

    def position(self) -> dict[str, Any]:
        """The number of the next slice."""
        return {"slice": self._next}


def slices_of(stream: Stream) -> int:
    """How many slices a generated stream has; refuses wrong options.

    A slice is a function of the options and its number: slices can be made in parallel, and again after a restart.
    """
    return _GENERATORS[stream.connector.format].options_of(stream).slices


def make_slice(stream: Stream, schema: pa.Schema, number: int) -> pa.RecordBatch:
    """The rows of a slice, in order of arrival, with their arrival in `__arrived`."""
    return _GENERATORS[stream.connector.format].generate(stream, schema, number)


class FeedInput:
    """Rows from a Python iterable: record batches, tables, or lists of dictionaries.

    One that waits for its next rows gives one item at a time, until it says by an empty one that there are none now.
    """

    pending = False

    def __init__(self, stream: Stream, schema: pa.Schema, feed: Iterable[Any], position: Position | None) -> None:
        self.stream = stream
        self.schema = schema
        self.finished = False
        self.more = True
        self._items = iter(feed)
        self._taken = 0
        self._last: Any = None
        for _ in range(int(position["items"]) if position else 0):
            next(self._items, None)
            self._taken += 1

    def read(self) -> Chunk | None:
        """The next item that holds rows."""
        began = time.monotonic()
        item = next(self._items, None)
        # Rows that were read must not wait until a generator that waits has more.
        self.more = self.more and time.monotonic() - began < _WAITS
        if item is None:
            self.finished = True
            return None
        self._taken += 1
        self._last = item
        rows = as_rows(item, self.schema, self.stream.name)
        self.more = self.more or not rows.num_rows
        return Chunk(rows)

    def again(self, schema: pa.Schema, position: Position) -> FeedInput:
        """The same feed with other columns, from here or from the item before; use it instead of this one."""
        after = copy(self)
        after.schema = schema
        if position["items"] < self._taken:
            after._items, after._taken = _from_last(self._last, self._items), self._taken - 1
        return after

    def position(self) -> dict[str, Any]:
        """How many items have been taken."""
        return {"items": self._taken}


def _from_last(last: Any, items: Iterator[Any]) -> Iterator[Any]:
    """An item again, and those that follow it; `iter` is not called again, which a feed may refuse."""
    yield last
    while (item := next(items, None)) is not None:
        yield item


def as_rows(item: Any, schema: pa.Schema, stream: str) -> pa.RecordBatch:
    """An item of a feed as rows of a schema, with their arrival if the item holds it."""
    try:
        if isinstance(item, dict):
            item = [item]
        if isinstance(item, list):
            return pa.RecordBatch.from_arrays([_values(item, field, stream) for field in schema], schema=schema)
        table = pa.table(item)
        if ARRIVED in table.schema.names:
            schema = schema.append(pa.field(ARRIVED, pa.int64()))
        table = table.select(schema.names)
        for position, field in enumerate(schema):
            table = table.set_column(position, field.name, _timed(table.column(position), field, stream))
        table = table.cast(schema).combine_chunks()
        return table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema=schema)
    except (pa.ArrowException, KeyError, TypeError, AttributeError) as error:
        raise RunError(
            f'stream "{stream}" was fed rows that do not fit its columns: {str(error).splitlines()[0]}',
            hint=f"Feed record batches, tables or lists of dictionaries with the columns {listed(schema.names)}.",
        ) from error


def _values(rows: list[dict[str, Any]], field: pa.Field, stream: str) -> pa.Array:
    """One column of rows; a time or a date may be written as text."""
    values = [row.get(field.name) for row in rows]
    if pa.types.is_timestamp(field.type):
        # Arrow would cut a fraction off and take the rest as microseconds.
        fraction = next((value for value in values if isinstance(value, (float, np.floating))), None)
        if fraction is not None:
            raise _fraction(field, stream, fraction)
        if any(isinstance(value, str) for value in values):
            return _times(pa.array(values, pa.string()), field)
    if pa.types.is_date(field.type) and all(isinstance(value, str | None) for value in values):
        return pa.array(values, pa.string()).cast(field.type)
    return pa.array(values, field.type)


def _timed(column: pa.ChunkedArray, field: pa.Field, stream: str) -> pa.ChunkedArray:
    """One column of a table; a time may be written as text."""
    if not pa.types.is_timestamp(field.type):
        return column
    if pa.types.is_floating(column.type) and column.null_count < len(column):
        raise _fraction(field, stream, column.drop_null()[0])
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _times(column.cast(pa.string()), field)
    return column


def _times(text: Any, field: pa.Field) -> Any:
    """Text as times; refuses other text."""
    times = cast(text, field.type)
    if times.null_count > text.null_count:
        raise TypeError(f'"{field.name}" is no time like 2024-01-01 00:00:00')
    return times


def _fraction(field: pa.Field, stream: str, value: object) -> RunError:
    return RunError(
        f'stream "{stream}" was fed the fraction {value} for the time "{field.name}"',
        hint="Give a datetime, text like 2024-01-01 00:00:00, or whole microseconds since 1970.",
    )
