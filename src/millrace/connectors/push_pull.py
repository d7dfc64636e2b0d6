"""Polled streams, whose rows a run asks for; `pushed.py` has pushed streams, which are read in the same way.

Rules:
- A polled stream is a callable. A run calls it when it is ready for more rows, or at an interval, and for `refresh`. It
  returns rows or None, and raises StopIteration when there will be no more rows.
- A run that ends by itself calls it once. In virtual time it is called until it returns None.
- After a restart it is not asked for earlier rows: it returns what is new then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.connectors.fed_rows import as_rows
from millrace.connectors.stream_input import CHUNK_ROWS, Chunk
from millrace.errors import MillraceError, RequestError, RunError
from millrace.kernel.elements import END_OF_TIME, Microseconds
from millrace.plan.nodes.endpoints import Stream

Ask = Callable[[], Any]
Item = tuple[Microseconds, Any]
"""Rows in any form that a feed has, and when they arrived."""


class Asked:
    """A source that a run asks for rows, every so many microseconds; if None, whenever the run is ready."""

    closes = False
    """True if the source says when it ends, so that a run until the end can wait for it."""

    def __init__(self, ask: Ask, every: int | None = None) -> None:
        if not callable(ask):
            raise RequestError(
                f"a polled stream needs a callable, not {ask!r}", hint="Give a function without arguments."
            )
        self.every = every
        self.finished = False
        self._ask = ask
        self._items: deque[Item] = deque()
        """What has been given and not been taken."""
        self._begun = False
        """True if the first of it has been taken in part."""

    def ask(self, stream: str) -> Any | None:
        """The rows that are new, in any form that a feed has; None if there are none."""
        try:
            return None if self.finished else self._ask()
        except StopIteration:
            self.finished = True
            return None
        except MillraceError:
            raise
        # A user's code may raise anything.
        except Exception as error:
            raise RunError(
                f'the callable that is asked for rows of stream "{stream}" failed: {type(error).__name__}: {error}',
                hint="Let it return no rows when it has none, and raise StopIteration when there will be no more.",
            ) from error

    def take(self, stream: str, now: Callable[[], Microseconds], rows: int, *, ask: bool = True) -> list[Item]:
        """What is new, at most so many rows of it; with `ask` the callable is asked, if not so much waits already."""
        taken = self._pop(rows)
        rows -= sum(count_rows(each) for _, each in taken)
        item = self.ask(stream) if ask and rows > 0 else None
        if item is not None:
            self._items.append((now(), item))
        return taken + self._pop(rows)

    def take_begun(self) -> list[Item]:
        """The rest of what has been taken in part."""
        return [self._items.popleft()] if self._begun and self._items else []

    def _pop(self, rows: int) -> list[Item]:
        """The next items, of the last as much as is allowed."""
        taken: list[Item] = []
        while self._items and rows > 0:
            at, item = self._items.popleft()
            some, rest = _cut(item, rows)
            self._begun = rest is not None
            if self._begun:
                self._items.appendleft((at, rest))
            taken.append((at, some))
            rows -= count_rows(some)
        return taken

    def put_back(self, items: Sequence[Item]) -> None:
        """Give items at the next `take` that an earlier one gave."""
        self._items.extendleft(reversed(items))

    def __iter__(self) -> Iterator[Any]:
        """All rows, in virtual time, which does not wait."""
        while (item := self.ask("")) is not None:
            yield item


class PolledInput:
    """The input of a polled or pushed stream, by the clock of the run.

    `lasts` is True if the run goes on until it is stopped, `ends` if it goes on until its streams have ended.
    """

    def __init__(
        self, stream: Stream, schema: pa.Schema, source: Asked, now: Callable[[], int], *, lasts: bool, ends: bool
    ) -> None:
        self.stream = stream
        self.schema = schema
        self.source = source
        self._now = now
        self._again = lasts or source.closes
        self._waits = ends and source.closes
        self.due: int | None = None
        """When the source is asked next; None whenever the run is ready."""

    @property
    def finished(self) -> bool:
        """True if no rows will follow."""
        return self.source.finished

    @property
    def pending(self) -> bool:
        """True if this run waits for further rows."""
        return self._waits and not self.finished

    @property
    def more(self) -> bool:
        """True if a read left rows behind; it never does."""
        return False

    @property
    def wakes(self) -> bool:
        """True if the source says itself when there are rows."""
        return self.source.closes

    def demand(self) -> None:
        """Let the source be asked at the next read."""
        self.due = None

    def read(self, limit: int | None = None) -> Chunk | None:
        """The rows that are new, or so many of them; None if there are none, or the source is not due."""
        due = self.due is None or self._now() >= self.due
        items = self.source.take(self.stream.name, self._now, limit or CHUNK_ROWS, ask=due)
        if due:
            self.due = self._next()
        chunk = self._chunk(items) if items else None
        return chunk if chunk is not None and chunk.rows.num_rows else None

    def read_begun(self) -> Chunk | None:
        """The rest of the rows that the source gave together, if some of them have been read."""
        items = self.source.take_begun()
        return self._chunk(items) if items else None

    def _chunk(self, items: list[Item]) -> Chunk:
        """The rows of items; if one does not fit, of those before it: that one is refused at the next read."""
        try:
            return merged(items, self.schema, self.stream.name)
        except RunError:
            if len(items) == 1:
                raise
        half = len(items) // 2
        self.source.put_back(items[half:])
        return self._chunk(items[:half])

    def _next(self) -> int | None:
        if not self._again:
            return END_OF_TIME
        return None if self.source.every is None else self._now() + self.source.every

    def position(self) -> dict[str, Any]:
        """No position: these rows cannot be read again."""
        return {}


def merged(items: Sequence[Item], schema: pa.Schema, stream: str) -> Chunk:
    """The rows of some items in one chunk, with the arrival of each."""
    parts: list[pa.RecordBatch] = []
    rows: list[Any] = []
    counts: list[int] = []

    def close() -> None:
        if rows:
            parts.append(as_rows(rows, schema, stream))
            rows.clear()

    for _, item in items:
        if isinstance(item, dict | list):
            rows += [item] if isinstance(item, dict) else item
            counts.append(count_rows(item))
        else:
            close()
            parts.append(as_rows(item, schema, stream).select(schema.names))
            counts.append(parts[-1].num_rows)
    close()
    arrived = np.array([at for at, _ in items], np.int64).repeat(counts)
    return Chunk(pa.concat_batches(parts) if parts else as_rows([], schema, stream), arrived=arrived)


def _cut(item: Any, rows: int) -> tuple[Any, Any | None]:
    """So many rows of an item, and the rest; None if it is no more, or cannot be cut."""
    if count_rows(item) <= rows or not isinstance(item, list | pa.Table | pa.RecordBatch):
        return item, None
    return (item[:rows], item[rows:]) if isinstance(item, list) else (item.slice(0, rows), item.slice(rows))


def count_rows(item: Any) -> int:
    """How many rows an item has; 1 where it does not say."""
    return 1 if isinstance(item, dict) or not hasattr(item, "__len__") else len(item)
