"""Keys by when they are read (002 section 8: access frequency in the goal).

For a key that is read at intervals, only its staleness at those moments counts, so it is best released once, just
before. Keys of one access class are read together. Classes are served in the order of the next moment of reading that
they can still meet, and as late as allows each of them to meet its own; until then the keys that are read all the time
are served, in place. A key that is updated again after it was released for a moment waits for the next one,
unless nothing else waits. Classes that would take more than half of the service between two of their moments count as
read all the time: at such a pace it is nearly the same, and the others would starve.

Beside other queues, keys that are not read all the time are served in the time that those queues leave. They press for
time of their own in the last eighth before a moment of reading, when the time left is at most twice what they need, or
when they have missed a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Microseconds
from millrace.kernel.updates.key_cells import NONE, KeyCells
from millrace.kernel.updates.policies.key_order import InPlace, Line

Classes = Callable[[Integers], Integers]

_SHARE = 0.5
"""How much of the service classes with moments of reading may claim."""
_LAST = 1 / 8
"""How much of the time between two moments is kept for them, before the later one, whatever they take."""


class _Class:
    """The keys of a class: those to be released before the next moment of reading, and those that have been."""

    def __init__(self, cells: KeyCells, every: Microseconds | None) -> None:
        self.every = every
        self.until: float = float(NONE)
        """The next moment of reading."""
        self.ahead = Line(cells)
        self.after = Line(cells)
        self.many = [0, 0]
        """How many keys are in each."""

    def moment(self, at: float) -> float:
        """The first moment of reading that is not before `at`."""
        return float(-(-at // self.every) * self.every) if self.every else float(NONE)

    def reach(self, at: float) -> None:
        """Go on to the first moment that is not before `at`."""
        until = self.moment(at)
        if until > self.until:
            self.until = until
            if self.many[1]:
                self.ahead.push(*self.after.drain())
                self.many = [sum(self.many), 0]


class ByAccess(InPlace):
    """Keys in place, by access class: class 0 is read all the time, class i at the multiples of `every[i - 1]`."""

    def __init__(self, cells: KeyCells, every: Sequence[Microseconds], classes: Classes) -> None:
        super().__init__(cells)
        cells.add("access")
        cells.add("read")
        self._classes_of = classes
        self._classes = [_Class(cells, None), *(_Class(cells, each) for each in every)]

    # Rows

    def _push(self, keys: Integers) -> Integers:
        places = super()._push(keys)
        self._sort_in(keys, places)
        return places

    def _push_one(self, key: int) -> None:
        self._push(np.array([key]))

    def _sort_in(self, keys: Integers, places: Integers) -> None:
        column, read = self._cells["access"], self._cells["read"]
        unknown = keys[column[keys] == NONE]
        if len(unknown):
            column[unknown] = self._classes_of(unknown)
        for number in np.unique(column[keys]).tolist():
            own, each = column[keys] == number, self._classes[number]
            done = own & (read[keys] == each.until) if each.every else np.zeros(len(keys), np.bool_)
            for at, (line, some) in enumerate(((each.ahead, own & ~done), (each.after, done))):
                line.push(keys[some], places[some])
                each.many[at] += int(some.sum())

    def take(self, count: int, now: Microseconds, cost: float | None) -> Integers:
        """The keys that leave; what they cost passes while they are chosen."""
        cost = cost or 0.0
        count, taken, at = min(count, self._waiting), list[Integers](), float(now)
        while count > 0:
            for each in self._classes:
                each.reach(at + cost)
            lines, many = self._turn(at, cost)
            keys = self._popped(lines, min(many, count))
            taken.append(keys)
            count -= len(keys)
            at += len(keys) * cost
        return np.concatenate(taken) if taken else np.empty(0, np.int64)

    def _turn(self, at: float, cost: float) -> tuple[list[Line], int]:
        """The lines whose keys are next, and how many of them at most before that is to be asked again."""
        always, timed = self._parted(cost)
        slack, needed = float("inf"), 0.0
        due = sorted([each for each in timed if each.many[0]], key=lambda each: each.until)
        for each in due:
            needed += each.many[0] * cost
            slack = min(slack, each.until - at - needed)
        waiting = sum(sum(each.many) for each in always)
        if waiting and slack >= cost:
            return _lines(always), waiting if not cost or not due else int(slack / cost)
        if due:
            return [due[0].ahead], max(1, int((due[0].until - at) / cost)) if cost else due[0].many[0]
        return (_lines(always), waiting) if waiting else (_lines(timed), self._waiting)

    def presses(self, now: Microseconds, cost: float | None) -> bool:
        cost = cost or 0.0
        always, timed = self._parted(cost)
        if any(sum(each.many) for each in always):
            return True
        needed = 0.0
        for until, each in sorted(((each.moment(now + cost), each) for each in timed), key=lambda pair: pair[0]):
            passed = until > each.until
            ahead = each.many[0] + (each.many[1] if passed else 0)
            needed += ahead * cost
            pressing = until - now <= max(2 * needed, _LAST * (each.every or 0))
            if ahead and (pressing or (passed and self._has_missed(each))):
                return True
        return False

    def _has_missed(self, each: _Class) -> bool:
        """True if a key has been waiting since before the last moment, for which it was not released."""
        key = each.ahead.first()
        return key >= 0 and float(self._cells["queue_since"][key]) < each.until

    def _parted(self, cost: float) -> tuple[list[_Class], list[_Class]]:
        """The classes that count as read all the time, and those that can be served by when they are read."""
        always, timed, claimed = [self._classes[0]], list[_Class](), 0.0
        for each in sorted(self._classes[1:], key=lambda each: each.every or 0):
            claimed += sum(each.many) * cost / (each.every or 1)
            (timed if claimed <= _SHARE else always).append(each)
        return always, timed

    def _popped(self, lines: list[Line], count: int) -> Integers:
        """The first keys of some lines, in place."""
        keys = np.concatenate([line.peek(count) for line in lines])
        keys = keys[np.argsort(self._cells["place"][keys])][:count]
        column, read = self._cells["access"], self._cells["read"]
        for number in np.unique(column[keys]).tolist():
            own, each = keys[column[keys] == number], self._classes[number]
            if each.every:
                done = read[own] == each.until
                each.many = [each.many[0] - int((~done).sum()), each.many[1] - int(done.sum())]
                read[own] = each.until
            else:
                each.many[0] -= len(own)
        return self._left(keys)

    # All keys

    def close(self) -> None:
        self._cells.drop("access")
        self._cells.drop("read")

    def note(self) -> dict[str, Any]:
        return {**super().note(), "until": [each.until for each in self._classes]}

    def restore(self, note: Mapping[str, Any]) -> None:
        super().restore(note)
        # The classes may be others by now.
        self._cells["access"][: self._cells.count] = NONE
        for each, until in zip(self._classes, note.get("until", ()), strict=False):
            each.until = until
        keys = self._line.all()
        self._sort_in(keys, self._cells["place"][keys])


def _lines(classes: Iterable[_Class]) -> list[Line]:
    return [line for each in classes for line in (each.ahead, each.after)]
