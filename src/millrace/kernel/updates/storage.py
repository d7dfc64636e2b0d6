"""The storage manager of a queue of updates (002 section 4.2): keys, their cells, and the rows that wait.

Rules:
- A row that is accepted makes its key stale, whether it is kept or not.
- An update queue keeps the newest row of a key; those before it are superseded, as are rows that are not accepted.
- An append queue keeps every row that is not shed. If it is to update later, it keeps accepted rows alone.
- What an append queue saves besides cells and rows is a store of its own (`_line`: rows in order), which stays when the
  kind changes: it is empty then, and what was saved of it can go.
- One row alone takes a way of its own, without arrays, to the same effect: with arrays a query that is fed row by row
  would take 50 to 75 % longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millrace.kernel.baselines.linecutting_as_printed import LinecuttingAsPrinted
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import END_OF_TIME, Batch, Microseconds, Times, concat_tables
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.key_table import KeyTable
from millrace.kernel.stores.row_blocks import RowBlocks
from millrace.kernel.stores.sorted_runs import SortedRuns
from millrace.kernel.updates.frequency import Frequency
from millrace.kernel.updates.held_keys import HeldKeys
from millrace.kernel.updates.held_rows import HeldRows
from millrace.kernel.updates.key_cells import NONE, KeyCells
from millrace.kernel.updates.policies.by_access import ByAccess
from millrace.kernel.updates.policies.key_order import InPlace, KeyOrder, UpdateFifo
from millrace.kernel.updates.policies.linecutting import Linecutting
from millrace.kernel.updates.queue_settings import LINECUTTING_AS_PRINTED, Access, QueueSettings
from millrace.kernel.updates.row_counts import ENTERED, LET_GO, SHED, SUPERSEDED, RowCounts
from millrace.kernel.updates.staleness import RowStaleness
from millrace.kernel.updates.update_batch import UpdateBatch, accepted, hashed_shares

ROWS = "rows"
"""The kind that holds every row, in the order of arrival."""
_ORDERS = {
    "inplace": InPlace,
    "update_fifo": UpdateFifo,
    "linecutting": Linecutting,
    LINECUTTING_AS_PRINTED: LinecuttingAsPrinted,
}


def kind_of(settings: QueueSettings, appends: bool) -> str:
    """The kind of queue that settings ask for; the policy `auto` appends at present, or updates."""
    if settings.lossless or (settings.policy == "auto" and appends):
        return ROWS
    if settings.access:
        return "access"
    return "inplace" if settings.policy == "auto" else settings.policy


def key_order(kind: str, cells: KeyCells, settings: QueueSettings, table: KeyTable) -> KeyOrder:
    """The order of keys of an update queue."""
    if kind == "access":
        every = [each.every for each in settings.access]
        return ByAccess(cells, every, lambda keys: access_classes(table, settings.access, keys))
    return _ORDERS[kind](cells)


def access_classes(table: KeyTable, access: tuple[Access, ...], keys: Integers) -> Integers:
    """The access class of each key: 0 for none, then by the first condition that holds."""
    found = np.zeros(len(keys), np.int64)
    rows = table.keys(keys) if table.names else pa.table({"": pa.nulls(len(keys))})
    batch = rows.combine_chunks().to_batches()[0]
    for number, each in reversed(list(enumerate(access, start=1))):
        holds = np.ones(len(keys), np.bool_)
        if each.when is not None:
            holds = each.when.over(batch).fill_null(False).to_numpy(zero_copy_only=False)
        found[holds] = number
    return found


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms rows enter: what a row costs, if known; True if older rows are kept too; which share is kept."""

    cost: float | None
    lossless: bool
    keep: float


class Storage:
    """What a queue holds, in a form that its kind asks for."""

    def __init__(self, key: Sequence[str], inputs: int, truth: int | None, kind: str, settings: QueueSettings) -> None:
        self.counts = RowCounts(inputs)
        self.table = KeyTable(key)
        self._truth = truth
        self._blocks = RowBlocks()
        self._line = SortedRuns("number", concat_tables)
        self._least: Microseconds = END_OF_TIME
        self._gone = 0
        """No row that waits is older than this, as of so many rows ago."""
        self._set_up(kind, settings)

    def _set_up(self, kind: str, settings: QueueSettings) -> None:
        """Hold nothing yet, in a queue of some kind."""
        self.kind = kind
        self.cells = KeyCells()
        self.cells.add("last")
        self.cells.add("port")
        self.staleness = RowStaleness(self.cells)
        self.frequency = Frequency(self.cells)
        self.held = self._holder(kind, settings)

    def _holder(self, kind: str, settings: QueueSettings) -> HeldKeys | HeldRows:
        if kind == ROWS:
            return HeldRows(self.cells, self.staleness, self.frequency, self._line)
        order, keeps = key_order(kind, self.cells, settings, self.table), settings.memory == "naive"
        return HeldKeys(self.cells, self.staleness, self.frequency, order, keeps=keeps)

    def __len__(self) -> int:
        return len(self.held)

    @property
    def nbytes(self) -> int:
        """The memory of all of it."""
        return sum(store.nbytes for store in (self.table, self.cells, self._blocks, self._line))

    @property
    def allocated(self) -> int:
        """How many rows have memory: as the row blocks count them, so that one that is never released shows."""
        return len(self._blocks)

    # Rows

    def enter(self, port: int, batch: Batch, arrived: Times, terms: Terms) -> None:
        """Take rows in, which arrived at these moments."""
        if len(batch) == 1:
            self._enter_one(port, batch, int(arrived[0]), terms)
            return
        times, keys, first = batch.times, self.table.numbers(batch.rows), self.counts.entered
        self.cells.grow(len(self.table))
        self.counts.add(ENTERED, port, len(times))
        places = np.flatnonzero(accepted(self.cells, keys, times, port, self._truth))
        updates = UpdateBatch(keys[places], arrived[places], places, port)
        if isinstance(self.held, HeldRows):
            self._append(self.held, updates, keys, batch, first, terms)
        else:
            self.counts.add(SUPERSEDED, port, len(times) - len(updates))
            if len(updates):
                self._replace(self.held, updates, batch, terms.cost)
        if len(updates):
            self.cells["last"][updates.distinct] = times[updates.rows[updates.last]]
            self.cells["port"][updates.distinct] = port
            self.cells.touch(updates.distinct)

    def _replace(self, held: HeldKeys, updates: UpdateBatch, batch: Batch, cost: float | None) -> None:
        """Put the newest row of each key in place of what waits for it."""
        kept, old, entries = held.replace(updates)
        self.counts.add(SUPERSEDED, updates.port, len(updates) - len(updates.distinct))
        self.counts.add_all(SUPERSEDED, self.cells["port"][old])
        self._blocks.release(entries)
        held.enter(updates, kept, self._keep(batch, updates.rows[kept]), cost)

    def _append(
        self, held: HeldRows, updates: UpdateBatch, keys: Integers, batch: Batch, first: int, terms: Terms
    ) -> None:
        """Put rows behind the others, without those that are shed; `first` is the number of the first of them."""
        kept = np.arange(len(keys)) if terms.lossless else updates.rows
        self.counts.add(SUPERSEDED, updates.port, len(keys) - len(kept))
        if terms.keep < 1:
            stays = hashed_shares(first, len(keys))[kept] < terms.keep
            self.counts.add(SHED, updates.port, len(kept) - int(stays.sum()))
            kept = kept[stays]
        held.enter(updates, keys, batch.times, kept, self._keep(batch, kept))

    def _keep(self, batch: Batch, places: Integers) -> Integers:
        """Hold some rows of a batch; their entries."""
        if not len(places):
            return places
        rows = batch.rows if len(places) == len(batch) else batch.rows.take(pa.array(places))
        self._least = min(self._least, int(batch.times[places].min()))
        return self._blocks.add(rows)

    # One row

    def _enter_one(self, port: int, batch: Batch, arrived: Microseconds, terms: Terms) -> None:
        key, time, number = int(self.table.numbers(batch.rows)[0]), int(batch.times[0]), self.counts.entered
        cells, held = self.cells, self.held
        cells.grow(len(self.table))
        self.counts.add(ENTERED, port, 1)
        last = int(cells["last"][key])
        same = port == self._truth or last == NONE or int(cells["port"][key]) == port
        newer = time > last or (time == last and same)
        if isinstance(held, HeldRows):
            entry = self._append_one(port, batch, time, newer, number, terms)
            held.enter_one(key, arrived if newer else None, time, port, entry)
        elif newer:
            self._replace_one(held, key, arrived, batch, time, terms.cost)
        else:
            self.counts.add(SUPERSEDED, port, 1)
        if newer:
            cells["last"][key], cells["port"][key] = time, port
            cells.touch(key)

    def _replace_one(
        self, held: HeldKeys, key: int, arrived: Microseconds, batch: Batch, time: Microseconds, cost: float | None
    ) -> None:
        entry = held.entry(key)
        if entry != NONE:
            self.counts.add(SUPERSEDED, int(self.cells["port"][key]), 1)
            self._blocks.release(np.array([entry]))
        if held.keeps:
            self._blocks.release(held.forget(np.array([key])))
        self._least = min(self._least, time)
        held.enter_one(key, arrived, int(self._blocks.add(batch.rows)[0]), cost)

    def _append_one(
        self, port: int, batch: Batch, time: Microseconds, newer: bool, number: int, terms: Terms
    ) -> int | None:
        """Hold the row, if it is to be kept; its entry."""
        if not newer and not terms.lossless:
            self.counts.add(SUPERSEDED, port, 1)
            return None
        if terms.keep < 1 and hashed_shares(number, 1)[0] >= terms.keep:
            self.counts.add(SHED, port, 1)
            return None
        self._least = min(self._least, time)
        return int(self._blocks.add(batch.rows)[0])

    # Leaving

    def take(self, count: int, now: Microseconds, cost: float | None) -> pa.RecordBatch | None:
        """The rows that leave, at most `count` of them, in order; None if nothing waits."""
        entries, ports = self.held.take(count, now, cost)
        if not len(entries):
            return None
        rows = self._blocks.take(entries)
        if not self.held.keeps:
            self._blocks.release(entries)
        self.counts.add_all(LET_GO, ports)
        self._gone += len(entries)
        return rows

    def least(self, bound: Microseconds) -> Microseconds:
        """A time that no row that waits is below; looked for anew when half of the rows have left, if it matters."""
        waiting = len(self.held)
        if not waiting:
            self._least, self._gone = END_OF_TIME, 0
        elif 2 * self._gone > waiting and self._least < bound:
            self._least, self._gone = self.held.least(), 0
        return self._least

    # Other kinds

    def become(self, kind: str, settings: QueueSettings) -> None:
        """Be of another kind; what waits stays, as far as that kind holds it."""
        held, self.kind = self.held, kind
        if isinstance(held, HeldKeys) and kind != ROWS:
            held.reorder(lambda: key_order(kind, self.cells, settings, self.table))
        elif isinstance(held, HeldKeys):
            self._blocks.release(held.forget(np.arange(self.cells.count)))
            keys, entries = held.close()
            self.held = rows = HeldRows(self.cells, self.staleness, self.frequency, self._line)
            rows.adopt(keys, entries, self.cells["last"][keys], self.cells["port"][keys])
        elif kind != ROWS:
            kept, entries, others, ports = held.close()
            self._supersede(others, ports)
            self.held = keyed = self._holder(kind, settings)
            assert isinstance(keyed, HeldKeys)
            keyed.adopt(kept, entries)

    def drop_older(self) -> None:
        """Without rows that are older than one that came before them: an append queue is to update later."""
        if isinstance(self.held, HeldRows):
            self._supersede(*self.held.drop_older())

    def _supersede(self, entries: Integers, ports: Integers) -> None:
        """Rows that waited never leave."""
        self.counts.add_all(SUPERSEDED, ports)
        self._blocks.release(entries)
        self._gone += len(entries)

    # Saving

    def changes(self) -> Changes:
        """What changed since the last save."""
        note = {
            "kind": self.kind, "counts": self.counts.note(), "frequency": self.frequency.note(),
            "held": self.held.note(), "least": self._least, "gone": self._gone,
        }  # fmt: skip
        stores = (self.table, self.cells, self._blocks, self._line)
        return combined([store.changes() for store in stores], note)

    def restore(self, changes: Changes, settings: QueueSettings) -> None:
        """Go on from a save, in the kind of queue that saved it."""
        table, cells, blocks, line = separated(changes)
        self._set_up(changes.note["kind"], settings)
        self.table.restore(table)
        self.cells.restore(cells)
        self.staleness.restore()
        self.frequency.restore(changes.note["frequency"])
        self.counts.restore(changes.note["counts"])
        self._line.restore(line)
        self.held.restore(changes.note["held"])
        self._blocks.restore(blocks, self.held.entries())
        # As it was known, not as it is: what is promised by it must be the same when rows come again.
        self._least, self._gone = changes.note["least"], changes.note["gone"]
