"""Polled streams, whose rows a run asks for, and pushed streams, into which a program pushes rows.

Rules:
- A polled stream is a callable. A run calls it when it is ready for more rows, or at an interval, and for `refresh`. It
  returns rows or None, and raises StopIteration when there will be no more rows.
- A run that ends by itself calls it once. In virtual time it is called until it returns None.
- After a restart it is not asked for earlier rows: it returns what is new then.
- Pushed rows wait in this process until the run takes them; a run until the end waits until the source is closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

import pyarrow as pa

from millrace.connectors.inputs import Chunk, as_rows
from millrace.errors import MillraceError, RequestError, RunError
from millrace.kernel.elements import END_OF_TIME
from millrace.plan.nodes.endpoints import Stream

Ask = Callable[[], Any]


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

    def __iter__(self) -> Iterator[Any]:
        """All rows, in virtual time, which does not wait."""
        while (item := self.ask("")) is not None:
            yield item


class Pushed(Asked):
    """Rows that a program pushes into a running network, from any thread.

    >>> ticks = Pushed()
    >>> ticks.push([{"symbol": "A", "price": 7.5}])
    >>> ticks.ask("ticks")
    [{'symbol': 'A', 'price': 7.5}]
    >>> ticks.ask("ticks") is None, ticks.finished
    (True, False)
    """

    closes = True

    def __init__(self) -> None:
        super().__init__(self._next)
        self._items: deque[Any] = deque()
        self._lock = Lock()
        self._closed = False

    def push(self, rows: Any) -> None:
        """Push rows: a record batch, a table, a list of dictionaries, or one dictionary."""
        with self._lock:
            if self._closed:
                raise RequestError("the stream has been closed", hint="Push rows before you close it.")
            self._items.append(rows)

    def close(self) -> None:
        """End the stream: no rows will follow."""
        with self._lock:
            self._closed = True

    def _next(self) -> Any:
        with self._lock:
            if self._items:
                return self._items.popleft()
            if self._closed:
                raise StopIteration
            return None


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
        """True if there may be more rows at once: a callable has returned all, pushed rows may still wait."""
        return self.source.closes

    def demand(self) -> None:
        """Let the source be asked at the next read."""
        self.due = None

    def read(self) -> Chunk | None:
        """The rows that are new; None if there are none, or the source is not due."""
        if self.due is not None and self._now() < self.due:
            return None
        item = self.source.ask(self.stream.name)
        self.due = self._next()
        rows = None if item is None else as_rows(item, self.schema, self.stream.name)
        return Chunk(rows) if rows is not None and rows.num_rows else None

    def _next(self) -> int | None:
        if not self._again:
            return END_OF_TIME
        return None if self.source.every is None else self._now() + self.source.every

    def position(self) -> dict[str, Any]:
        """No position: these rows cannot be read again."""
        return {}
