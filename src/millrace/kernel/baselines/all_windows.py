"""All windows, or a random share of them: what LAZY and EAGER are compared with (002 section 6.3.1).

Rules:
- Rows leave in the order in which they entered, once for each window that they are in and that is kept; a window is a
  commitment of its own from its first row on. Its closer follows when it is closed and all its rows have left.
- The windows of a key are done in order: a closer waits for those of older windows.
- A window is kept by a hash of its key and start, so that the same ones are kept when rows come again. That is decided
  with its first row: another share holds for windows that begin later. A row that is in no window that is kept is shed.
- A window that closes makes its key stale, kept or not, until it or a later one has been delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.panes.window_geometry import FAR, WindowGeometry
from millrace.kernel.columns.hashing import hashes
from millrace.kernel.columns.integers import Integers, ranges
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Mask, Microseconds, Times, concat_tables
from millrace.kernel.state import Changes
from millrace.kernel.stores.row_blocks import ENTRY, RowBlocks
from millrace.kernel.stores.sorted_runs import SortedRuns
from millrace.kernel.updates.key_cells import NONE
from millrace.kernel.updates.row_counts import LET_GO, SHED, RowCounts
from millrace.kernel.updates.staleness import WindowStaleness
from millrace.kernel.updates.windows.commitments import Release
from millrace.kernel.updates.windows.window_cells import WindowCells

_LOAD = 0.95
"""How much of the work on a row in all its windows a random share leaves, by default."""
_PLACE, _MARK, _PORT, _FIRST, _LAST = "place", "mark", "port", "first", "last"


@dataclass
class _Window:
    """A window of a key: how many of its rows have not left, and when it closed."""

    key: int
    start: int
    kept: bool
    pending: int = 0
    moment: int | None = None
    done: bool = False


class AllWindows:
    """Rows in the order of their arrival, a copy for every window that is kept."""

    def __init__(self, geometry: WindowGeometry, counts: RowCounts, *, tick: int | None, random: bool) -> None:
        self.geometry = geometry
        self.counts = counts
        self.random = random
        self.keep: float | None = None
        """The share of windows to keep; None is all of them."""
        self.tick = tick
        self.bound = NO_BOUND
        self.cells = WindowCells()
        self.staleness = WindowStaleness(self.cells)
        self.rows = RowBlocks()
        self._copies = SortedRuns(_PLACE, concat_tables)
        self._next_place = 0
        self._next_mark = 0
        self._windows: dict[int, _Window] = {}
        """The windows that have not been delivered, by mark; those that are not kept until a later one has."""
        self._marks: dict[tuple[int, int], int] = {}
        """The marks of those that are open, by key and start."""
        self._open: dict[int, list[tuple[int, int]]] = {}
        """The ends and marks of the same, by key if its own rows close them: a heap."""
        self._closed: dict[int, list[int]] = {}
        """The marks of each key that have closed and not been delivered, in order."""
        self._order: dict[int, list[tuple[int, int]]] = {}
        """The starts and marks of the windows of each key that are kept and not done: a heap."""
        self._starts: list[tuple[int, int]] = []
        """The same of all keys, with windows that are done: a heap."""
        self._finishing: list[int] = []
        self._under_way: list[int] = []

    @property
    def due(self) -> bool:
        """True if something could leave now."""
        return bool(len(self._copies) or self._finishing or self._under_way)

    @property
    def wanted(self) -> Microseconds | None:
        """The least bound of the stream that closes something."""
        heap = self._open.get(NONE) if self.tick is None else None
        return heap[0][0] if heap else None

    @property
    def locations(self) -> tuple[int, int]:
        """How many locations are set aside, and how many are in use."""
        return len(self.rows), len(self.rows)

    @property
    def nbytes(self) -> int:
        """The memory of rows and cells."""
        return self.rows.nbytes + self.cells.nbytes

    def configure(self, policy: str, keep: float | None) -> None:
        """Keep another share of the windows that begin later, if they are drawn at random."""
        self.keep = (keep or _LOAD / self.geometry.overlap) if self.random else None

    def grow(self, keys: int) -> None:
        """Have room for this number of keys."""
        self.cells.grow(keys)

    def can_yield(self, keys: Integers) -> Mask:
        """No row makes room for another one: all of them leave."""
        return np.zeros(len(keys), np.bool_)

    def yield_to(self, port: int, keys: Integers) -> None:
        """Nothing has to make room."""

    # Enqueue

    def take(
        self, port: int, keys: Integers, times: Times, arrivals: Times, rows: pa.RecordBatch, cost: float | None
    ) -> None:
        """Rows of one input, all of them accepted."""
        self.cells.note(port, keys, times, arrivals)
        oldest = self.geometry.oldest_starts(times)
        counts = (self.geometry.newest_starts(times) - oldest) // self.geometry.slide + 1
        places = np.repeat(np.arange(len(keys)), counts)
        starts = oldest[places] + ranges(np.zeros_like(counts), counts) * self.geometry.slide
        marks, kept = self._marks_of(keys[places], starts)
        self._add(port, rows, places[kept], marks[kept], len(keys))
        if self.tick is not None:
            for key, time, arrival in zip(keys.tolist(), times.tolist(), arrivals.tolist(), strict=True):
                self._close(key, time + self.tick, arrival)

    def _marks_of(self, keys: Integers, starts: Times) -> tuple[Integers, Mask]:
        """The windows of copies, and which of them are kept."""
        kept = np.ones(len(keys), np.bool_)
        if self.keep is not None:
            kept = hashes([pa.array(keys), pa.array(starts)]).astype(np.float64) / 2.0**64 < self.keep
        marks = np.empty(len(keys), np.int64)
        pairs = zip(keys.tolist(), starts.tolist(), kept.tolist(), strict=True)
        for place, (key, start, keeps) in enumerate(pairs):
            mark = self._marks.get((key, start))
            if mark is None:
                mark = self._open_window(key, start, keeps)
            window = self._windows[mark]
            marks[place], kept[place] = mark, window.kept
            window.pending += window.kept
        return marks, kept

    def _open_window(self, key: int, start: int, kept: bool) -> int:
        mark, self._next_mark = self._next_mark, self._next_mark + 1
        self._windows[mark] = _Window(key, start, kept)
        self._enter(mark)
        return mark

    def _enter(self, mark: int) -> None:
        """Put a window where it is found while it is open."""
        window = self._windows[mark]
        if window.moment is None:
            self._marks[window.key, window.start] = mark
            group = NONE if self.tick is None else window.key
            heappush(self._open.setdefault(group, []), (window.start + self.geometry.range, mark))
        if window.kept:
            heappush(self._starts, (window.start, mark))
        if window.kept and not window.done:
            heappush(self._order.setdefault(window.key, []), (window.start, mark))

    def _add(self, port: int, rows: pa.RecordBatch, places: Integers, marks: Integers, count: int) -> None:
        """Keep rows, and a copy for each window."""
        needed = np.zeros(count, np.bool_)
        needed[places] = True
        self.counts.add(SHED, port, int((~needed).sum()))
        if not needed.any():
            return
        entries = np.empty(count, np.int64)
        entries[needed] = self.rows.add(rows.filter(pa.array(needed)))
        first = np.concatenate([[True], places[1:] != places[:-1]])
        columns = {
            _PLACE: np.arange(self._next_place, self._next_place + len(places)),
            ENTRY: entries[places],
            _MARK: marks,
            _PORT: np.full(len(places), port),
            _FIRST: first,
            _LAST: np.concatenate([first[1:], [True]]),
        }
        self._copies.add(pa.table(columns))
        self._next_place += len(places)

    # Closing

    def close(self, until: Microseconds, moment: Microseconds, cost: float | None) -> None:
        """The bound of the stream has advanced; windows that close by it do so at a moment."""
        self.bound = until
        if self.tick is None or until == END_OF_TIME:
            for group in list(self._open):
                self._close(group, min(until, FAR), moment)

    def _close(self, group: int, bound: Microseconds, moment: Microseconds) -> None:
        heap, changed = self._open.get(group, []), dict[int, None]()
        while heap and heap[0][0] <= bound:
            mark = heappop(heap)[1]
            window = self._windows[mark]
            window.moment = moment
            del self._marks[window.key, window.start]
            self._closed.setdefault(window.key, []).append(mark)
            changed[window.key] = None
            for since in (self.cells.application_since, self.cells.queue_since):
                since[window.key] = moment if since[window.key] == NONE else since[window.key]
        self._finish(changed)

    def _finish(self, keys: Iterable[int]) -> None:
        """Queue the closers of keys that can leave now."""
        for key in keys:
            order = self._order.get(key, [])
            while order:
                window = self._windows[order[0][1]]
                if window.pending or window.moment is None:
                    break
                window.done = True
                self._finishing.append(heappop(order)[1])

    # Dequeue

    def release(self, rows: int, now: Microseconds) -> Release | None:
        """The next rows, at most `rows` of them, or closers."""
        if self._finishing:
            return self._release(None, np.empty(0, np.int64), self._take_finishing(), now)
        if not rows or not len(self._copies):
            return None
        last = self._next_place - max(len(self._copies) - rows, 0) - 1
        copies = concat_tables(self._copies.between(None, last)).sort_by(_PLACE)
        self._copies.drop(last)
        entries, marks = copies.column(ENTRY).to_numpy(), copies.column(_MARK).to_numpy()
        found = self.rows.take(entries)
        self.counts.add_all(LET_GO, copies.column(_PORT).to_numpy()[copies.column(_FIRST).to_numpy()])
        self.rows.release(entries[copies.column(_LAST).to_numpy()])
        changed: dict[int, None] = {}
        for mark, count in zip(*(each.tolist() for each in np.unique(marks, return_counts=True)), strict=True):
            window = self._windows[mark]
            window.pending -= count
            changed[window.key] = None
        self._finish(changed)
        return self._release(found, marks, self._take_finishing(), now)

    def _take_finishing(self) -> Integers:
        marks = sorted(self._finishing, key=lambda mark: self._windows[mark].start)
        self._finishing.clear()
        return np.array(marks, np.int64)

    def _release(self, rows: pa.RecordBatch | None, marks: Integers, closers: Integers, now: Microseconds) -> Release:
        self._under_way.extend(closers.tolist())
        windows = [self._windows[mark] for mark in closers.tolist()]
        keys = np.unique(np.array([window.key for window in windows], np.int64))
        self.cells.touch(keys)
        self.staleness.commit(keys, now)
        return Release(rows, marks, closers, np.array([each.start + self.geometry.range for each in windows], np.int64))

    def rest(self, now: Microseconds) -> None:
        """All that was released has been processed downstream."""
        newest: dict[int, int] = {}
        for mark in self._under_way:
            window = self._windows[mark]
            newest[window.key] = max(newest.get(window.key, NO_BOUND), window.start)
        self._under_way.clear()
        for key, start in newest.items():
            closed = self._closed[key]
            while closed and self._windows[closed[0]].start <= start:
                mark = closed.pop(0)
                del self._windows[mark]
            self._deliver(key, closed, now)

    def _deliver(self, key: int, closed: list[int], now: Microseconds) -> None:
        """A window of a key has been delivered; the first one that has closed since makes it stale from then on."""
        moment = self._windows[closed[0]].moment if closed else None
        keys = np.array([key])
        self.cells.touch(keys)
        self.staleness.deliver(keys, np.array([NONE if moment is None else moment]), now)

    # What is known

    def low(self) -> Microseconds:
        """A bound of what may still leave: the bound of the stream, or less."""
        while self._starts and self._is_done(self._starts[0][1]):
            heappop(self._starts)
        return min(self.bound, self._starts[0][0] if self._starts else END_OF_TIME)

    def _is_done(self, mark: int) -> bool:
        """True if the closer of a window has been released."""
        return mark not in self._windows or (self._windows[mark].done and mark not in self._finishing)

    def next_wait(self, now: Microseconds) -> tuple[float, float, int]:
        """For how long the answers of keys have waited, at most; the time between updates; and the rows of a window."""
        since = self.cells.application_since[: self.cells.count]
        stale = since[since != NONE]
        return (now - int(stale.min()) if len(stale) else 0), self.geometry.slide, 1

    def check(self, most: int | None = None) -> None:
        """Assert what always holds."""
        held = sum(int(table.column(_FIRST).to_numpy().sum()) for table in self._copies.between(None, END_OF_TIME))
        assert held == self.counts.whole().waiting, "rows are not accounted for"

    # State

    def note(self) -> dict[str, Any]:
        """What is saved besides cells and rows: the windows that have not been delivered."""
        windows = [[mark, *vars(window).values()] for mark, window in self._windows.items()]
        return {
            "bound": self.bound,
            "mark": self._next_mark,
            "place": self._next_place,
            "windows": windows,
            "finishing": list(self._finishing),
            "under_way": list(self._under_way),
        }

    def changes(self) -> list[Changes]:
        """What changed since the last save: cells, rows, copies."""
        return [self.cells.changes(), self.rows.changes(), self._copies.changes()]

    def restore(
        self, stores: list[Changes], note: Mapping[str, Any], numbers: Callable[[pa.RecordBatch], Integers]
    ) -> None:
        """Go on from what was saved."""
        cells, rows, copies = stores
        self.cells.restore(cells)
        self._copies.restore(copies)
        entries = [table.column(ENTRY).to_numpy() for table in self._copies.between(None, END_OF_TIME)]
        self.rows.restore(rows, np.unique(np.concatenate([np.empty(0, np.int64), *entries])))
        self.bound, self._next_mark, self._next_place = note["bound"], note["mark"], note["place"]
        self._finishing, self._under_way = list(note["finishing"]), list(note["under_way"])
        for mark, *window in note["windows"]:
            self._windows[mark] = _Window(*window)
            self._enter(mark)
        closed = [mark for mark, window in self._windows.items() if window.moment is not None]
        for mark in sorted(closed, key=lambda mark: self._windows[mark].start):
            self._closed.setdefault(self._windows[mark].key, []).append(mark)
