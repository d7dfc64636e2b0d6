"""A stream that a test feeds while the network runs."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Any

import millrace as mr
from tests.e2e.commands import wait_for

SECOND = 1_000_000


class Fed:
    """A feed that gives what it is told, and nothing in between."""

    def __init__(self) -> None:
        self.told = 0
        self._items: SimpleQueue[list[dict[str, Any]] | None] = SimpleQueue()

    def tell(self, *rows: dict[str, Any]) -> None:
        """Give rows as one item."""
        self.told += len(rows)
        self._items.put(list(rows))

    def end(self) -> None:
        """Give nothing any more."""
        self._items.put(None)

    def __iter__(self) -> Iterator[list[dict[str, Any]]]:
        while True:
            try:
                item = self._items.get_nowait()
            except Empty:
                item = []
            if item is None:
                return
            yield item


def received(handle: mr.Handle, stream: str, rows: int) -> None:
    """Wait until the run has received so many rows of a stream."""
    wait_for(lambda: (found := handle.metrics().sources.get(stream)) is not None and found.received >= rows)


def row(second: float, **values: Any) -> dict[str, Any]:
    """A row at a second after the epoch."""
    return {**values, "ts": int(second * SECOND)}
