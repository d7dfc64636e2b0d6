"""The clock a host lends the kernel: what time it is, and what work costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from millrace.kernel.elements import Microseconds


class Clock(Protocol):
    """Time as an argument: the kernel reads no other clock."""

    def now(self) -> Microseconds:
        """Microseconds since the epoch."""

    def spend(self, node: str, rows: int, ets: bool = False) -> None:
        """Called when an operator takes `rows` rows (0: a punctuation, or an ETS that came by an ETS arc)."""

    def compare(self, node: str, pairs: int) -> None:
        """Called when an operator has compared so many pairs of rows."""


@dataclass(slots=True)
class StandingClock:
    """A clock that a host sets; work costs nothing."""

    time: Microseconds

    def now(self) -> Microseconds:
        """The time it was set to."""
        return self.time

    def spend(self, node: str, rows: int, ets: bool = False) -> None:
        """Nothing."""

    def compare(self, node: str, pairs: int) -> None:
        """Nothing."""
