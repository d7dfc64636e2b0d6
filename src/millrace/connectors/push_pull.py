"""Streams whose rows a run asks for, and streams whose rows a program pushes.

Rules:
- A polled stream is a callable. A run asks it when it is ready for more rows, or at an interval, and before an answer
  is pulled with `refresh`; it gives rows, or none. It raises StopIteration when there will never be more.
- A run that does not go on until it is stopped asks a callable once. In virtual time it is asked until it gives none.
- After a restart it is not asked for what it has given before: it tells what is so now.
- Pushed rows wait in this process until the run takes them; one that lasts until the end waits until they are closed.
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
    """A source that is asked for rows; `every` is the interval in microseconds, None whenever the run is ready."""

    closes = False
    """Whether it says when nothing will follow, so that a run that lasts until the end may wait for it."""

    def __init__(self, ask: Ask, every: int | None = None) -> None:
        if not callable(ask):
            raise RequestError(
                f"a polled stream is asked by a callable, not {ask!r}", hint="Give a function without arguments."
            )
        self.every = every
        self.finished = False
        self._ask = ask

    def ask(self, stream: str) -> Any | None:
        """What there is now: rows in any form that a feed has; None if there are none."""
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
        """All that there is, in virtual time, which does not wait."""
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
        """Give rows: a record batch, a table, a list of dictionaries, or one dictionary."""
        with self._lock:
            if self._closed:
                raise RequestError("the stream has been closed", hint="Push rows before you close it.")
            self._items.append(rows)

    def close(self) -> None:
        """Say that no rows will follow."""
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
    """The rows of a stream that is asked for them, by a clock.

    `lasts` says whether the run goes on until it is stopped, `ends` whether it goes on until its streams have ended.
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
        """When it is asked next, by the clock; None whenever the run is ready."""

    @property
    def finished(self) -> bool:
        """Whether nothing will ever follow."""
        return self.source.finished

    @property
    def pending(self) -> bool:
        """Whether rows may still come that this run waits for."""
        return self._waits and not self.finished

    @property
    def more(self) -> bool:
        """Whether there may be more at once: what was pushed waits to be taken, a callable has told all."""
        return self.source.closes

    def demand(self) -> None:
        """Let it be asked at once."""
        self.due = None

    def read(self) -> Chunk | None:
        """What there is now; None if there is nothing, or it is not asked yet."""
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
        """None that could be returned to."""
        return {}
