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
from threading import Condition, RLock, get_ident
from typing import Any, TypeAlias

import pyarrow as pa

from millrace.connectors.push_pull import Asked, Item, count_rows
from millrace.errors import RequestError, StreamFull
from millrace.kernel.elements import Microseconds

MOST_ROWS = 1_000_000
MOST_BYTES = 256 << 20
PATIENCE = 60.0
"""Seconds that `push` waits for room if it is not told otherwise."""

Size: TypeAlias = tuple[int, int]
"""Rows and bytes."""


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
            raise RequestError(
                "most_rows and most_bytes of a pushed stream must be positive",
                hint="Give numbers from 1 on, or leave them out.",
            )
        self._most: Size = (most_rows, most_bytes)
        self._lock = RLock()
        self._room = Condition(self._lock)
        self._wanted = 0
        """How many calls of `push` wait for room."""
        self._waiting: Size = (0, 0)
        """What waits for the run."""
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
        size = _size(rows)
        with self._lock:
            if not self._closed and not self._fits(size):
                self._wait(size, timeout if block else 0)
            if self._closed:
                raise RequestError("the stream has been closed", hint="Push rows before you close it.")
            # The machine's clock may be set back, arrivals are in order.
            self._last = max(self._last, time.time_ns() // 1_000)
            self._items.append((self._last, rows))
            self._count(*size)
        self.wake()

    def _count(self, rows: int, size: int) -> None:
        """Count that so much more waits."""
        self._waiting = self._waiting[0] + rows, self._waiting[1] + size

    def _fits(self, size: Size) -> bool:
        waiting, most = self._waiting, self._most
        return not self._items or (waiting[0] + size[0] <= most[0] and waiting[1] + size[1] <= most[1])

    def _wait(self, size: Size, timeout: float | None) -> None:
        """Wait for room; refuse where there will be none."""
        if self._attended and get_ident() == self._taker:
            raise self._full("the run that takes its rows pushes them", "Push from another thread.")
        self._wanted += 1
        try:
            self._room.wait_for(lambda: self._fits(size) or self._closed or not self._attended, timeout)
        finally:
            self._wanted -= 1
        if self._closed or self._fits(size):
            return
        if not self._attended:
            raise self._full("no run takes its rows", "Begin the run before you push so much, or give it more room.")
        raise self._full("the run has not taken them in time", "Push less, wait longer with timeout, or drop rows.")

    def _full(self, why: str, hint: str) -> StreamFull:
        rows, size = self._waiting
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
        with self._lock:
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
        """Note what has been taken, and let waiting pushes go on."""
        self._attended, self._taker = True, get_ident()
        if not self._items:
            # Sizes of rows in Python are estimates, which differ between parts.
            self._waiting = 0, 0
        else:
            for _, each in taken:
                rows, size = _size(each)
                self._count(-rows, -size)
        if self._wanted:
            self._room.notify_all()

    def put_back(self, items: Sequence[Item]) -> None:
        with self._room:
            super().put_back(items)
            for _, each in items:
                self._count(*_size(each))

    def _next(self) -> Any:
        with self._room:
            if self._items:
                item = self._items.popleft()
                self._gone([item])
                return item[1]
            if self._closed:
                raise StopIteration
            return None


def _size(item: Any) -> Size:
    """How many rows an item has, and about how many bytes: those of rows in Python are taken to be like the first."""
    if isinstance(item, dict):
        return 1, sum(map(sys.getsizeof, item.values()), sys.getsizeof(item))
    count = count_rows(item)
    if isinstance(item, (pa.Table, pa.RecordBatch)):
        return count, item.nbytes
    if isinstance(item, list):
        return count, count * _size(item[0])[1] if item else 0
    return count, count * sys.getsizeof(item)
