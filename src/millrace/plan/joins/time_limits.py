"""How far apart the times of joined rows may be: for each pair of inputs the most that one is after the other.

Limits follow from each other: if b is at most a minute after a, and c at most a minute after b, then c is at most two
minutes after a (shortest paths).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True)
class TimeLimit:
    """A row of input `later` is at most `most` microseconds after a row of input `first`; before it if negative."""

    first: int
    later: int
    most: int


class TimeLimits:
    """The closure of limits between a number of inputs."""

    def __init__(self, count: int, limits: Iterable[TimeLimit]) -> None:
        self.most: dict[tuple[int, int], int] = {}
        for each in limits:
            self._lower(each.first, each.later, each.most)
        for through, first, later in product(range(count), repeat=3):
            to, on = self.most.get((first, through)), self.most.get((through, later))
            if to is not None and on is not None and first != through != later:
                self._lower(first, later, to + on)

    def _lower(self, first: int, later: int, most: int) -> None:
        self.most[first, later] = min(most, self.most.get((first, later), most))

    def of(self, first: int, later: int) -> int | None:
        """How far a row of `later` may be after one of `first`; None: any time."""
        return 0 if first == later else self.most.get((first, later))

    def contradict(self) -> bool:
        """True if no rows can meet all limits."""
        return any(most < 0 for (first, later), most in self.most.items() if first == later)
