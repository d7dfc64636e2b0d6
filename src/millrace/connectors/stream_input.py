"""What a host reads a stream from: rows in chunks, from a position that can be saved.

Rules:
- A chunk is raw rows in arrival order; `None` means that there are none now.
- A position is plain data. An input opened at a position gives the rows after it, each once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from millrace.kernel.elements import PARTITION, Times
from millrace.kernel.progress.quarantine import Locate, UnreadRows
from millrace.plan.nodes.endpoints import Stream

Position = Mapping[str, Any]
CHUNK_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class Chunk:
    """Raw rows, and the malformed rows among them.

    >>> chunk = Chunk(pa.RecordBatch.from_pydict({"n": [1, 2, 3]}))
    >>> chunk.part(1, 2).rows.num_rows, chunk.malformed
    (1, 0)
    """

    rows: pa.RecordBatch
    unread: UnreadRows | None = None
    """The malformed rows; they are counted with the first part of a chunk."""
    arrived: Times | None = None
    """When each row arrived, by the clock of the host; None if that is when it was read."""
    locate: Locate | None = None
    """The text and the place of rows by their positions, if the source knows them."""

    @property
    def malformed(self) -> int:
        """How many rows are malformed."""
        return 0 if self.unread is None else len(self.unread)

    def part(self, begin: int, end: int | None = None) -> Chunk:
        """The rows from one position to another."""
        locate, end = self.locate, self.rows.num_rows if end is None else end
        return Chunk(
            self.rows.slice(begin, end - begin),
            None if begin else self.unread,
            None if self.arrived is None else self.arrived[begin:end],
            None if locate is None else (lambda positions: locate(positions + begin)),
        )


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


def read_schema(stream: Stream, columns: list[str]) -> pa.Schema:
    """The columns to read: an internal timestamp is written on arrival, and a computed column is made of others.

    It has at least one column, because rows without columns cannot be counted.
    """
    computed = dict(stream.time.computed)
    inside = {*computed, *([stream.time.column] if stream.time.kind == "internal" else [])}
    outside = [name for name in stream.schema.names if name not in inside]
    needed = {*columns}
    for name, expression in reversed(computed.items()):
        needed |= {*expression.columns()} if name in needed else set()
    wanted = [name for name in outside if name in needed] or outside[:1]
    fields = [stream.schema.field(name) for name in wanted]
    by_source = PARTITION in stream.time.partitions
    return pa.schema([*fields, pa.field(PARTITION, pa.string())] if by_source else fields)
