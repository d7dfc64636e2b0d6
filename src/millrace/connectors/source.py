"""The contract of a source: rows in partitions, each read from a position that can be kept.

Rules:
- A partition is a sequence with numbered places: offsets, sequence numbers, bytes. A position is the number of the next
  place. Places may be empty; what stands at a place never changes.
- A run asks for `spans`, keeps positions in its checkpoint and reads on from them, on every host. Each row is read
  once, and again after a kill.
- Order, progress and silence are those of each partition: see `TimeContract.by_source_partition`.
- One thread calls a source. On Spark the driver has one, for spans, and so has each task, for rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from millrace.errors import RunError


@dataclass(frozen=True, slots=True)
class PartitionSpan:
    """What a partition holds now: the places from `first` up to `end`, without `end`."""

    first: int
    end: int
    busy: bool = False
    """True if rows are on their way that cannot be read yet: then the partition is not silent."""


@dataclass(frozen=True, slots=True)
class UnreadPlace:
    """What could not be read as a row: its position, its text, and why."""

    position: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class SourcePiece:
    """Rows of one partition, the position after them, and what was left out among them."""

    partition: str
    rows: pa.RecordBatch
    position: int
    unread: tuple[UnreadPlace, ...] = ()


class Unreachable(RunError):
    """What holds the rows does not answer now; a run tries again for a while."""


class Source(ABC):
    """Reads the rows of one stream.

    Name such a class in SQL, `CREATE STREAM s (...) FROM python OPTIONS (source 'package.module:Class', ...)`, or give
    it a format of its own with an entry point of the group `millrace.sources`.

    >>> class Letters(Source):
    ...     def spans(self) -> dict[str, PartitionSpan]:
    ...         return {name: PartitionSpan(0, len(name)) for name in self.options["words"].split()}
    ...
    ...     def read(self, partition: str, start: int, stop: int) -> Iterator[SourcePiece]:
    ...         rows = pa.record_batch([pa.array(list(partition[start:stop]))], schema=self.schema)
    ...         yield SourcePiece(partition, rows, stop)
    >>> letters = Letters({"words": "to be"}, pa.schema([("letter", pa.string())]), "letters")
    >>> [piece.rows.to_pydict() for piece in letters.poll({"to": 1, "be": 2}, letters.spans(), most=10)]
    [{'letter': ['o']}]
    """

    def __init__(
        self, options: Mapping[str, str], schema: pa.Schema, stream: str, declared: pa.Schema | None = None
    ) -> None:
        """Open what holds the rows of a stream; `schema` has the columns to read, some of those `declared`.

        `options` are those of the stream, with what their references to secrets stand for.
        """
        self.options, self.schema, self.stream = options, schema, stream
        self.declared = schema if declared is None else declared

    @abstractmethod
    def spans(self) -> Mapping[str, PartitionSpan]:
        """The partitions that there are now, by name, and what each holds."""

    @abstractmethod
    def read(self, partition: str, start: int, stop: int) -> Iterator[SourcePiece]:
        """The rows of a partition from one position up to another; the last piece ends at `stop`.

        It is called for places that a span has held.
        """

    def starts(self, spans: Mapping[str, PartitionSpan]) -> Mapping[str, int]:
        """Where a run without a checkpoint begins; a partition that comes later is read from its first place."""
        return {partition: span.first for partition, span in spans.items()}

    def poll(
        self, positions: Mapping[str, int], spans: Mapping[str, PartitionSpan], most: int, *, bounded: bool = False
    ) -> Iterable[SourcePiece]:
        """What can be read after some positions without a wait, about `most` places of it; nothing if there is nothing.

        `spans` are those last asked for. A source that is told of rows as they come may give rows after them, unless
        the run is `bounded` by them.
        """
        for partition, start in positions.items():
            stop = min(spans[partition].end, start + most)
            if stop > start:
                most -= stop - start
                yield from self.read(partition, start, stop)
            if most <= 0:
                return

    def close(self) -> None:  # noqa: B027
        """Release what was opened. Not called after a kill."""
