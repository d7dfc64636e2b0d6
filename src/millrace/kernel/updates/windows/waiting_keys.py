"""Keys that wait for their windows to be committed to, and what closes windows (002 section 6.2): LAZY and EAGER.

Rules:
- EAGER: a row that starts a window makes its key wait, and empties the enqueue buffer of what is before the window.
  LAZY: a window that closes makes its key wait, and overwrites the closed one that has waited so far.
- A row that is in the window under processing goes on with it: a key that is IDLE is READY again.
- A window newer than the committed one that closes is what makes the application stale once that one is delivered.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Mask, Microseconds, Times
from millrace.kernel.updates.policies.key_cells import NONE
from millrace.kernel.updates.policies.row_counts import SUPERSEDED, Counts
from millrace.kernel.updates.windows.key_line import KeyLine
from millrace.kernel.updates.windows.window_buffers import WindowBuffers
from millrace.kernel.updates.windows.window_cells import FAR, FINISHING, OPEN, SHUT
from millrace.kernel.updates.windows.window_keys import WindowKeys
from millrace.kernel.updates.windows.window_spans import Spans


class WaitingKeys(WindowKeys):
    """Keys until they are committed; `tick` is None where the stream's bound closes windows."""

    def __init__(self, spans: Spans, counts: Counts, buffers: WindowBuffers, *, eager: bool, tick: int | None) -> None:
        super().__init__(spans, counts, buffers)
        self.eager = eager
        self.tick = tick
        self.line = KeyLine()
        self.bound = NO_BOUND
        self.policy = "inplace"
        self.cost: float | None = None
        """The order of keys in line, and what a row costs downstream, if that is known."""
        self._ready: deque[int] = deque()
        """Keys under processing, in turn."""
        self._finishing: list[int] = []
        self._under_way: list[int] = []
        self._next_mark = 0
        self._next_place = 0
        self._least = END_OF_TIME
        """No bound below this closes anything."""
        self._next_cut = 0
        self._released_ever = 0
        self._low = END_OF_TIME
        self._released = 0
        """Where the least window starts, and how many rows have left since it was looked for."""

    # Enqueue

    def take(self, port: int, keys: Integers, times: Times, arrivals: Times, rows: pa.RecordBatch) -> None:
        """Rows of one input, all of them accepted."""
        cells = self.cells
        cells.note(port, keys, times, arrivals)
        self._low = min(self._low, int(times.min()))
        newest = self.spans.newest(times)
        self._note_windows(keys, times, newest)
        if self.eager:
            self._start(keys, newest, arrivals)
        self._store(port, keys, times, rows)
        if self.tick is not None:
            self._close_own(keys, times + self.tick, arrivals)

    def _note_windows(self, keys: Integers, times: Times, newest: Times) -> None:
        """Note which windows hold a row first, after the committed, the delivered and the ready one."""
        cells, oldest = self.cells, self.spans.oldest(times)
        after = [(cells.ahead, cells.start), (cells.due, cells.delivered)]
        if not self.eager:
            after.append((cells.following, np.maximum(cells.ready, cells.start)))
        for first, base in after:
            later = newest > base[keys]
            ends = np.maximum(oldest, base[keys] + self.spans.slide)[later] + self.spans.range
            if len(ends):
                np.minimum.at(first, keys[later], ends)
                self._least = min(self._least, int(ends.min()))

    def _start(self, keys: Integers, newest: Times, arrivals: Times) -> None:
        """EAGER: rows that start a window make their key wait, and empty its enqueue buffer."""
        cells = self.cells
        firsts = _firsts(keys, np.flatnonzero((newest > cells.start[keys]) & (cells.place[keys] == NONE)))
        self._wait(keys[firsts], arrivals[firsts])
        owners = np.unique(keys) if len(keys) > 1 else keys
        before = cells.floor[owners]
        np.maximum.at(cells.floor, keys, newest)
        emptied = owners[cells.floor[owners] > before]
        if self.policy == "update_fifo":
            starters = newest == cells.floor[keys]
            self._renew(keys[_firsts(keys, np.flatnonzero(starters & np.isin(keys, emptied)))])
        self.sweep(emptied[self.buffers.counts[emptied] > 0])

    def _wait(self, keys: Integers, moments: Times) -> None:
        """Keys enter WAIT, in this order."""
        self.cells.queue_tau[keys] = moments
        if self.policy == "linecutting_as_printed" and len(keys):
            cuts = self._intervals(keys, int(moments.max())) > self._cycle()
            self._next_cut -= int(cuts.sum())
            self.cells.place[keys[cuts]] = np.arange(self._next_cut, self._next_cut + int(cuts.sum()))[::-1]
            self._stand(keys[cuts])
            keys = keys[~cuts]
        self._renew(keys)

    def _cycle(self) -> float:
        """How long it takes to serve all keys in line once (002 section 5.3: c * n)."""
        rows = self._released_ever / max(self._next_mark, 1)
        return (self.cost or 0.0) * rows * len(self.line)

    def _intervals(self, keys: Integers, now: Microseconds) -> npt.NDArray[np.float64]:
        """The time between two updates of each key: its rows are no updates before the next window."""
        lived = np.maximum(now - self.cells.first[keys], 0)
        return np.maximum(lived / np.maximum(self.cells.updates[keys] - 1, 1), np.minimum(lived, self.spans.slide))

    def _renew(self, keys: Integers) -> None:
        """Give keys that wait the last places, in this order."""
        cells = self.cells
        cells.place[keys] = np.arange(self._next_place, self._next_place + len(keys))
        self._next_place += len(keys)
        self._stand(keys)

    def _stand(self, keys: Integers) -> None:
        """Put keys that wait in line if nothing of theirs is under processing."""
        free = keys[(self.cells.opened[keys] == SHUT) & (self.cells.place[keys] != NONE)]
        self.line.add(free, self.cells.place[free])

    def _store(self, port: int, keys: Integers, times: Times, rows: pa.RecordBatch) -> None:
        """Keep the rows that some window needs, and go on with the committed windows they are in."""
        cells = self.cells
        joins = self.inside(keys, times) & (cells.opened[keys] == OPEN)
        kept = (times >= cells.floor[keys]) | joins
        if not kept.all():
            self.counts.add(SUPERSEDED, port, int((~kept).sum()))
            keys, times, joins = keys[kept], times[kept], joins[kept]
            rows = rows.filter(pa.array(kept))
        self.buffers.append(keys, self.rows.add(rows), times, np.full(len(keys), port))
        np.add.at(cells.pending, keys[joins], 1)
        firsts = _firsts(keys, np.flatnonzero(joins & (cells.turn[keys] == NONE)))
        self._serve_later(keys[firsts])

    def _serve_later(self, keys: Integers) -> None:
        """Keys enter READY, in this order."""
        self.cells.turn[keys] = np.arange(self._next_place, self._next_place + len(keys))
        self._next_place += len(keys)
        self._ready.extend(keys.tolist())

    # Closing

    def close(self, until: Microseconds, moment: Microseconds) -> None:
        """The bound of the stream has advanced; windows that close by it do so at a moment."""
        self.bound = until
        if (self.tick is not None and until != END_OF_TIME) or until < self._least:
            return
        cells, count, bound = self.cells, len(self.cells), min(until, FAR)
        due = np.flatnonzero((cells.due[:count] <= bound) & (cells.application_tau[:count] == NONE))
        self._age(due, np.full(len(due), moment))
        ahead = np.flatnonzero((cells.ahead[:count] <= bound) & (cells.ahead_tau[:count] == NONE))
        self._pass(ahead, np.full(len(ahead), moment))
        following = np.flatnonzero(cells.following[:count] <= bound)
        self._arrive(following, np.full(len(following), bound))
        self._finish(np.flatnonzero(self._idle(slice(count)) & (cells.end[:count] <= bound)))
        self._look_ahead()

    def _close_own(self, keys: Integers, reached: Times, arrivals: Times) -> None:
        """The rows of keys close their windows, each at its arrival."""
        cells = self.cells
        firsts = _firsts(keys, np.flatnonzero((reached >= cells.due[keys]) & (cells.application_tau[keys] == NONE)))
        self._age(keys[firsts], arrivals[firsts])
        firsts = _firsts(keys, np.flatnonzero((reached >= cells.ahead[keys]) & (cells.ahead_tau[keys] == NONE)))
        self._pass(keys[firsts], arrivals[firsts])
        owners = keys[::-1][_firsts(keys[::-1], np.arange(len(keys)))][::-1]
        bounds = self._bounds(owners)
        arrived = cells.following[owners] <= bounds
        self._arrive(owners[arrived], bounds[arrived])
        self._finish(keys[_firsts(keys, np.flatnonzero(self._idle(keys) & (cells.end[keys] <= reached)))])

    def _bounds(self, keys: Integers) -> Times:
        """Up to where the windows of each key are closed."""
        if self.tick is None or self.bound == END_OF_TIME:
            return np.full(len(keys), min(self.bound, FAR))
        return self.cells.last[keys] + self.tick

    def _idle(self, keys: Integers | slice) -> Mask:
        idle: Mask = (self.cells.opened[keys] == OPEN) & (self.cells.turn[keys] == NONE)
        return idle

    def _age(self, keys: Integers, moments: Times) -> None:
        """A window newer than the delivered one has closed: the application's staleness grows."""
        self.cells.application_tau[keys] = moments
        self.cells.touch(keys)

    def _pass(self, keys: Integers, moments: Times) -> None:
        """A window newer than the committed one has closed: that is what makes a key wait if it is LAZY."""
        self.cells.ahead_tau[keys] = moments
        self.cells.touch(keys)
        if not self.eager:
            self._wait(keys, moments)

    def _arrive(self, keys: Integers, bounds: Times) -> None:
        """LAZY: the newest closed window overwrites the one that is ready."""
        if not len(keys):
            return
        cells, spans = self.cells, self.spans
        cells.touch(keys)
        if self.policy == "update_fifo":
            self._renew(keys)
        held, last = self.buffers.held(keys), spans.closed(bounds)
        newest = np.full(len(keys), NO_BOUND)
        before = held.times < (last + spans.range)[held.places]
        np.maximum.at(newest, held.places[before], held.times[before])
        cells.ready[keys] = cells.floor[keys] = np.minimum(last, spans.newest(newest))
        base = cells.ready[keys] + spans.slide
        first = np.full(len(keys), END_OF_TIME)
        after = held.times >= base[held.places]
        np.minimum.at(first, held.places[after], held.times[after])
        cells.following[keys] = _or_never(first, np.maximum(spans.oldest(first), base) + spans.range)
        self.sweep(keys, held)

    def _finish(self, keys: Integers) -> None:
        """The windows of keys that are IDLE have closed."""
        self.cells.turn[keys] = FINISHING - np.arange(self._next_place, self._next_place + len(keys))
        self._next_place += len(keys)
        self.cells.touch(keys)
        self._finishing.extend(keys.tolist())

    def _look_ahead(self) -> None:
        cells, some = self.cells, slice(len(self.cells))
        waits = [
            cells.due[some][cells.application_tau[some] == NONE],
            cells.ahead[some][cells.ahead_tau[some] == NONE],
            cells.following[some],
            cells.end[some][self._idle(some)],
        ]
        self._least = min([int(each.min()) for each in waits if len(each)], default=END_OF_TIME)


def _firsts(keys: Integers, places: Integers) -> Integers:
    """The first of some places of each key, in order."""
    if len(places) < 2:
        return places
    return places[np.sort(np.unique(keys[places], return_index=True)[1])]


def _or_never(given: Times, found: Times) -> Times:
    """What was found where something was given at all."""
    return np.where(given == END_OF_TIME, END_OF_TIME, found)
