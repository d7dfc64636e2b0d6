"""The line of keys that wait for their windows to be committed to.

Rules:
- A key stands where its place says, a number that it keeps while it is out of line: one that comes back stands where it
  stood, between those that have waited longer and those that have waited less.
- A key that has been given another place since is skipped where it stood before.
- A key with an open commitment keeps its place, but is not in line.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Microseconds, Times
from millrace.kernel.updates.key_cells import NONE
from millrace.kernel.updates.queue_settings import LINECUTTING_AS_PRINTED
from millrace.kernel.updates.windows.window_cells import SHUT, WindowCells


class WaitingLine:
    """Keys that wait, in the order of a policy; `slide` is how far apart windows start."""

    def __init__(self, cells: WindowCells, slide: int) -> None:
        self.policy = "inplace"
        self.cost: float | None = None
        """What a row costs downstream, if that is known."""
        self.committed = 0
        """How many keys have been taken from the line so far."""
        self.released = 0
        """How many rows have been released for them."""
        self._cells = cells
        self._slide = slide
        self._heap: list[tuple[int, int]] = []
        """Places and keys, with those that are out of date."""
        self._places: dict[int, int] = {}
        """The place of each key in line."""
        self._next_place = 0
        self._next_cut = 0

    def __len__(self) -> int:
        return len(self._places)

    def wait(self, keys: Integers, moments: Times) -> None:
        """Keys wait from now on, in this order, stale since these moments."""
        self._cells.queue_since[keys] = moments
        if self.policy == LINECUTTING_AS_PRINTED and len(keys):
            cuts = self.intervals(keys, int(moments.max())) > self._round()
            self._next_cut -= int(cuts.sum())
            self._cells.place[keys[cuts]] = np.arange(self._next_cut, self._next_cut + int(cuts.sum()))[::-1]
            self.stand(keys[cuts])
            keys = keys[~cuts]
        self.renew(keys)

    def _round(self) -> float:
        """How long it takes to serve all keys in line once (002 section 5.3: c * n)."""
        return (self.cost or 0.0) * (self.released / max(self.committed, 1)) * len(self)

    def intervals(self, keys: Integers, now: Microseconds) -> npt.NDArray[np.float64]:
        """The time between two updates of each key: its rows are no updates before the next window."""
        lived = np.maximum(now - self._cells.first[keys], 0)
        return np.maximum(lived / np.maximum(self._cells.updates[keys] - 1, 1), np.minimum(lived, self._slide))

    def renew(self, keys: Integers) -> None:
        """Give keys that wait the last places, in this order."""
        self._cells.place[keys] = np.arange(self._next_place, self._next_place + len(keys))
        self._next_place += len(keys)
        self.stand(keys)

    def stand(self, keys: Integers) -> None:
        """Put keys that wait in line if they have no open commitment."""
        free = keys[(self._cells.opened[keys] == SHUT) & (self._cells.place[keys] != NONE)]
        for place, key in zip(self._cells.place[free].tolist(), free.tolist(), strict=True):
            self._places[key] = place
            heappush(self._heap, (place, key))

    def first(self) -> int | None:
        """The key that is next."""
        while self._places:
            place, key = self._heap[0]
            if self._places.get(key) == place:
                return key
            heappop(self._heap)
        return None

    def take(self, count: int) -> Integers:
        """At most `count` keys from the front, which are committed now."""
        keys: list[int] = []
        while len(keys) < count and (key := self.first()) is not None:
            del self._places[key]
            keys.append(key)
        self.committed += len(keys)
        return np.array(keys, np.int64)

    def note(self) -> dict[str, int]:
        """What is saved besides cells."""
        counts = {"committed": self.committed, "released": self.released}
        return {"place": self._next_place, "cut": self._next_cut, **counts}

    def restore(self, note: Mapping[str, Any]) -> None:
        """Go on from a note, with the cells restored."""
        self._next_place, self._next_cut = note["place"], note["cut"]
        self.committed, self.released = note["committed"], note["released"]
        place = self._cells.place[: self._cells.count]
        waits = np.flatnonzero(place != NONE)
        self.stand(waits[np.argsort(place[waits])])
