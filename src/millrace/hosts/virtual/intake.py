"""The inputs of a run in virtual time: rows in order of arrival, read as the clock reaches them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.connectors.files.file_options import FORMATS
from millrace.connectors.inputs import open_input, reopen_input
from millrace.connectors.opened_source import is_sourced
from millrace.errors import RequestError
from millrace.hosts.arrivals import arrivals
from millrace.hosts.virtual.clock import VirtualClock
from millrace.kernel.elements import ARRIVED, NO_BOUND, Batch, Microseconds, Times
from millrace.kernel.graph.executor import Executor
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.quarantine import Locate, UnreadRows
from millrace.plan.nodes.endpoints import Stream


class ArrivingRows:
    """The rows of one stream in order of arrival."""

    def __init__(
        self, stream: Stream, ingress: Ingress, columns: list[str], feed: Iterable[Any] | None, tick: int
    ) -> None:
        if stream.connector.format in FORMATS and stream.connector.options.get("order_by", "").lower() == "arrival":
            raise RequestError(
                f'files of stream "{stream.name}" do not arrive in virtual time: all are there when it begins',
                hint="Say order_by 'name' or 'modified'.",
            )
        self.stream = stream
        self.tick = tick
        self.columns = columns
        self._ingress = ingress
        if feed is None and is_sourced(stream):
            raise RequestError(
                f'stream "{stream.name}" comes from "{stream.connector.format}", whose rows arrive in real time',
                hint="Run it on local or on Spark.",
            )
        self._source = open_input(stream, columns, feed, None)
        self._before = self._source.position()
        self._batch: Batch | None = None
        self._stamped = False
        self._times: Times = np.empty(0, np.int64)
        self._at = 0
        self._next: Microseconds | None = None
        self.unread: list[UnreadRows] = []
        """Malformed rows that have not been counted yet."""
        self._locate: Locate | None = None
        self._advance(0)

    @property
    def next_time(self) -> Microseconds | None:
        """When the next row arrives; None when none will."""
        return self._next

    def _advance(self, at: int) -> None:
        self._at = at
        while self._at >= len(self._times):
            self._before = self._source.position()
            chunk = self._source.read()
            if chunk is None:
                self._next = None
                return
            self._load(chunk.rows)
            self._locate = chunk.locate
            self.unread += [chunk.unread] if chunk.unread else []
        self._next = int(self._times[self._at])

    def _load(self, rows: pa.RecordBatch) -> None:
        times = arrivals(self.stream, rows, int(self._times[-1]) if len(self._times) else NO_BOUND)
        if times is None:
            raise RequestError(
                f'stream "{self.stream.name}" does not say when its rows arrive',
                hint="Add REPLAY BY column after FROM, or use FROM generate.",
            )
        if ARRIVED not in rows.schema.names:
            rows = rows.append_column(ARRIVED, pa.array(times))
        if self.tick:
            times = -(-times // self.tick) * self.tick
        stamped = self._ingress.stamped_ahead(rows, times)
        self._batch = Batch(rows if stamped is None else stamped)
        self._stamped = stamped is not None
        self._times, self._at = times, 0

    def again(self, columns: list[str]) -> ArrivingRows:
        """The same arrivals with other columns, as far as they have come."""
        after = copy(self)
        after.columns = columns
        after._source = reopen_input(self._source, self.stream, columns, self._before)
        if self._next is not None:
            chunk = after._source.read()
            assert chunk is not None
            after._times = self._times[:0]
            after._load(chunk.rows)
            after._times, after._at = self._times, self._at
        return after

    def push(self, executor: Executor, now: Microseconds) -> None:
        """Push the rows of the present chunk that have arrived by now."""
        assert self._batch is not None
        end = int(np.searchsorted(self._times, now, side="right"))
        begin, known = self._at, self._locate
        piece = self._batch.slice(begin, end - begin)
        locate = None if known is None else (lambda positions: known(positions + begin))
        if self._stamped:
            executor.edges.push_stamped_ahead(self.stream.name, piece, now, locate)
        else:
            executor.push(self.stream.name, piece.rows, now, locate)
        if self.stream.time.partitions:
            executor.ingress[self.stream.name].read_until = now
        self._advance(end)


class SilentStreams:
    """The streams whose arrived rows have all been pushed, at whatever moment the clock has come to."""

    def __init__(self, streams: Mapping[str, ArrivingRows], clock: VirtualClock) -> None:
        self.streams = streams
        self.clock = clock

    def __contains__(self, name: object) -> bool:
        due = self.streams[str(name)].next_time
        return due is None or due > self.clock.time
