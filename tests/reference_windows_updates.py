"""Windows under update semantics, row by row and as slowly as possible: never drops a row, looks for everything anew.

Rows are (key, time, value), all times whole numbers; a window is known by its start. It serves one row at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Row = tuple[str, int, int]
NEVER = -(10**9)
FOREVER = 10**9


def windows_of(time: int, length: int, slide: int, origin: int = 0) -> list[int]:
    """The starts of the windows that hold a time, in order."""
    newest = (time - origin) // slide * slide + origin
    starts = range(newest, time - length, -slide)
    return sorted(start for start in starts if start <= time < start + length)


def accepted_rows(rows: list[Row], length: int, slide: int, tick: int | None) -> list[Row]:
    """The rows that are accepted, in their order; with a tick a key's own rows close its windows."""
    found: list[Row] = []
    last: dict[str, int] = {}
    for key, time, value in rows:
        newest = last.get(key)
        if not windows_of(time, length, slide):
            continue
        if tick is not None and newest is not None:
            closed = (newest + tick - length) // slide * slide + length
            if time < newest or time < closed:
                continue
        last[key] = time if newest is None else max(newest, time)
        found.append((key, time, value))
    return found


@dataclass
class Key:
    """What is known of a key: all accepted rows, what it committed to, what has left."""

    rows: list[tuple[int, int]] = field(default_factory=list)
    first: int | None = None
    committed: int = NEVER
    mark: int = -1
    done: bool = True
    left: set[int] = field(default_factory=set)
    delivered: int = NEVER
    closings: list[tuple[int, int]] = field(default_factory=list)
    """Windows that have closed, and when."""
    began: int | None = None
    """When it began to wait."""
    queue_area: float = 0.0
    application_area: float = 0.0


class NaiveWindows:
    """The key transition graph (002 section 6.2); without a `tick` the stream's bound closes windows."""

    def __init__(self, length: int, slide: int, eager: bool, tick: int | None) -> None:
        self.length, self.slide, self.eager, self.tick = length, slide, eager, tick
        self.keys: dict[str, Key] = {}
        self.bound = NEVER
        self.waiting: list[str] = []
        self.ready: list[str] = []
        self.idle: list[str] = []
        self.log: list[tuple[object, ...]] = []
        self.marks = 0
        self.under_way: list[str] = []

    def enter(self, row: Row, now: int, accepted: bool) -> None:
        """A row arrives."""
        name, time, value = row
        key = self.keys.setdefault(name, Key())
        if not accepted:
            return
        key.first = now if key.first is None else key.first
        key.rows.append((time, value))
        if not key.done and key.committed <= time < key.committed + self.length and name in self.idle:
            self.idle.remove(name)
            self.ready.append(name)
        if self.eager and windows_of(time, self.length, self.slide)[-1] > key.committed:
            self.wait(name, now)
        if self.tick is not None:
            self.close(name, time + self.tick, now)

    def advance(self, bound: int, now: int) -> None:
        """The bound of the stream advances."""
        self.bound = bound
        if self.tick is None or bound == FOREVER:
            for name in self.keys:
                self.close(name, bound, now)

    def close(self, name: str, bound: int, now: int) -> None:
        """Windows of a key close."""
        key = self.keys[name]
        held = sorted({start for time, _ in key.rows for start in windows_of(time, self.length, self.slide)})
        known = {start for start, _ in key.closings}
        for start in held:
            if start + self.length <= bound and start not in known:
                key.closings.append((start, now))
                if not self.eager and start > key.committed:
                    self.wait(name, now)
        if name in self.idle and key.committed in {start for start, _ in key.closings}:
            self.idle.remove(name)
            self.finish(name)

    def wait(self, name: str, now: int) -> None:
        """A key enters WAIT if it is not there."""
        if name not in self.waiting:
            self.waiting.append(name)
            self.keys[name].began = now

    def finish(self, name: str) -> None:
        """The window of a key is complete and has left."""
        key = self.keys[name]
        self.under_way.append(name)
        self.log.append(("close", key.mark, name, key.committed))

    def serve(self, now: int) -> bool:
        """Let one row go; whether there was one."""
        if not self.ready:
            free = [name for name in self.waiting if self.keys[name].done]
            if not free:
                return False
            self.commit(free[0], now)
        name = self.ready[0]
        key = self.keys[name]
        inside = [place for place, (time, _) in enumerate(key.rows) if 0 <= time - key.committed < self.length]
        place = next(place for place in inside if place not in key.left)
        key.left.add(place)
        self.log.append(("row", key.mark, name, *key.rows[place]))
        if key.left.issuperset(inside):
            self.ready.pop(0)
            if key.committed in {start for start, _ in key.closings}:
                self.finish(name)
            else:
                self.idle.append(name)
        return True

    def commit(self, name: str, now: int) -> None:
        """Commit a key to its newest window."""
        key = self.keys[name]
        self.waiting.remove(name)
        if self.eager:
            key.committed = max(windows_of(max(time for time, _ in key.rows), self.length, self.slide))
        else:
            key.committed = max(start for start, _ in key.closings)
        key.mark, self.marks = self.marks, self.marks + 1
        key.done, key.left, key.began = False, set(), None
        self.ready.append(name)

    def rest(self) -> None:
        """All that was let go has been worked off."""
        for name in self.under_way:
            key = self.keys[name]
            key.delivered, key.done = key.committed, True
        self.under_way = []

    def tick_on(self, now: int) -> None:
        """A moment passes: add what staleness is during it."""
        for key in self.keys.values():
            newer = [moment for start, moment in key.closings if start > key.delivered]
            if newer:
                key.application_area += now - min(newer) + 0.5
            if key.began is not None:
                key.queue_area += now - key.began + 0.5
