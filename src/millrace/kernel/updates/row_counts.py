"""What became of the rows of a queue, by input: entered = let_go + superseded + shed + waiting."""

from __future__ import annotations

import numpy as np

from millrace.kernel.columns.integers import Integers
from millrace.kernel.metrics import InputCounts

ENTERED, LET_GO, SUPERSEDED, SHED = range(4)


class RowCounts:
    """Row counts by input; what waits is the rest.

    >>> counts = RowCounts(2)
    >>> counts.add(ENTERED, 0, 3)
    >>> counts.add_all(LET_GO, np.array([0, 0]))
    >>> counts.whole().waiting
    1
    """

    def __init__(self, inputs: int) -> None:
        self._counts = [[0, 0, 0, 0] for _ in range(inputs)]

    @property
    def entered(self) -> int:
        """How many rows have come."""
        return sum([each[ENTERED] for each in self._counts])

    def add(self, what: int, port: int, rows: int) -> None:
        """Count rows of one input."""
        self._counts[port][what] += rows

    def add_all(self, what: int, ports: Integers) -> None:
        """Count rows, by the input of each."""
        if len(self._counts) == 1:
            self._counts[0][what] += len(ports)
            return
        for port, rows in enumerate(np.bincount(ports, minlength=len(self._counts)).tolist()):
            self._counts[port][what] += rows

    def by_input(self) -> tuple[InputCounts, ...]:
        """The counts of each input."""
        return tuple(_named(each) for each in self._counts)

    def whole(self) -> InputCounts:
        """The counts of all together."""
        return _named([sum(each) for each in zip(*self._counts, strict=True)])

    def note(self) -> list[list[int]]:
        """All of it."""
        return [list(each) for each in self._counts]

    def restore(self, note: list[list[int]]) -> None:
        """Go on from a note."""
        self._counts = [list(each) for each in note]


def _named(counts: list[int]) -> InputCounts:
    waiting = counts[ENTERED] - sum(counts[LET_GO:])
    return InputCounts(
        entered=counts[ENTERED],
        let_go=counts[LET_GO],
        superseded=counts[SUPERSEDED],
        shed=counts[SHED],
        waiting=waiting,
    )
