"""A Python iterable as an input: how many of its items were taken is its position."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

import pyarrow as pa

from millrace.connectors.fed_rows import as_rows
from millrace.connectors.stream_input import Chunk, Position
from millrace.plan.nodes.endpoints import Stream

_WAITS = 0.02
"""Seconds after which an iterable that has not given its next rows is one that waits for them."""


class FeedInput:
    """Rows from a Python iterable: record batches, tables, or lists of dictionaries.

    One that waits for its next rows gives one item at a time, until it says by an empty one that there are none now.
    """

    pending = False

    def __init__(self, stream: Stream, schema: pa.Schema, feed: Iterable[Any], position: Position | None) -> None:
        self.stream = stream
        self.schema = schema
        self.finished = False
        self.more = True
        self._items = iter(feed)
        self._taken = 0
        self._last: Any = None
        for _ in range(int(position["items"]) if position else 0):
            next(self._items, None)
            self._taken += 1

    def read(self) -> Chunk | None:
        """The next item that holds rows."""
        began = time.monotonic()
        item = next(self._items, None)
        # Rows that were read must not wait until a generator that waits has more.
        self.more = self.more and time.monotonic() - began < _WAITS
        if item is None:
            self.finished = True
            return None
        self._taken += 1
        self._last = item
        rows = as_rows(item, self.schema, self.stream.name)
        self.more = self.more or not rows.num_rows
        return Chunk(rows)

    def again(self, schema: pa.Schema, position: Position) -> FeedInput:
        """The same feed with other columns, from here or from the item before; use it instead of this one."""
        after = copy(self)
        after.schema = schema
        if position["items"] < self._taken:
            after._items, after._taken = _from_last(self._last, self._items), self._taken - 1
        return after

    def position(self) -> dict[str, Any]:
        """How many items have been taken."""
        return {"items": self._taken}


def _from_last(last: Any, items: Iterator[Any]) -> Iterator[Any]:
    """An item again, and those that follow it; `iter` is not called again, which a feed may refuse."""
    yield last
    while (item := next(items, None)) is not None:
        yield item
