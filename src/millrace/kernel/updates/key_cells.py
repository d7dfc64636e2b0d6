"""Key cells: what is known of each key, in columns that are preallocated and grow by doubling.

Rules:
- A cell is a place in every column, under the key's number. A class that keeps something per key adds a column for it.
- A column is fetched by name each time it is used: it moves when it grows.
- A save writes the cells touched since the last one, as a run in which the newest wins. Where the columns have changed
  meanwhile, it writes all cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.columns.integers import Integers, grown
from millrace.kernel.elements import NO_BOUND
from millrace.kernel.state import Changes
from millrace.kernel.stores.keyed_runs import HASH, KeyedRuns

Column = npt.NDArray[Any]

NONE = NO_BOUND
"""Stands for no time, no place, no entry."""
_FIRST_ROOM = 64


class KeyCells:
    """Columns of numbers, a cell per key.

    >>> cells = KeyCells()
    >>> cells.add("last")
    >>> cells.grow(2)
    >>> cells["last"][1] = 7
    >>> cells["last"][:2].tolist() == [NONE, 7]
    True
    """

    def __init__(self) -> None:
        self.count = 0
        self._room = _FIRST_ROOM
        self._columns: dict[str, Column] = {}
        self._fillers: dict[str, int] = {}
        self._touched = np.zeros(_FIRST_ROOM, np.bool_)
        self._runs = KeyedRuns()
        self._saved: tuple[str, ...] = ()
        """The columns of the runs."""

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def add(self, name: str, filler: int = NONE, kind: type = np.int64) -> None:
        """Add a column, if there is none of that name."""
        if name not in self._columns:
            self._fillers[name] = filler
            self._columns[name] = np.full(self._room, filler, kind)

    def drop(self, name: str) -> None:
        """Remove a column."""
        del self._columns[name], self._fillers[name]

    def grow(self, count: int) -> None:
        """Make room for `count` keys."""
        if count > self._room:
            self._touched = grown(self._touched, count, False)
            self._room = len(self._touched)
            for name, column in self._columns.items():
                self._columns[name] = grown(column, count, self._fillers[name])
        self.count = max(self.count, count)

    def clear(self) -> None:
        """Remove all cells, and what was saved of them."""
        self.count = 0
        self._touched[:] = False
        self._runs.clear()
        for name, column in self._columns.items():
            column[:] = self._fillers[name]

    def touch(self, keys: Integers | int) -> None:
        """Some cells have changed, or will have by the next save."""
        self._touched[keys] = True

    @property
    def nbytes(self) -> int:
        """The memory of all columns, and of what has been saved."""
        return sum(int(column.nbytes) for column in self._columns.values()) + self._runs.nbytes

    def changes(self) -> Changes:
        """What changed since the last save."""
        names = tuple(self._columns)
        if names != self._saved:
            self._runs.clear()
            self._touched[: self.count] = True
            self._saved = names
        touched = np.flatnonzero(self._touched[: self.count])
        if len(touched):
            columns = {name: column[touched] for name, column in self._columns.items()}
            self._runs.put(touched, pa.table({HASH: touched, **columns}))
            self._touched[touched] = False
        changes = self._runs.changes()
        return Changes(changes.added, changes.removed, {**changes.note, "count": self.count, "names": list(names)})

    def restore(self, changes: Changes) -> None:
        """Go on from saved cells; columns that were not saved hold their fillers."""
        self._runs.restore(changes)
        self._saved = tuple(changes.note["names"])
        self.grow(changes.note["count"])
        for table in self._runs.whole():
            numbers = table.column(HASH).to_numpy()
            for name in self._saved:
                if name in self._columns:
                    self._columns[name][numbers] = table.column(name).to_numpy()
