"""Sequences one to one: each row with the earliest row of another stream that no other has used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import TIME, Batch, Element, Microseconds, integer_column
from millrace.kernel.joins.sequences.key_time_store import contents_of
from millrace.kernel.joins.sequences.keyed_fifo import KeyedFifo
from millrace.kernel.joins.sequences.sequence_join import KeyNames, SequenceJoin, behind


class Chronicle(SequenceJoin):
    """Give each row of the first input with the earliest unused row of the second of equal keys that is not after it.

    Both are used once (001 Fig. 13). Rows of the first input are served in order of time, and those of equal time in
    order of entry, or else (not `by_entry`) by their columns; so a row is served when the bound of the second input
    is past its time, and no row of the first that comes before it is to come. It takes no row more than `within`
    before it. Rows for which none is left are dropped, or with `outer` emitted with nulls.
    State: the rows that wait, and the unused rows of the second input, which are dropped when they are too old for all
    that may come; at most `state_limit` rows together. Punctuations: the lesser of both bounds.
    """

    label = "chronicle"
    kept = "that have not been used"

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
        self._fifo = KeyedFifo(keys[1], schemas[1].names, within, by_entry=by_entry[1])
        super().__init__(schemas, keys, self._fifo, outer=outer, state_limit=state_limit)
        self.by_entry = by_entry

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        if port == 1:
            self._keep(batch)
        else:
            batch = self._may_follow(batch)
            if len(batch):
                self._waiting.add(batch)
                yield from self._served()
        self._check_limit()

    def _released(self) -> Iterator[Batch]:
        yield from self._served()
        self._store.raise_floor(self._floor())

    def _served(self) -> Iterator[Batch]:
        """The rows whose turn it is."""
        first, second = self._bounds
        released = self._waiting.release(min(second, behind(first) if self.by_entry[0] else first) - 1)
        if released is None:
            return
        rows = released.rows if self.by_entry[0] else self._by_contents(released.rows)
        places, found = self._fifo.take([rows.column(name) for name in self.keys[0]], integer_column(rows, TIME))
        yield from self._paired(rows, places, found)

    def _by_contents(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        contents = contents_of(pa.Table.from_batches([rows]), self.schemas[0].names)
        return rows.take(pa.array(np.lexsort((*reversed(contents), integer_column(rows, TIME)))))

    def _wants(self, least: Microseconds) -> Mapping[int, Microseconds]:
        return {0: least if self.by_entry[0] else behind(least), 1: behind(least)}
