"""The as-of join: each row with the most recent row of another stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from millrace.kernel.elements import ARRIVED, Batch, Element, Microseconds
from millrace.kernel.joins.sequences.asof_store import Latest
from millrace.kernel.joins.sequences.sequence import Following, KeyNames, behind
from millrace.kernel.state import Changes, combined, separated


class Recent(Following):
    """Give each row of the first input with the latest row of the second of equal keys that is not after it.

    That is B following the most recent A (001 Fig. 12). A row waits until the bound of the second input is past its
    time, for until then one that is as late may come; with `strict` it takes only rows before its time, and a bound
    at its time will do. It takes none that is more than `within` before it. Of rows at the same time the one that
    entered last counts, or else (not `by_entry`) the greatest by its columns. Rows without such a row are dropped, or
    with `outer` given with nulls.
    State: the rows that wait, and of the second input the rows after the least time that may still be asked for, and
    for each key the last one at or before it; at most `state_limit` rows together. Punctuations: the lesser of both
    bounds.
    """

    label = "recent"

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
        super().__init__(schemas, keys, within, outer=outer, state_limit=state_limit)
        self.strict = strict
        self._latest = Latest(keys[1], schemas[1].names, within, strict=strict, by_entry=by_entry)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        if port == 1:
            self._timed = self._timed or ARRIVED in batch.block.rows.schema.names
            self._latest.add(batch)
            self._check_limit("that may still be asked for")
            return
        batch = self._may_follow(batch)
        known = batch.times < self._known_until
        if known.any():
            yield from self._answered(batch.where(known))
        if not known.all():
            self._waiting.add(batch.where(~known).rows)
            self._check_limit("that may still be asked for")

    def _released(self) -> Iterator[Batch]:
        released = self._waiting.release(self._known_until)
        if released is not None:
            yield from self._answered(Batch(released))
        self._latest.raise_floor(self._floor())

    @property
    def _known_until(self) -> Microseconds:
        """Rows before this time can be answered."""
        return behind(self._bounds[1]) if self.strict else self._bounds[1]

    def _compact(self) -> None:
        self._latest.compact()

    def _answered(self, batch: Batch) -> Iterator[Batch]:
        rows, times = batch.rows, batch.times
        places, found = self._latest.find([rows.column(name) for name in self.keys[0]], times)
        yield from self._paired(rows, places, found)

    def _wants(self, least: Microseconds) -> Mapping[int, Microseconds]:
        return {1: least if self.strict else behind(least)}

    @property
    def held(self) -> int:
        return len(self._waiting) + len(self._latest)

    @property
    def state_bytes(self) -> int:
        return self._waiting.nbytes + self._latest.nbytes

    def changes(self) -> Changes:
        note = {"bounds": list(self._bounds), "promised": self._promised, "timed": self._timed}
        return combined([self._waiting.changes(), self._latest.changes()], note)

    def restore(self, changes: Changes) -> None:
        waiting, latest = separated(changes)
        self._waiting.restore(waiting)
        self._latest.restore(latest)
        self._bounds, self._promised = list(changes.note["bounds"]), changes.note["promised"]
        self._timed = changes.note["timed"]
