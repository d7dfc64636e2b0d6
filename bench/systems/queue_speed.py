"""What keeps the newest row of each key until it is read: our queue, and what a user writes around a dict.

All of them remember the time of the newest row of every key, so that a key never goes back, and hold the rows that have
not left yet. The dicts let rows go in any order, and know nothing of staleness; the queue keeps the line.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.measures.memory import resident
from millrace.kernel.elements import TIME, Batch
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.kernel.updates.update_queue import UpdateQueue

Numbers = npt.NDArray[np.int64]
Row = tuple[int, int, float]
"""Key, time, value."""
_FILL = 65_536
_LATE = 0.1
"""The share of rows that come out of order."""


@dataclass(frozen=True)
class Load:
    """Rows of so many keys, in batches of one size; all that waits leaves after every `between` rows."""

    keys: int
    batch: int
    rows: int

    @property
    def between(self) -> int:
        """Two rows per key, or as many as there are, in whole batches."""
        return -(-min(self.rows, 2 * self.keys) // self.batch) * self.batch

    def columns(self, random: np.random.Generator) -> pa.RecordBatch:
        """Rows of one round, a tenth of which is older than some before them."""
        count = self.between
        moments = np.arange(count) + count - np.where(random.random(count) < _LATE, random.integers(1, count, count), 0)
        return rows_of(random.integers(0, self.keys, count), moments, random.random(count))


def rows_of(keys: Numbers, times: Numbers, values: npt.NDArray[np.float64]) -> pa.RecordBatch:
    """Rows in columns, as the kernel has them."""
    return pa.record_batch({"key": pa.array(keys), "value": pa.array(values), TIME: pa.array(times)})


class Keeper(Protocol):
    """Holds the newest row of each key."""

    def pieces(self, rows: pa.RecordBatch, size: int) -> Sequence[object]:
        """Rows in batches, in the form that it takes; the clock does not run."""

    def enter(self, piece: object) -> None:
        """Take a batch in."""

    def leave(self, count: int) -> object:
        """Let so many rows go; nothing when none is left."""

    def rows(self, left: object) -> list[Row]:
        """The rows that it released, as plain rows; the clock does not run."""


class OurQueue:
    """An update queue of ours, in place."""

    def __init__(self) -> None:
        self._queue = UpdateQueue(["key"], QueueSettings())
        self._now = 0

    def pieces(self, rows: pa.RecordBatch, size: int) -> Sequence[object]:
        return [Batch(rows.slice(start, size)) for start in range(0, rows.num_rows, size)]

    def enter(self, piece: object) -> None:
        assert isinstance(piece, Batch)
        self._tick()
        for _ in self._queue.on_batch(0, piece):
            pass

    def leave(self, count: int) -> object:
        self._tick()
        left = [element.rows for element in self._queue.on_more(count) if isinstance(element, Batch)]
        self._queue.on_rest()
        return left

    def _tick(self) -> None:
        # As the host does: it gets the time before every call.
        self._now += 1_000
        self._queue.on_time(self._now)

    def rows(self, left: object) -> list[Row]:
        assert isinstance(left, list)
        return [row for each in left for row in zip(*_lists(each), strict=True)]


class RowByRow:
    """A dict of the latest rows that is given plain rows, one after the other."""

    def __init__(self) -> None:
        self._newest: dict[int, int] = {}
        self._waiting: dict[int, Row] = {}

    def pieces(self, rows: pa.RecordBatch, size: int) -> Sequence[object]:
        whole = list(zip(*_lists(rows), strict=True))
        return [whole[start : start + size] for start in range(0, len(whole), size)]

    def enter(self, piece: object) -> None:
        assert isinstance(piece, list)
        newest, waiting = self._newest, self._waiting
        for row in piece:
            key, time, _ = row
            if time >= newest.get(key, time):
                newest[key] = time
                waiting[key] = row

    def leave(self, count: int) -> object:
        waiting = self._waiting
        if count >= len(waiting):
            left = list(waiting.values())
            waiting.clear()
            return left
        return [waiting.popitem()[1] for _ in range(count)]

    def rows(self, left: object) -> list[Row]:
        assert isinstance(left, list)
        return left


class FromColumns(RowByRow):
    """The same dict given columns: NumPy finds the newest row of each key in a batch, and only those are looked at."""

    def pieces(self, rows: pa.RecordBatch, size: int) -> Sequence[object]:
        return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]

    def enter(self, piece: object) -> None:
        assert isinstance(piece, pa.RecordBatch)
        keys, times, values = (piece.column(name).to_numpy() for name in ("key", TIME, "value"))
        order = np.lexsort((times, keys))
        last = order[np.append(keys[order][1:] != keys[order][:-1], True)]
        super().enter(list(zip(keys[last].tolist(), times[last].tolist(), values[last].tolist(), strict=True)))


KEEPERS: dict[str, Callable[[], Keeper]] = {
    "update queue": OurQueue,
    "dict, row by row": RowByRow,
    "dict, from columns": FromColumns,
}


@dataclass(frozen=True)
class Speeds:
    """Rows per second that entered, and that left; and what left, by key, for each round."""

    entered: float
    left: float
    answers: list[list[Row]]


def measured(name: str, load: Load) -> Speeds:
    """Fill it with all keys, empty it, then let rows enter and leave in turns."""
    keeper = KEEPERS[name]()
    random = np.random.default_rng(load.keys + load.batch)
    filled(keeper, load.keys)
    drained(keeper, _FILL)
    entering = leaving = 0.0
    entered, answers = 0, []
    shift = 0
    while entered < load.rows:
        shift += 2 * load.between + 1
        rows = load.columns(random)
        rows = rows_of(rows["key"].to_numpy(), rows[TIME].to_numpy() + shift, rows["value"].to_numpy())
        pieces = keeper.pieces(rows, load.batch)
        began = perf_counter()
        for piece in pieces:
            keeper.enter(piece)
        between = perf_counter()
        left = drained(keeper, load.batch)
        entering, leaving = entering + between - began, leaving + perf_counter() - between
        entered += rows.num_rows
        answers.append(sorted(row for each in left for row in keeper.rows(each)))
    return Speeds(entered / entering, sum(map(len, answers)) / leaving, answers)


def filled(keeper: Keeper, keys: int) -> None:
    """Let an old row of every key enter."""
    for start in range(0, keys, _FILL):
        numbers = np.arange(start, min(start + _FILL, keys))
        for piece in keeper.pieces(rows_of(numbers, np.zeros(len(numbers), np.int64), np.zeros(len(numbers))), _FILL):
            keeper.enter(piece)


def drained(keeper: Keeper, count: int) -> list[object]:
    """All rows that wait, released so many at a time."""
    found = []
    while left := keeper.leave(count):
        found.append(left)
    return found


def bytes_a_key(name: str, keys: int) -> tuple[float, float]:
    """Memory that a key costs, in a process of its own: while a row of it waits, and when it has left."""
    keeper = KEEPERS[name]()
    # What is loaded and set up with the first rows is not a matter of keys.
    filled(KEEPERS[name](), 1_000)
    before = _held()
    filled(keeper, keys)
    waiting = _held()
    drained(keeper, _FILL)
    return (waiting - before) / keys, (_held() - before) / keys


def _held() -> int:
    gc.collect()
    pa.default_memory_pool().release_unused()
    return resident(os.getpid())


def _lists(rows: pa.RecordBatch) -> Iterator[list[object]]:
    return (rows.column(name).to_pylist() for name in ("key", TIME, "value"))
