"""What a queue of windows knows of each key: key cells in columns (002 section 7.1).

A window is known by its start: `NO_BOUND` stands for none so far, `END_OF_TIME` for the end of none to come.
"""

from __future__ import annotations

import numpy as np

from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Times
from millrace.kernel.updates.key_cells import NONE, KeyCells

SHUT, OPEN, UNDER_WAY = 0, 1, 2
"""A commitment: there is none, it is open, or its closer has been released but not been processed downstream."""

_FIELDS = {
    "last": NO_BOUND,  # The time of the newest accepted row,
    "port": NONE,  # and the input it came by.
    "floor": NO_BOUND,  # Rows from here on wait in the enqueue buffer.
    "start": NO_BOUND,  # The window that was committed to last,
    "end": NO_BOUND,
    "before": NO_BOUND,  # the end of the one before it,
    "mark": NONE,  # the number of the commitment,
    "opened": SHUT,  # how far it is: SHUT, OPEN or UNDER_WAY,
    "progress": 0,  # the entry below which its rows have left,
    "pending": 0,  # and how many of its rows have not.
    "gone": NO_BOUND,  # The newest time of a row that has left.
    "ready": NO_BOUND,  # LAZY: the newest window that has fully arrived.
    "delivered": NO_BOUND,  # The newest window that has been delivered.
    "following": END_OF_TIME,  # Where the first window with a row ends that is later than the ready one,
    "ahead": END_OF_TIME,  # than the committed one,
    "due": END_OF_TIME,  # than the delivered one.
    "place": NONE,  # The place in line of a key that waits,
    "turn": NONE,  # and the turn of one under processing.
    "updates": 0,  # How many accepted rows it has had.
    "first": NONE,  # When its first row arrived.
    "ahead_since": NONE,  # Since when its application will be stale once the committed window has been delivered.
    "queue_since": NONE,  # Since when it is stale: see staleness.py.
    "application_since": NONE,
}


class WindowCells(KeyCells):
    """A cell per key; its columns are attributes."""

    def __init__(self) -> None:
        super().__init__()
        for name, filler in _FIELDS.items():
            self.add(name, filler)

    def __getattr__(self, name: str) -> Integers:
        try:
            column: Integers = self.__dict__["_columns"][name]
        except KeyError:
            raise AttributeError(name) from None
        return column

    def note(self, port: int, keys: Integers, times: Times, arrivals: Times) -> None:
        """Know of rows of one input."""
        self.touch(keys)
        unseen = np.flatnonzero(self.first[keys] == NONE)
        self.first[keys[unseen[::-1]]] = arrivals[unseen[::-1]]
        np.add.at(self.updates, keys, 1)
        np.maximum.at(self.last, keys, times)
        self.port[keys] = port
