"""Input rows that a join has not joined yet, and the order in which it takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from millrace.kernel.elements import Batch, Microseconds
from millrace.kernel.state import Changes
from millrace.kernel.stores.hold_buffer import HoldBuffer


class InputQueues:
    """Rows of each input: they wait by time, and when a bound has reached them they are ready to be taken.

    Only rows that wait are saved, for at rest none are ready.
    """

    def __init__(self, ports: int) -> None:
        self._waiting = [HoldBuffer() for _ in range(ports)]
        self._ready: dict[int, Batch] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting)) + sum(map(len, self._ready.values()))

    @property
    def ready(self) -> bool:
        """True if some rows are ready."""
        return bool(self._ready)

    @property
    def nbytes(self) -> int:
        """The memory of all rows."""
        return sum(each.nbytes for each in self._waiting) + sum(int(each.rows.nbytes) for each in self._ready.values())

    def add(self, port: int, batch: Batch) -> None:
        """Add rows of an input."""
        self._waiting[port].add(batch)

    def open(self, until: Microseconds) -> None:
        """Make the rows up to a bound ready, unless some are still."""
        if not self._ready:
            self._begin([each.release(until) for each in self._waiting])

    def open_all(self) -> None:
        """Make all rows ready, unless some are still."""
        if not self._ready:
            self._begin([each.release_all() for each in self._waiting])

    def _begin(self, released: Sequence[Batch | None]) -> None:
        self._ready = {port: rows for port, rows in enumerate(released) if rows is not None}

    def least(self, port: int) -> Microseconds | None:
        """The least time of the rows of an input; None when there are none."""
        ready = self._ready.get(port)
        return self._waiting[port].least if ready is None else int(ready.times[0])

    def wanted(self) -> Microseconds | None:
        """The bound that makes rows ready; None when none wait."""
        return min([each.least for each in self._waiting if each.least is not None], default=None)

    def take(self, limit: int | None) -> Iterator[tuple[int, Batch]]:
        """Rows that are ready, in runs of one input each: at most `limit` in order of time, or all, input by input."""
        if limit is None:
            taken, self._ready = self._ready, {}
            yield from taken.items()
            return
        while limit > 0 and self._ready:
            port = min(self._ready, key=lambda each: int(self._ready[each].times[0]))
            count = min(self._before_others(port), limit)
            yield port, self._cut(port, count)
            limit -= count

    def _before_others(self, port: int) -> int:
        """How many ready rows of an input come before those of all others; at least one."""
        rows = self._ready[port]
        others = [int(each.times[0]) for other, each in self._ready.items() if other != port]
        return int(np.searchsorted(rows.times, min(others), side="right")) if others else len(rows)

    def _cut(self, port: int, count: int) -> Batch:
        rows = self._ready[port]
        if count == len(rows):
            return self._ready.pop(port)
        self._ready[port] = rows.slice(count, len(rows) - count)
        return rows.slice(0, count)

    def changes(self) -> list[Changes]:
        """What changed of each input's rows since the last save."""
        assert not self._ready, "state is saved at rest"
        return [each.changes() for each in self._waiting]

    def restore(self, changes: Sequence[Changes]) -> None:
        """Continue from what was saved of each input."""
        for waiting, saved in zip(self._waiting, changes, strict=True):
            waiting.restore(saved)
