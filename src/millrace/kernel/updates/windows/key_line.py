"""Keys that wait in line, in the order of their places.

Rules:
- A key stands where its place says, a number that it keeps while it is out of line: one that comes back stands where it
  stood, between those that have waited longer and those that have waited less.
- A key that has been given another place since is skipped where it stood before.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

import numpy as np

from millrace.kernel.columns.integers import Integers


class KeyLine:
    """Keys in line: the least place is the first."""

    def __init__(self) -> None:
        self._tail: deque[tuple[int, int]] = deque()
        """Places and keys, in order."""
        self._heap: list[tuple[int, int]] = []
        """Those that came with a place before the end of the line."""
        self._place: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._place)

    def add(self, keys: Integers, places: Integers) -> None:
        """Put keys in line, or elsewhere in line."""
        for place, key in zip(places.tolist(), keys.tolist(), strict=True):
            self._place[key] = place
            if not self._tail or self._tail[-1][0] < place:
                self._tail.append((place, key))
            else:
                heappush(self._heap, (place, key))

    def take(self, count: int) -> Integers:
        """At most so many keys from the front, which leave."""
        found: list[int] = []
        while len(found) < count and self._place:
            heap, tail = self._heap, self._tail
            place, key = heappop(heap) if heap and (not tail or heap[0] < tail[0]) else tail.popleft()
            if self._place.get(key) == place:
                del self._place[key]
                found.append(key)
        return np.array(found, np.int64)

    def first(self) -> int | None:
        """The key at the front."""
        heap, tail = self._heap, self._tail
        while self._place:
            front = heap[0] if heap and (not tail or heap[0] < tail[0]) else tail[0]
            if self._place.get(front[1]) == front[0]:
                return front[1]
            if heap and front is heap[0]:
                heappop(heap)
            else:
                tail.popleft()
        return None
