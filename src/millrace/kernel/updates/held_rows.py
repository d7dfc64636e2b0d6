"""What an append queue holds: rows in their order of arrival, several per key.

Rules:
- Each row remembers the arrival of the next accepted row of its key, `newer`: from then on the row is stale, also if
  that next one is shed. Of the newest row of a key its cell remembers it.
- A row that is not accepted, because it is older than one before it, leaves like the others and changes no staleness.
- A row is saved once, with the moment since when the accepted row before it is stale; so nothing is ever rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers, grown, stable_order, starts
from millrace.kernel.elements import END_OF_TIME, Microseconds, Times
from millrace.kernel.stores.sorted_runs import SortedRuns
from millrace.kernel.updates.frequency import Frequency
from millrace.kernel.updates.key_cells import NONE, KeyCells
from millrace.kernel.updates.staleness import RowStaleness
from millrace.kernel.updates.update_batch import UpdateBatch

_COLUMNS = ("key", "entry", "time", "port", "newer", "accepted", "before")
_FIRST_ROOM = 64


class HeldRows:
    """Rows under numbers that grow, first in, first out."""

    keeps = False
    """True if it keeps the memory of rows that have left."""

    def __init__(self, cells: KeyCells, staleness: RowStaleness, frequency: Frequency, runs: SortedRuns) -> None:
        self._cells = cells
        self._staleness = staleness
        self._frequency = frequency
        cells.add("newest")
        cells.add("newer")
        self._columns = {name: np.empty(_FIRST_ROOM, np.int64) for name in _COLUMNS}
        self._offset = 0
        """The number of the row in the first place of the columns."""
        self._first = 0
        self._next = 0
        """The numbers of the first row that waits, and of the next that will come."""
        self._saved = 0
        self._runs = runs
        """The rows that were saved, by number."""

    def __len__(self) -> int:
        return self._next - self._first

    def enter(self, updates: UpdateBatch, keys: Integers, times: Times, kept: Integers, entries: Integers) -> None:
        """Put the rows `kept` of a batch, with these keys and times, at the end; `updates` are the accepted ones."""
        first = self._next
        accepted = np.zeros(len(keys), np.bool_)
        accepted[updates.rows] = True
        self._put(len(kept), keys[kept], entries, times[kept], updates.port, accepted[kept])
        if len(updates):
            numbers = np.full(len(keys), NONE, np.int64)
            numbers[kept] = np.arange(first, self._next)
            self._staleness.arrive(updates.distinct, updates.arrived[updates.first])
            self._link(updates, numbers[updates.rows])
            self._frequency.count(updates)

    def _link(self, updates: UpdateBatch, numbers: Integers) -> None:
        """Tell rows since when they are stale: by the first accepted row of their key behind them, kept or not."""
        order = updates.order
        numbers, arrived, keys = numbers[order], updates.arrived[order], updates.keys[order]
        begins = np.repeat(updates.begins, updates.counts)
        stays = numbers != NONE
        last = np.maximum.accumulate(np.where(stays, np.arange(len(order)), -1))
        kept = np.flatnonzero(stays)
        self._follow(keys[kept], numbers, arrived, kept, np.append(-1, last[:-1])[kept], begins[kept])
        ends = updates.begins + updates.counts - 1
        self._end(updates.distinct, numbers, arrived, last[ends], updates.begins, ends)
        many = np.add.reduceat(stays.astype(np.int64), updates.begins)
        some = many > 0
        first = kept[np.searchsorted(kept, updates.begins[some])]
        self._staleness.wait(updates.distinct[some], many[some], arrived[first])

    def _follow(
        self, keys: Integers, numbers: Integers, arrived: Times, kept: Integers, last: Integers, begins: Integers
    ) -> None:
        """Link each row that is kept with the one before it of its key, at `last` in the batch or held already."""
        cells, inside = self._cells, last >= begins
        previous = np.where(inside, numbers[last], cells["newest"][keys])
        known = cells["newer"][keys]
        known = np.where((known == NONE) | (cells["newest"][keys] == NONE), arrived[begins], known)
        before = np.where(inside, arrived[last + 1], known)
        self._columns["before"][numbers[kept] - self._offset] = before
        waits = (previous != NONE) & (previous >= self._first)
        self._columns["newer"][previous[waits] - self._offset] = before[waits]

    def _end(
        self, keys: Integers, numbers: Integers, arrived: Times, last: Integers, begins: Integers, ends: Integers
    ) -> None:
        """Remember the last row kept of each key, and since when it is stale by rows that were shed behind it."""
        newest, newer = self._cells["newest"], self._cells["newer"]
        some = last >= begins
        stale = np.where(last < ends, arrived[np.minimum(last + 1, ends)], NONE)
        newest[keys[some]] = numbers[last[some]]
        newer[keys[some]] = stale[some]
        shed = ~some & (newest[keys] != NONE) & (newer[keys] == NONE)
        newer[keys[shed]] = arrived[begins[shed]]

    def enter_one(
        self, key: int, arrived: Microseconds | None, time: Microseconds, port: int, entry: int | None
    ) -> None:
        """One row has come: accepted if it has an arrival, kept if it has an entry."""
        before = NONE if arrived is None else self._seen(key, arrived)
        if entry is None:
            if arrived is not None and self._cells["newest"][key] != NONE and self._cells["newer"][key] == NONE:
                self._cells["newer"][key] = arrived
            return
        number = self._next
        self._put(1, key, entry, time, port, arrived is not None, before)
        if arrived is not None:
            previous = int(self._cells["newest"][key])
            if previous >= self._first:
                self._columns["newer"][previous - self._offset] = before
            self._cells["newest"][key], self._cells["newer"][key] = number, NONE
            self._staleness.wait_one(key, arrived)

    def _seen(self, key: int, arrived: Microseconds) -> Microseconds:
        """Take an accepted row into account; since when the one before it is stale."""
        self._staleness.arrive_one(key, arrived)
        self._frequency.count_one(key, arrived)
        cells = self._cells
        known = int(cells["newer"][key])
        return arrived if known == NONE or cells["newest"][key] == NONE else known

    def take(self, count: int, now: Microseconds, cost: float | None) -> tuple[Integers, Integers]:
        """Release at most `count` rows: their entries in order, and the inputs that they came by."""
        numbers = np.arange(self._first, min(self._first + count, self._next))
        here = self._here(self._first, self._first + len(numbers))
        columns = {name: self._columns[name][here] for name in ("key", "entry", "port", "newer", "accepted")}
        accepted = columns["accepted"] != 0
        if len(numbers) == 1:
            # With arrays a row would cost a third more on its way through the query.
            if accepted[0]:
                self._leave_one(int(columns["key"][0]), int(columns["newer"][0]), self._first, now)
        elif accepted.any():
            self._leave(columns["key"][accepted], columns["newer"][accepted], numbers[accepted], now)
        self._first += len(numbers)
        return columns["entry"], columns["port"]

    def _leave(self, keys: Integers, newer: Times, numbers: Integers, now: Microseconds) -> None:
        """Accepted rows leave: the last one of each key says since when it is stale."""
        order = stable_order(keys)
        begins = np.flatnonzero(starts(keys[order]))
        counts = np.diff(begins, append=len(keys))
        last = order[begins + counts - 1]
        keys, newer, numbers = keys[last], newer[last], numbers[last]
        cells = self._cells
        gone = cells["newest"][keys] == numbers
        newer[gone] = cells["newer"][keys[gone]]
        cells["newest"][keys[gone]] = NONE
        cells["newer"][keys[gone]] = NONE
        cells.touch(keys)
        self._staleness.leave(keys, counts, newer, now)

    def _leave_one(self, key: int, newer: Microseconds, number: int, now: Microseconds) -> None:
        cells = self._cells
        if cells["newest"][key] == number:
            newer = int(cells["newer"][key])
            cells["newest"][key] = cells["newer"][key] = NONE
        cells.touch(key)
        self._staleness.leave_one(key, newer, now)

    def entries(self) -> Integers:
        """The entries of all rows that wait."""
        return self._waiting("entry")

    def least(self) -> Microseconds:
        """The least time of the rows that wait; END_OF_TIME without any."""
        return int(self._waiting("time").min()) if len(self) else END_OF_TIME

    def first(self) -> tuple[int, Microseconds]:
        """The key of the first row, and since when it is stale; -1 if it is not, or no row waits."""
        if not len(self):
            return -1, 0
        key = int(self._waiting("key")[0])
        since = int(self._cells["queue_since"][key])
        return (key, since) if since != NONE else (-1, 0)

    def presses(self, now: Microseconds, cost: float | None) -> bool:
        """True for every row: none waits until other queues have nothing to do."""
        return True

    # Other kinds of queues

    def adopt(self, keys: Integers, entries: Integers, times: Times, ports: Integers) -> None:
        """Go on with one waiting row of each key, in this order."""
        first = self._next
        self._put(len(keys), keys, entries, times, ports, 1)
        self._cells["newest"][keys] = np.arange(first, self._next)
        self._cells.touch(keys)

    def drop_older(self) -> tuple[Integers, Integers]:
        """Drop the rows that are not accepted: their entries and inputs."""
        accepted = self._waiting("accepted") != 0
        entries, ports = self._waiting("entry")[~accepted], self._waiting("port")[~accepted]
        if len(entries):
            self._keep(np.flatnonzero(accepted))
        return entries, ports

    def _keep(self, kept: Integers) -> None:
        """Hold some rows alone, under numbers behind all others: what was saved of rows up to then is out of date."""
        columns, numbers = {name: self._waiting(name)[kept] for name in _COLUMNS}, self._first + kept
        self._first = self._offset = self._next
        self._next += len(kept)
        for name, values in columns.items():
            self._columns[name][: len(kept)] = values
        keys, newest = columns["key"], self._cells["newest"]
        last = np.flatnonzero(newest[keys] == numbers)
        newest[keys[last]] = self._first + last
        self._cells.touch(keys)

    def close(self) -> tuple[Integers, Integers, Integers, Integers]:
        """Give all up: the keys whose newest row waits, in the order of their first one, the entries of those rows;
        and the entries and inputs of all other rows. Since when these newest rows are stale stays in the cells."""
        keys, accepted = self._waiting("key"), self._waiting("accepted") != 0
        numbers = np.arange(self._first, self._next)
        newest = accepted & (self._cells["newest"][keys] == numbers)
        order = stable_order(keys)
        first = order[starts(keys[order])]
        place = np.empty(self._cells.count, np.int64)
        place[keys[first]] = first
        kept = np.flatnonzero(newest)
        kept = kept[np.argsort(place[keys[kept]])]
        entries, ports = self._waiting("entry"), self._waiting("port")
        self._staleness.drop(keys[kept])
        self._cells.touch(keys)
        self._cells.drop("newest")
        self._runs.clear()
        return keys[kept], entries[kept], entries[~newest], ports[~newest]

    # Room

    def _waiting(self, name: str) -> Integers:
        return self._columns[name][self._here(self._first, self._next)]

    def _put(self, count: int, key: Any, entry: Any, time: Any, port: Any, accepted: Any, before: Any = NONE) -> None:
        """Put rows at the end: their columns, or a value for all of them."""
        self._make_room(count)
        here = self._here(self._next, self._next + count)
        for name, values in zip(_COLUMNS, (key, entry, time, port, NONE, accepted, before), strict=True):
            self._columns[name][here] = values
        self._next += count

    def _here(self, start: int, stop: int) -> slice:
        return slice(start - self._offset, stop - self._offset)

    def _make_room(self, more: int) -> None:
        room = len(self._columns["key"])
        if self._next - self._offset + more <= room:
            return
        waiting = len(self)
        while room < 2 * (waiting + more):
            room *= 2
        for name, column in self._columns.items():
            larger = np.empty(room, np.int64)
            larger[:waiting] = column[self._here(self._first, self._next)]
            self._columns[name] = larger
        self._offset = self._first

    # Saving

    def note(self) -> dict[str, Any]:
        """What is to be kept besides the stores, which are up to date from then on."""
        begin = max(self._saved, self._first)
        if self._next > begin:
            names = [name for name in _COLUMNS if name != "newer"]
            columns = {name: self._columns[name][self._here(begin, self._next)] for name in names}
            self._runs.add(pa.table({"number": np.arange(begin, self._next), **columns}))
        self._saved = self._next
        self._runs.drop(self._first - 1)
        return {"first": self._first, "following": self._next}

    def restore(self, note: Mapping[str, Any]) -> None:
        """Go on from a note, with the stores restored."""
        self._first, self._next = note["first"], note["following"]
        self._saved, self._offset = self._next, self._first
        for name, column in self._columns.items():
            self._columns[name] = grown(column, len(self), 0)
        for table in self._runs.between(None, self._next):
            places = table.column("number").to_numpy() - self._offset
            for name in _COLUMNS:
                if name != "newer":
                    self._columns[name][places] = table.column(name).to_numpy()
        self._restore_newer()

    def _restore_newer(self) -> None:
        """A row is stale since the next accepted one of its key says."""
        newer, accepted = np.full(len(self), NONE, np.int64), np.flatnonzero(self._waiting("accepted"))
        order = accepted[stable_order(self._waiting("key")[accepted])]
        keys = self._waiting("key")[order]
        follows = np.flatnonzero(keys[1:] == keys[:-1])
        newer[order[follows]] = self._waiting("before")[order[follows + 1]]
        self._columns["newer"][self._here(self._first, self._next)] = newer
