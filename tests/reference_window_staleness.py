"""How stale windows under update semantics are: one server, keys in line, rows one by one, everything looked for anew.

Rows are (key, time) and arrive one a tick, so that the place of a row is its arrival. Times are whole ticks.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field


@dataclass
class Key:
    """All that has come of a key, the window that it committed to, and the area under its staleness."""

    first: int
    times: list[int] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=list)
    committed: int | None = None
    open: bool = False
    pending: int = 0
    place: int | None = None
    delivered: int | None = None
    tau: int | None = None
    area: float = 0.0


@dataclass
class Model:
    """A queue of windows and its server, to which a row of a window is `cost` ticks of work."""

    length: int
    slide: int
    eager: bool
    own: bool
    tick: int = 1
    cost: int = 1
    now: int = 0
    keys: dict[int, Key] = field(default_factory=dict)
    times: list[int] = field(default_factory=list)
    results: list[tuple[int, int, int]] = field(default_factory=list)
    """When what window of which key was delivered: the moment, the key, the start."""

    def run(self, rows: list[tuple[int, int]]) -> float:
        """Serve rows until the last one has arrived; the mean staleness of the application."""
        end, ready, places = len(rows) - 1, list[int](), 0
        while self.now <= end:
            while len(self.times) <= self.now and len(self.times) <= end:
                self._enter(*rows[len(self.times)], ready)
            for number, key in self.keys.items():
                if key.open and not key.pending and self._bound(key) >= self._end(key):
                    self._deliver(number, key)
            for key in self.keys.values():
                if key.place is None and self._newest(key) is not None:
                    places, key.place = places + 1, places
            if ready:
                self._serve(ready)
                continue
            line = {key.place: number for number, key in self.keys.items() if key.place is not None and not key.open}
            if line:
                self._commit(line[min(line)], ready)
            else:
                self.now = len(self.times)
        areas = [each.area + (0 if each.tau is None else (end - each.tau) ** 2 / 2) for each in self.keys.values()]
        lived = [max(end - each.first, 1) for each in self.keys.values()]
        return sum(area / time for area, time in zip(areas, lived, strict=True)) / len(areas)

    def _enter(self, number: int, time: int, ready: list[int]) -> None:
        arrival = len(self.times)
        self.times.append(time)
        key = self.keys.setdefault(number, Key(arrival))
        key.times.append(time)
        key.arrivals.append(arrival)
        if key.open and time < self._end(key):
            key.pending += 1
            if number not in ready:
                ready.append(number)
        for each in self.keys.values():
            each.tau = self._stale_from(each) if each.tau is None else each.tau

    def _serve(self, ready: list[int]) -> None:
        key = self.keys[ready[0]]
        key.pending -= 1
        self.now += self.cost
        if not key.pending:
            ready.pop(0)

    def _commit(self, number: int, ready: list[int]) -> None:
        key = self.keys[number]
        start = self._newest(key)
        assert start is not None
        key.committed, key.open, key.place = start, True, None
        key.pending = sum(start <= time < start + self.length for time in key.times)
        ready.append(number)

    def _deliver(self, number: int, key: Key) -> None:
        assert key.tau is not None and key.committed is not None
        self.results.append((self.now, number, key.committed))
        key.area += (self.now - key.tau) ** 2 / 2
        key.delivered, key.open = key.committed, False
        key.tau = self._stale_from(key)
        if key.tau is not None:
            key.area -= (self.now - key.tau) ** 2 / 2

    def _end(self, key: Key) -> int:
        assert key.committed is not None
        return key.committed + self.length

    def _bound(self, key: Key) -> int:
        """Up to where the windows of a key are closed."""
        return key.times[-1] + self.tick if self.own else self.times[-1]

    def _newest(self, key: Key) -> int | None:
        """The newest window that has started, or fully arrived, if it is newer than the committed one."""
        last = key.times[-1]
        if not self.eager:
            closed = (self._bound(key) - self.length) // self.slide * self.slide
            before = bisect_left(key.times, closed + self.length)
            if not before:
                return None
            last = min(closed, key.times[before - 1])
        start = last // self.slide * self.slide
        return start if key.committed is None or start > key.committed else None

    def _stale_from(self, key: Key) -> int | None:
        """When the first window closed that is newer than the delivered one."""
        base = None if key.delivered is None else key.delivered + self.slide
        row = 0 if base is None else bisect_left(key.times, base)
        if row == len(key.times):
            return None
        oldest = (key.times[row] - self.length) // self.slide * self.slide + self.slide
        end = max(oldest, oldest if base is None else base) + self.length
        times, arrivals = (key.times, key.arrivals) if self.own else (self.times, range(len(self.times)))
        closing = bisect_left(times, end - self.tick if self.own else end)
        return arrivals[closing] if closing < len(times) else None
