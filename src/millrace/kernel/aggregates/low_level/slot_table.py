"""A table with a fixed number of slots, each empty or holding one row that belongs to a pane.

Rows are appended to a log of Arrow tables, and a slot has the place of its row in the log. So a change costs what it
changes, not the size of the table. The log is compacted when most of its rows are no longer in a slot.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.grouping import codes_of
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Mask, concat_tables
from millrace.kernel.stores.run_store import RowRun, RunStore

_EMPTY = -1
_SPARE = 2**14
"""Rows of the log that may be out of use before it is compacted."""


class SlotTable:
    """`size` slots for rows, each with the pane that its row belongs to."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.panes: dict[int, int] = {}
        """How many rows of each pane there are."""
        self._pane = np.zeros(size, np.int64)
        self._place = np.full(size, _EMPTY, np.int64)
        self._log = RunStore(_concatenated, whole=True)
        self._logged = 0
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """The memory of the slots and the log."""
        return int(self._pane.nbytes + self._place.nbytes) + self._log.nbytes

    def occupied(self, slots: Integers) -> Mask:
        """True for each of the slots that holds a row."""
        taken: Mask = self._place[slots] != _EMPTY
        return taken

    def panes_at(self, slots: Integers) -> Integers:
        """The pane of the row of each of the slots; anything where there is none."""
        return self._pane[slots]

    def older(self, pane: int, start: int = 0, stop: int | None = None) -> Integers:
        """The slots from `start` up to `stop` whose rows belong to earlier panes, in order."""
        part = slice(start, stop)
        return np.flatnonzero((self._place[part] != _EMPTY) & (self._pane[part] < pane)) + start

    def all(self) -> Integers:
        """All slots that hold a row."""
        return np.flatnonzero(self._place != _EMPTY)

    def rows(self, slots: Integers) -> pa.Table:
        """The rows of slots that hold one."""
        return pa.concat_tables([run.table for run in self._log.runs]).take(pa.array(self._place[slots]))

    def take(self, slots: Integers) -> pa.Table:
        """The rows of slots that hold one, which are empty then."""
        taken = self.rows(slots)
        self._count(self._pane[slots], -1)
        self._place[slots] = _EMPTY
        self._rows -= len(slots)
        return taken

    def put(self, slots: Integers, rows: pa.Table, panes: Integers) -> None:
        """Give each of the slots, which are empty, a row."""
        if not len(slots):
            return
        self._place[slots] = np.arange(self._logged, self._logged + len(slots))
        self._pane[slots] = panes
        self._count(panes, 1)
        self._rows += len(slots)
        self._log.add(RowRun(rows))
        self._logged += rows.num_rows
        if self._logged > 2 * self._rows + _SPARE:
            self._compact()

    def _count(self, panes: Integers, sign: int) -> None:
        for pane, count in zip(*np.unique(panes, return_counts=True), strict=True):
            left = self.panes.get(int(pane), 0) + sign * int(count)
            if left:
                self.panes[int(pane)] = left
            else:
                del self.panes[int(pane)]

    def _compact(self) -> None:
        """Keep the rows of the log that are in a slot."""
        slots = self.all()
        kept = self.rows(slots).combine_chunks()
        self._log.clear()
        self._log.add(RowRun(kept))
        self._logged = len(slots)
        self._place[slots] = np.arange(len(slots))


def _concatenated(runs: Sequence[RowRun]) -> RowRun:
    return RowRun(concat_tables([run.table for run in runs]))


# The second slot: the one after a group's own, tried before an entry of the new window is driven out (004 section 6,
# footnote 1)


def chosen_slots(table: SlotTable, groups: pa.Table, own: Integers, current: int) -> Integers:
    """The slot of each of some groups, all different, in the order in which they came.

    A group takes its own slot. If an entry of the new window (of pane `current`) and of another group is there, it
    takes the next slot, provided that this is empty, or has an entry of an old window or of this group. Of several
    groups that want the same slot the first gets it.
    """
    following = (own + 1) % table.size
    mine, next_is_mine = _own_entries(table, groups, own, following)
    taken = ~(_free(table, own, current) | mine)
    # A group that comes after another with the same slot finds an entry of the new window there.
    later = np.ones(len(own), np.bool_)
    later[np.unique(own, return_index=True)[1]] = False
    wanted = (taken | (later & ~mine)) & (next_is_mine | (_free(table, following, current) & ~np.isin(following, own)))
    places = np.flatnonzero(wanted)
    first = places[np.unique(following[places], return_index=True)[1]]
    slots = own.copy()
    slots[first] = following[first]
    return slots


def _free(table: SlotTable, slots: Integers, current: int) -> Mask:
    """True for each of the slots that is empty, or has an entry of an old window."""
    return ~table.occupied(slots) | (table.panes_at(slots) < current)


def _own_entries(table: SlotTable, groups: pa.Table, *slots: Integers) -> list[Mask]:
    """For each of several columns of slots: True where a slot has the entry of its group."""
    met = np.unique(np.concatenate(slots))
    met = met[table.occupied(met)]
    if not len(met):
        return [np.zeros(groups.num_rows, np.bool_) for _ in slots]
    members = pa.concat_tables([groups, table.rows(met).select(groups.column_names)])
    codes, _ = codes_of([column.combine_chunks() for column in members.columns], members.num_rows)
    there = np.full(table.size, -1, np.int64)
    there[met] = codes[groups.num_rows :]
    return [there[each] == codes[: groups.num_rows] for each in slots]
