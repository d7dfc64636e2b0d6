"""The as-of join: each row with the most recent row of another stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from millrace.kernel.elements import Batch, Element, Microseconds
from millrace.kernel.joins.sequences.asof_store import AsofStore
from millrace.kernel.joins.sequences.sequence_join import KeyNames, SequenceJoin, behind
from millrace.kernel.metrics import LookupCounts


class AsofJoin(SequenceJoin):
    """Give each row of the first input with the latest row of the second of equal keys that is not after it.

    That is B following the most recent A (001 Fig. 12). A row waits until the bound of the second input is past its
    time, for until then one that is as late may come; with `strict` it takes only rows before its time, and a bound
    at its time will do. It takes none that is more than `within` before it. Of rows at the same time the one that
    entered last counts, or else (not `by_entry`) the greatest by its columns. Rows without such a row are dropped, or
    with `outer` emitted with nulls.
    State: the rows that wait, and of the second input the rows after the least time that may still be asked for, and
    for each key the last one at or before it; at most `state_limit` rows together. Punctuations: the lesser of both
    bounds.
    """

    label = "recent"
    noted = (*SequenceJoin.noted, "asked", "met", "known")
    kept = "that may still be asked for"

    def __init__(
        self,
        schemas: Sequence[pa.Schema],
        keys: KeyNames,
        within: int | None = None,
        *,
        strict: bool = False,
        outer: bool = False,
        by_entry: bool = True,
        state_limit: int | None = None,
    ) -> None:
        self._asof_store = AsofStore(keys[1], schemas[1].names, within, strict=strict, by_entry=by_entry)
        super().__init__(schemas, keys, self._asof_store, outer=outer, state_limit=state_limit)
        self.strict = strict
        self._asked = self._met = self._known = 0
        """Rows that have been answered, those that met a row, and rows that came to be met."""

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        if port == 1:
            self._known += len(batch)
            self._keep(batch)
            self._check_limit()
            return
        batch = self._may_follow(batch)
        known = batch.times < self._known_until
        if known.any():
            yield from self._answered(batch.where(known))
        if not known.all():
            self._waiting.add(batch.where(~known))
            self._check_limit()

    def _released(self) -> Iterator[Batch]:
        released = self._waiting.release(self._known_until - 1)
        if released is not None:
            yield from self._answered(released)
        self._store.raise_floor(self._floor())

    @property
    def _known_until(self) -> Microseconds:
        """Rows before this time can be answered."""
        return behind(self._bounds[1]) if self.strict else self._bounds[1]

    def _answered(self, batch: Batch) -> Iterator[Batch]:
        rows, times = batch.rows, batch.times
        places, found = self._asof_store.find([rows.column(name) for name in self.keys[0]], times)
        self._asked += len(places)
        self._met += int((places >= 0).sum())
        yield from self._paired(rows, places, found)

    def lookup_counts(self) -> LookupCounts:
        return LookupCounts(self._asked, self._met, self._known)

    def _wants(self, least: Microseconds) -> Mapping[int, Microseconds]:
        return {1: least if self.strict else behind(least)}
