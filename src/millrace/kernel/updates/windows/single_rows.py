"""One row at a time: the same as for a batch, without columns, which cost as much for one row as for a hundred."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Microseconds, Times
from millrace.kernel.updates.policies.key_cells import NONE
from millrace.kernel.updates.policies.row_counts import SUPERSEDED
from millrace.kernel.updates.windows.waiting_keys import WaitingKeys
from millrace.kernel.updates.windows.window_cells import OPEN


class SingleRows(WaitingKeys):
    """Keys until they are committed; takes single rows the short way."""

    def take(self, port: int, keys: Integers, times: Times, arrivals: Times, rows: pa.RecordBatch) -> None:
        if len(keys) == 1 and self.policy != "update_fifo":
            self._take_one(port, int(keys[0]), int(times[0]), int(arrivals[0]), rows)
        else:
            super().take(port, keys, times, arrivals, rows)

    def _take_one(self, port: int, key: int, time: int, arrival: Microseconds, row: pa.RecordBatch) -> None:
        cells = self.cells
        cells.touch(key)
        if cells.first[key] == NONE:
            cells.first[key] = arrival
        cells.updates[key] += 1
        cells.last[key] = max(time, cells.last.item(key))
        cells.port[key] = port
        self._low = min(self._low, time)
        newest = time - (time - self.spans.origin) % self.spans.slide
        self._note_one(key, time, newest)
        if self.eager:
            self._start_one(key, newest, arrival)
        self._store_one(port, key, time, row)
        if self.tick is not None:
            self._close_one(key, time + self.tick, arrival)

    def _note_one(self, key: int, time: int, newest: int) -> None:
        """Note which windows hold a row first, after the committed, the delivered and the ready one."""
        cells, spans = self.cells, self.spans
        oldest = newest - (spans.range - 1 - (time - newest)) // spans.slide * spans.slide
        start = cells.start.item(key)
        after = [(cells.ahead, start), (cells.due, cells.delivered.item(key))]
        if not self.eager:
            after.append((cells.following, max(cells.ready.item(key), start)))
        for first, base in after:
            if newest > base:
                end = max(oldest, base + spans.slide) + spans.range
                first[key] = min(end, first.item(key))
                self._least = min(self._least, end)

    def _start_one(self, key: int, newest: int, arrival: Microseconds) -> None:
        """EAGER: a row that starts a window makes its key wait, and empties its enqueue buffer."""
        cells = self.cells
        if cells.place[key] == NONE and newest > cells.start.item(key):
            self._wait(np.array([key]), np.array([arrival]))
        if newest > cells.floor.item(key):
            cells.floor[key] = newest
            if self.buffers.counts[key]:
                self.sweep(np.array([key]))

    def _store_one(self, port: int, key: int, time: int, row: pa.RecordBatch) -> None:
        """Keep a row if some window needs it, and go on with the committed window if it is in it."""
        cells = self.cells
        joins = cells.opened[key] == OPEN and cells.start.item(key) <= time < cells.end.item(key)
        if not joins and time < cells.floor.item(key):
            self.counts.add(SUPERSEDED, port, 1)
            return
        self.buffers.append_one(key, int(self.rows.add(row)[0]), time, port)
        if joins:
            cells.pending[key] += 1
            if cells.turn[key] == NONE:
                self._serve_later(np.array([key]))

    def _close_one(self, key: int, bound: int, arrival: Microseconds) -> None:
        """The row of a key closes its windows."""
        cells, closes = self.cells, False
        for first, tau in ((cells.due, cells.application_tau), (cells.ahead, cells.ahead_tau)):
            closes = closes or (bound >= first.item(key) and tau.item(key) == NONE)
        if closes or bound >= cells.following.item(key) or (bound >= cells.end.item(key) and cells.opened[key] == OPEN):
            self._close_own(np.array([key]), np.array([bound]), np.array([arrival]))
