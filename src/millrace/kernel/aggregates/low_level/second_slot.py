"""The slot after a group's own, tried before an entry of the new window is driven out (004 section 6, footnote 1)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.low_level.slot_table import SlotTable
from millrace.kernel.columns.grouping import codes_of
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import Mask


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
