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


class NaiveAcceptance:
    """Which rows are accepted, of any number of inputs; with a tick a key's own rows close its windows."""

    def __init__(self, length: int, slide: int, tick: int | None, truth: int | None = None) -> None:
        self.length, self.slide, self.tick, self.truth = length, slide, tick, truth
        self.rows: list[tuple[int, Row]] = []
        """What was accepted and has not made room, with its input."""
        self.left: set[int] = set()
        """The values of the rows that have left."""

    def enter(self, port: int, row: Row) -> tuple[bool, list[Row]]:
        """Whether a row is accepted, and the rows that make room for it."""
        key, time, _ = row
        known = [(other[1], whose) for whose, other in self.rows if other[0] == key]
        if not windows_of(time, self.length, self.slide):
            return False, []
        room = []
        if known:
            newest, listened = max(known)
            if port != listened and time <= newest:
                room = [other for _, other in self.rows if other[:2] == (key, time)]
                if time < newest or port != self.truth or self.left & {value for _, _, value in room}:
                    return False, []
            if self.tick is not None:
                closed = (newest + self.tick - self.length) // self.slide * self.slide + self.length
                if time < newest or time < closed:
                    return False, []
        self.rows = [each for each in self.rows if each[1] not in room] + [(port, row)]
        return True, room


@dataclass
class Key:
    """What is known of a key: all accepted rows, what it committed to, what has left."""

    rows: list[tuple[int, int]] = field(default_factory=list)
    first: int | None = None
    committed: int = NEVER
    mark: int = -1
    done: bool = True
    left: set[int] = field(default_factory=set)
    """The values of the rows that have left for it."""
    delivered: int = NEVER
    closings: list[tuple[int, int]] = field(default_factory=list)
    """Windows that have closed, and when."""
    began: int | None = None
    """When it began to wait."""
    queue_area: float = 0.0
    application_area: float = 0.0


class NaiveWindows:
    """The key transition graph (002 section 6.2); without a `tick` the stream's bound closes windows."""

    def __init__(self, length: int, slide: int, eager: bool, tick: int | None, truth: int | None = None) -> None:
        self.length, self.slide, self.eager, self.tick = length, slide, eager, tick
        self.acceptance = NaiveAcceptance(length, slide, tick, truth)
        self.keys: dict[str, Key] = {}
        self.bound = NEVER
        self.waiting: list[str] = []
        self.ready: list[str] = []
        self.idle: list[str] = []
        self.log: list[tuple[object, ...]] = []
        self.marks = 0
        self.under_way: list[str] = []

    def enter(self, port: int, row: Row, now: int) -> None:
        """A row arrives by an input."""
        name, time, value = row
        key = self.keys.setdefault(name, Key())
        accepted, room = self.acceptance.enter(port, row)
        if not accepted:
            return
        key.first = now if key.first is None else key.first
        key.rows = [each for each in key.rows if (name, *each) not in room] + [(time, value)]
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
        waiting = [(time, value) for time, value in self.inside(key) if value not in key.left]
        key.left.add(waiting[0][1])
        self.acceptance.left.add(waiting[0][1])
        self.log.append(("row", key.mark, name, *waiting[0]))
        if len(waiting) == 1:
            self.ready.pop(0)
            if key.committed in {start for start, _ in key.closings}:
                self.finish(name)
            else:
                self.idle.append(name)
        return True

    def inside(self, key: Key) -> list[tuple[int, int]]:
        """The rows of the committed window."""
        return [(time, value) for time, value in key.rows if 0 <= time - key.committed < self.length]

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
