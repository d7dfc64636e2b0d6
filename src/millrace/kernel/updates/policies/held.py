"""What a queue holds, whatever its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from millrace.kernel.elements import Microseconds
from millrace.kernel.updates.policies.key_cells import Numbers


class Taken(NamedTuple):
    """Rows that leave: their entries, in order, and the inputs that they came by."""

    entries: Numbers
    ports: Numbers


class Held:
    """Rows that wait."""

    def __len__(self) -> int:
        raise AssertionError("a queue counts what it holds")

    @property
    def used(self) -> int:
        """How many locations for rows are in use."""
        return len(self)

    @property
    def allocated(self) -> int:
        """How many locations are set aside."""
        return len(self)

    def take(self, count: int, now: Microseconds, cost: float | None) -> Taken:
        """Let go of at most so many rows."""
        raise AssertionError("a queue says what leaves")

    def entries(self) -> Numbers:
        """The entries of all rows that wait."""
        raise AssertionError("a queue knows its rows")

    def least(self) -> Microseconds:
        """The least time of the rows that wait; END_OF_TIME without any."""
        raise AssertionError("a queue knows its rows")

    def first(self) -> tuple[int, Microseconds]:
        """The key that has waited longest, or nearly, and since when; -1 if none waits."""
        raise AssertionError("a queue knows its keys")

    def presses(self, now: Microseconds, cost: float | None) -> bool:
        """Whether what leaves next should not wait until other queues have nothing to do."""
        return True

    def note(self) -> dict[str, Any]:
        """What is to be kept besides the stores; these are up to date from then on."""
        raise AssertionError("a queue saves its order")

    def restore(self, note: Mapping[str, Any]) -> None:
        """Go on from a note, with the stores restored."""
        raise AssertionError("a queue saves its order")
