"""The input of a stream that a source reads: all its partitions, from positions that are kept.

Rules:
- Partitions that there are at the first look begin where the source says, those that come later at their first place.
- A bounded run reads up to where the partitions ended at its first look.
- `settled` is the clock up to which everything that had come was read: a partition with unread rows counts as read
  until its last rows were, so that it is never taken for silent, and holds no other back.
- A source that does not answer is asked again; after a while that is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from millrace.connectors.opened_source import check_positions, named_rows, open_source, row_limit, unread_rows
from millrace.connectors.source import PartitionSpan, Source, SourcePiece, Unreachable
from millrace.connectors.stream_input import CHUNK_ROWS, Chunk, Position
from millrace.kernel.elements import Microseconds
from millrace.plan.nodes.endpoints import Stream

_LOOK = 1_000_000
"""Microseconds between two looks for new partitions."""
_SILENCE = 10_000
"""Microseconds between two looks while there is nothing to read, if silence is to be known."""
PATIENCE = 60.0
"""Seconds that a source may not answer."""


def system_now() -> Microseconds:
    """The clock of the machine."""
    return time.time_ns() // 1000


class PartitionedInput:
    """What a source gives, in chunks; without `live`, up to where it ended when it was opened."""

    def __init__(
        self,
        stream: Stream,
        schema: pa.Schema,
        position: Position | None,
        *,
        live: bool = False,
        now: Callable[[], Microseconds] = system_now,
    ) -> None:
        self.stream, self.schema = stream, schema
        self.source: Source = open_source(stream, schema)
        self.positions: dict[str, int] = dict(position["positions"]) if position else {}
        self.settled: Microseconds | None = None
        self.more = False
        """True if the last read gave rows, so that another may."""
        self._live, self._now = live, now
        self._resumed = position is not None
        self._most = min(row_limit(stream) or CHUNK_ROWS, CHUNK_ROWS)
        self._silence = live and stream.time.ets != "none"
        self._spans: dict[str, PartitionSpan] = {}
        self._heard: dict[str, Microseconds] = {}
        """When rows of each partition were last read, or it was last known to have none."""
        self._looked: Microseconds = 0
        self._failing: float | None = None
        """Since when the source does not answer."""
        self._look()

    @property
    def partitions(self) -> list[str]:
        """The partitions that are known."""
        return list(self.positions)

    @property
    def finished(self) -> bool:
        """True if no rows will follow."""
        return not self._live and not self._unread()

    @property
    def pending(self) -> bool:
        """True if a bounded run has not read all that it shall."""
        return not self.finished and not self._live

    def read(self, limit: int | None = None) -> Chunk | None:
        """The next rows, or so many of them; None if there are none now."""
        most = self._most if limit is None else min(limit, self._most)
        pieces = [] if self.finished else self._polled(most)
        for piece in pieces:
            self.positions[piece.partition] = piece.position
            if piece.rows.num_rows or piece.unread:
                self._heard[piece.partition] = self._now()
        batches = [named_rows(piece, self.schema) for piece in pieces if piece.rows.num_rows]
        unread = unread_rows(pieces)
        self.more = bool(batches)
        if self._live and self._is_due():
            self._try_to_look()
        self.settled = self._settled()
        if not batches and unread is None:
            return None
        return Chunk(pa.concat_batches(batches) if batches else _empty(self.schema), unread)

    def position(self) -> dict[str, Any]:
        """Where each partition goes on."""
        return {"positions": dict(self.positions)}

    def again(self, schema: pa.Schema, position: Position) -> PartitionedInput:
        """The same rows with other columns, from a position."""
        self.source.close()
        after = PartitionedInput(self.stream, schema, position, live=self._live, now=self._now)
        if not self._live:
            after._spans = self._spans
        return after

    def _polled(self, most: int) -> list[SourcePiece]:
        try:
            return list(self.source.poll(self.positions, self._spans, most, bounded=not self._live))
        except Unreachable as error:
            self._wait(error)
            return []

    def _unread(self) -> list[str]:
        """The partitions of which something is known to be unread."""
        return [
            partition
            for partition, span in self._spans.items()
            if self.positions[partition] < span.end or (span.busy and self._live)
        ]

    def _is_due(self) -> bool:
        since = self._now() - self._looked
        return since >= _LOOK or (self._silence and not self.more and since >= _SILENCE)

    def _try_to_look(self) -> None:
        try:
            self._look()
            self._failing = None
        except Unreachable as error:
            self._wait(error)

    def _wait(self, error: Unreachable) -> None:
        """Return if the source may answer again; raise why it does not after a while."""
        self._failing = time.monotonic() if self._failing is None else self._failing
        if time.monotonic() - self._failing > PATIENCE:
            raise error
        if not self._live:
            time.sleep(0.1)

    def _look(self) -> None:
        """Learn which partitions there are, and where each ends."""
        looked = self._now()
        spans = dict(self.source.spans())
        check_positions(self.stream.name, self.positions, spans)
        fresh = {partition: span for partition, span in spans.items() if partition not in self.positions}
        begins = self.source.starts(fresh) if not (self._resumed or self._spans) else {}
        for partition, span in fresh.items():
            self.positions[partition] = begins.get(partition, span.first)
        self._spans, self._looked = spans, looked
        for partition in spans.keys() - self._unread():
            self._heard[partition] = looked

    def _settled(self) -> Microseconds | None:
        heard = [self._heard.get(partition) for partition in self._unread()]
        known = [each for each in heard if each is not None]
        return None if len(known) < len(heard) else min([self._looked, *known])


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema)
