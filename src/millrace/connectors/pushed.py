"""Pushed streams, into which a program pushes rows.

Rules:
- Pushed rows wait in this process until the run takes them, all that there are at once; they arrive when they are
  pushed. `push` wakes a run that sleeps. A run until the end waits until the source is closed.
- So many rows and bytes may wait; then `push` waits too, for a time, or says no. Where no run would ever take them, or
  the run itself pushes, it says no at once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from threading import Condition, get_ident
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.connectors.push_pull import Asked, Item, count_rows
from millrace.errors import RequestError, StreamFull
from millrace.kernel.elements import Microseconds

MOST_ROWS = 1_000_000
MOST_BYTES = 256 << 20
PATIENCE = 60.0
"""Seconds that `push` waits for room if it is not told otherwise."""

Sizes: TypeAlias = npt.NDArray[np.int64]


class Pushed(Asked):
    """Rows that a program pushes into a running network, from any thread.

    At most `most_rows` and about `most_bytes` wait for the run; one push of more waits alone.

    >>> ticks = Pushed()
    >>> ticks.push([{"symbol": "A", "price": 7.5}])
    >>> ticks.ask("ticks")
    [{'symbol': 'A', 'price': 7.5}]
    >>> ticks.ask("ticks") is None, ticks.finished
    (True, False)
    """

    closes = True

    def __init__(self, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(self._next)
        if most_rows < 1 or most_bytes < 1:
            raise RequestError("a pushed stream needs room for rows", hint="Give most_rows and most_bytes from 1 on.")
        self._most = np.array([most_rows, most_bytes])
        self._room = Condition()
        self._waiting = np.zeros(2, np.int64)
        """How many rows, and bytes, wait for the run."""
        self._closed = False
        self._attended = False
        self._taker = 0
        """The thread that has taken rows."""
        self._last = 0
        self.wake: Callable[[], None] = lambda: None
        """Called when there are rows, or there will be no more: a run that sleeps is to look."""

    def push(self, rows: Any, *, block: bool = True, timeout: float | None = PATIENCE) -> None:
        """Push rows: a record batch, a table, a list of dictionaries, or one dictionary.

        If there is no room, wait until there is: at most `timeout` seconds, with None while the run lasts, not at all
        unless `block`. Then `StreamFull` is raised, which is a `queue.Full`, and none of the rows are pushed.
        """
        size = _sizes(rows)
        with self._room:
            if not self._closed and not self._fits(size):
                self._wait(size, timeout if block else 0)
            if self._closed:
                raise RequestError("the stream has been closed", hint="Push rows before you close it.")
            # The machine's clock may be set back, arrivals are in order.
            self._last = max(self._last, time.time_ns() // 1_000)
            self._items.append((self._last, rows))
            self._waiting += size
        self.wake()

    def _fits(self, size: Sizes) -> bool:
        return not self._items or bool(np.all(self._waiting + size <= self._most))

    def _wait(self, size: Sizes, timeout: float | None) -> None:
        """Wait for room; refuse where there will be none."""
        if self._attended and get_ident() == self._taker:
            raise self._full("the run that takes its rows pushes them", "Push from another thread.")
        self._room.wait_for(lambda: self._fits(size) or self._closed or not self._attended, timeout)
        if self._closed or self._fits(size):
            return
        if not self._attended:
            raise self._full("no run takes its rows", "Begin the run before you push so much, or give it more room.")
        raise self._full("the run has not taken them in time", "Push less, wait longer with timeout, or drop rows.")

    def _full(self, why: str, hint: str) -> StreamFull:
        rows, size = (int(each) for each in self._waiting)
        return StreamFull(f"the pushed stream is full: {rows} rows of {size} bytes wait, and {why}", hint=hint)

    def attend(self, attended: bool) -> None:
        """Say that a run takes rows from now on, or has ended."""
        with self._room:
            self._attended = attended
            self._room.notify_all()

    def close(self) -> None:
        """End the stream: no rows will follow."""
        with self._room:
            self._closed = True
            self._room.notify_all()
        self.wake()

    def take(self, stream: str, now: Callable[[], Microseconds], rows: int, *, ask: bool = True) -> list[Item]:
        with self._room:
            taken = self._pop(rows)
            self.finished = self._closed and not self._items and not taken
            self._gone(taken)
        return taken

    def take_begun(self) -> list[Item]:
        with self._room:
            taken = super().take_begun()
            self._gone(taken)
        return taken

    def _gone(self, taken: Sequence[Item]) -> None:
        """Note what has been taken, and let who pushes go on."""
        self._attended, self._taker = True, get_ident()
        for _, each in taken:
            self._waiting -= _sizes(each)
        if not self._items:
            # Sizes of rows in Python are estimates, which differ between parts.
            self._waiting[:] = 0
        self._room.notify_all()

    def put_back(self, items: Sequence[Item]) -> None:
        with self._room:
            super().put_back(items)
            for _, each in items:
                self._waiting += _sizes(each)

    def _next(self) -> Any:
        with self._room:
            if self._items:
                item = self._items.popleft()
                self._gone([item])
                return item[1]
            if self._closed:
                raise StopIteration
            return None


def _sizes(item: Any) -> Sizes:
    """How many rows an item has, and about how many bytes: those of rows in Python are taken to be like the first."""
    count = count_rows(item)
    if isinstance(item, pa.Table | pa.RecordBatch):
        return np.array([count, item.nbytes])
    first = next(iter(item), None) if isinstance(item, list) else item
    parts = [first, *first.values()] if isinstance(first, dict) else [first]
    return np.array([count, count * sum(map(sys.getsizeof, parts))])
