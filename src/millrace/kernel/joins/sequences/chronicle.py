"""Sequences one to one: each row with the earliest row of another stream that no other has used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import ARRIVED, TIME, Batch, Element, Microseconds, column_times
from millrace.kernel.joins.sequences.keyed_fifo import Queues
from millrace.kernel.joins.sequences.sequence import Following, KeyNames, behind
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.key_times import contents_of


class Chronicle(Following):
    """Give each row of the first input with the earliest unused row of the second of equal keys that is not after it.

    Both are used once (001 Fig. 13). Rows of the first input are served in order of time, and those of equal time in
    order of entry, or else (not `by_entry`) by their columns; so a row is served when the bound of the second input
    is past its time, and no row of the first that comes before it is to come. It takes no row more than `within`
    before it. Rows for which none is left are dropped, or with `outer` given with nulls.
    State: the rows that wait, and the unused rows of the second input, which are let go when they are too old for all
    that may come; at most `state_limit` rows together. Punctuations: the lesser of both bounds.
    """

    label = "chronicle"

    def __init__(
        self,
        schemas: Sequence[pa.Schema],
        keys: KeyNames,
        within: int | None = None,
        *,
        outer: bool = False,
        by_entry: tuple[bool, bool] = (True, True),
        state_limit: int | None = None,
    ) -> None:
        super().__init__(schemas, keys, within, outer=outer, state_limit=state_limit)
        self.by_entry = by_entry
        self._queues = Queues(keys[1], schemas[1].names, within, by_entry=by_entry[1])

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        if port == 1:
            self._timed = self._timed or ARRIVED in batch.block.rows.schema.names
            self._queues.add(batch)
        else:
            batch = self._may_follow(batch)
            if len(batch):
                self._waiting.add(batch.rows)
                yield from self._served()
        self._check_limit("that have not been used")

    def _released(self) -> Iterator[Batch]:
        yield from self._served()
        self._queues.raise_floor(self._floor())

    def _served(self) -> Iterator[Batch]:
        """The rows whose turn it is."""
        first, second = self._bounds
        rows = self._waiting.release(min(second, behind(first) if self.by_entry[0] else first))
        if rows is None:
            return
        rows = rows if self.by_entry[0] else self._by_contents(rows)
        places, found = self._queues.take([rows.column(name) for name in self.keys[0]], column_times(rows, TIME))
        yield from self._paired(rows, places, found)

    def _by_contents(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        contents = contents_of(pa.Table.from_batches([rows]), self.schemas[0].names)
        return rows.take(pa.array(np.lexsort((*reversed(contents), column_times(rows, TIME)))))

    def _wants(self, least: Microseconds) -> Mapping[int, Microseconds]:
        return {0: least if self.by_entry[0] else behind(least), 1: behind(least)}

    def _compact(self) -> None:
        # Among the rows that were gathered some may be too old.
        self._queues.settle()

    @property
    def held(self) -> int:
        return len(self._waiting) + len(self._queues)

    @property
    def state_bytes(self) -> int:
        return self._waiting.nbytes + self._queues.nbytes

    def changes(self) -> Changes:
        note = {"bounds": list(self._bounds), "promised": self._promised, "timed": self._timed}
        return combined([self._waiting.changes(), self._queues.changes()], note)

    def restore(self, changes: Changes) -> None:
        waiting, queues = separated(changes)
        self._waiting.restore(waiting)
        self._queues.restore(queues)
        self._bounds, self._promised = list(changes.note["bounds"]), changes.note["promised"]
        self._timed = changes.note["timed"]
