"""Queues of updates, event by event and in plain Python: one server, a cost a row, and every policy of 002.

Written to be obviously right: rows are objects in lists, staleness is integrated from one event to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

POLICIES = ("append", "append_shed", "update_fifo", "inplace", "linecutting_as_printed")
LOSSLESS = ("append", "append_shed")
EACH = 32
"""Every so many updates the monitor remembers an arrival."""


@dataclass(frozen=True)
class Row:
    """An update: when it arrives, its own time, its key, its value, and the input it comes by."""

    arrival: int
    time: int
    key: Hashable
    value: Any = None
    port: int = 0


@dataclass(frozen=True)
class Delivery:
    """A row on its way: when it was let go, and when it was delivered."""

    let_go: int
    delivered: int
    row: Row


@dataclass
class Key:
    """All that happened to a key: its accepted rows, and which of them left and were delivered when."""

    accepted: list[Row] = field(default_factory=list)
    waiting: list[tuple[int, int]] = field(default_factory=list)
    """How many accepted rows wait, from a moment on."""
    left: list[tuple[int, int]] = field(default_factory=list)
    """How many accepted rows are not newer than the last one that left, from a moment on."""
    delivered: list[tuple[int, int]] = field(default_factory=list)

    def queue_since(self, now: int) -> int | None:
        """When the first row came that is newer than the last one let go; None if none waits."""
        return self._newer_than(self.left, now) if _at(self.waiting, now) else None

    def application_since(self, now: int) -> int | None:
        """When the first row came that is newer than what was delivered."""
        return self._newer_than(self.delivered, now)

    def _newer_than(self, events: list[tuple[int, int]], now: int) -> int | None:
        newer = [row.arrival for row in self.accepted[_at(events, now) :] if row.arrival <= now]
        return newer[0] if newer else None

    def mean(self, since: Callable[[int], int | None], until: int) -> float:
        """The average from the first arrival up to a moment: from one event to the next it grows with time."""
        moments = {row.arrival for row in self.accepted}
        moments |= {at for events in (self.waiting, self.left, self.delivered) for at, _ in events}
        edges = sorted({each for each in moments if each < until} | {until})
        area = 0.0
        for begin, end in pairwise(edges):
            stale = since(begin)
            if stale is not None:
                area += ((end - stale) ** 2 - (begin - stale) ** 2) / 2
        return area / (until - edges[0]) if until > edges[0] else 0.0

    def position(self, row: Row) -> int:
        """How many accepted rows there are up to this one; 0 if it is not accepted."""
        return next((at for at, each in enumerate(self.accepted, 1) if each is row), 0)


def _at(events: list[tuple[int, int]], now: int) -> int:
    """What holds at a moment."""
    found = [value for at, value in events if at <= now]
    return found[-1] if found else 0


class Simulation:
    """A queue in front of one server that takes `cost` for a row; rows come in order of arrival."""

    def __init__(
        self,
        policy: str,
        cost: int,
        *,
        truth: int | None = None,
        keeps: Callable[[int], bool] = lambda number: True,
        known_cost: Callable[[int], float | None] = lambda served: None,
    ) -> None:
        assert policy in POLICIES
        self.policy = policy
        self.cost = cost
        self.truth = truth
        self.keeps = keeps
        self.known_cost = known_cost
        """What the queue takes a row to cost, when so many have been served."""
        self.line: list[Row] = []
        self.keys: dict[Hashable, Key] = {}
        self.deliveries: list[Delivery] = []
        self.entered = self.superseded = self.shed = self.let_go = 0
        self.peak = 0
        self.begun: int | None = None

    @property
    def waiting(self) -> int:
        return len(self.line)

    def run(self, rows: Sequence[Row], until: int | None = None) -> Simulation:
        """Work all rows off; or go on until a moment, and leave the rest waiting."""
        todo, now = list(rows), 0
        while todo or self.line:
            if not self.line:
                now = max(now, todo[0].arrival)
            while todo and todo[0].arrival <= now:
                self.enter(todo.pop(0))
            if until is not None and now > until:
                break
            if self.line:
                row = self.leave(now)
                now += self.cost
                self.deliver(row, now)
        return self

    # Events

    def enter(self, row: Row) -> None:
        number = self.entered
        self.entered += 1
        key = self.keys.setdefault(row.key, Key())
        newer = self._accepted(key, row)
        if newer:
            self.begun = row.arrival if self.begun is None else self.begun
            key.accepted.append(row)
        if not newer and self.policy not in LOSSLESS:
            self.superseded += 1
        elif not self.keeps(number):
            self.shed += 1
        else:
            self._stand(row, key)
        if newer:
            key.waiting.append((row.arrival, self._waiting(row.key)))
        self.peak = max(self.peak, len(self.line))
        assert self.entered == self.let_go + self.superseded + self.shed + self.waiting

    def leave(self, now: int) -> Row:
        row = self.line.pop(0)
        self.let_go += 1
        key = self.keys[row.key]
        key.left.append((now, max(_at(key.left, now), key.position(row))))
        key.waiting.append((now, self._waiting(row.key)))
        return row

    def deliver(self, row: Row, now: int) -> None:
        key = self.keys[row.key]
        key.delivered.append((now, max(_at(key.delivered, now), key.position(row))))
        self.deliveries.append(Delivery(now - self.cost, now, row))

    # Policies

    def _accepted(self, key: Key, row: Row) -> bool:
        if not key.accepted:
            return True
        last = key.accepted[-1]
        return row.time > last.time or (row.time == last.time and row.port in (last.port, self.truth))

    def _waiting(self, key: Hashable) -> int:
        return sum(row.key == key and self.keys[key].position(row) > 0 for row in self.line)

    def _stand(self, row: Row, key: Key) -> None:
        if self.policy in LOSSLESS:
            self.line.append(row)
            return
        place = next((at for at, each in enumerate(self.line) if each.key == row.key), None)
        cuts = self.policy == "linecutting_as_printed" and self._cuts(key)
        if place is not None:
            self.superseded += 1
            if self.policy == "inplace" or (self.policy == "linecutting_as_printed" and not cuts):
                self.line[place] = row
                return
            del self.line[place]
        self.line.insert(0 if cuts else len(self.line), row)

    def _cuts(self, key: Key) -> bool:
        cost = self.known_cost(self.let_go)
        return cost is not None and self.interval(key) > cost * len(self.line)

    def interval(self, key: Key) -> float:
        """The mean time between updates of a key: over the last 32 to 63, or all of the run."""
        arrivals = [row.arrival for row in key.accepted]
        count = len(arrivals)
        assert self.begun is not None
        if count < 2 * EACH:
            return (arrivals[-1] - self.begun) / count
        since = (count // EACH - 1) * EACH
        if arrivals[-1] == arrivals[since - 1]:
            return (arrivals[-1] - self.begun) / count
        return (arrivals[-1] - arrivals[since - 1]) / (count - since)

    # Staleness

    def queue_mean(self, key: Hashable, until: int) -> float:
        """The average queue staleness of a key."""
        found = self.keys[key]
        return found.mean(found.queue_since, until)

    def application_mean(self, key: Hashable, until: int) -> float:
        """The average application staleness of a key."""
        found = self.keys[key]
        return found.mean(found.application_since, until)
