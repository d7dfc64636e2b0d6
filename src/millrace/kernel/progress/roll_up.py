"""Promises of single groups rolled up to a bound that every operator can use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Batch, Element, GroupPunctuation, Punctuation, Times
from millrace.kernel.operator import StoringOperator
from millrace.kernel.state import Changes
from millrace.kernel.stores.sorted_runs import SortedRuns

_UNTIL = "__until"
_Key = tuple[Any, ...]


class RollUp(StoringOperator):
    """Turn the promises of groups into one of the stream (the describe operator, 004 A.1.1): the least of the groups.

    A group that has promised nothing yet holds the bound back: the edge of the stream names it with no bound.
    A row below a bound that was passed on is dropped and counted; only a row of a new group can be.
    State: the bound of each group. Punctuations: those of groups end here; what is passed on is the least bound of the
    groups seen, or the stream's own where that is greater.
    """

    label = "roll up"
    passes_rows = True
    senses_bounds = True
    uses_every_bound = True
    noted = ("linear", "passed", "turned_away")

    def __init__(self) -> None:
        self._numbers: dict[_Key, int] = {}
        self._keys: list[_Key] = []
        self._types: pa.Schema | None = None
        self._until: Times = np.empty(0, np.int64)
        self._linear = NO_BOUND
        self._passed = NO_BOUND
        self._turned_away = 0
        self._saved = SortedRuns(_UNTIL, self._latest)
        self._changed: set[int] = set()
        self.stores = (self._saved,)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        kept = batch.where(batch.times >= self._passed)
        self._turned_away += len(batch) - len(kept)
        if len(kept):
            yield kept

    def on_groups(self, punctuation: GroupPunctuation) -> Iterator[Element]:
        numbers = np.array(self._numbered(pa.Table.from_batches([punctuation.keys])), np.int64)
        before = self._until[numbers]
        np.maximum.at(self._until, numbers, punctuation.until)
        self._changed.update(numbers[self._until[numbers] > before].tolist())
        yield from self._promised(ets=False)

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        self._linear = punctuation.until
        yield from self._promised(punctuation.ets)

    def _promised(self, ets: bool) -> Iterator[Element]:
        least = int(self._until.min()) if len(self._until) else NO_BOUND
        until = max(least, self._linear)
        if until > self._passed:
            self._passed = until
            yield Punctuation(until, ets)

    def _numbered(self, keys: pa.Table) -> list[int]:
        """The number of each group; a new one gets the next number, and has promised nothing."""
        known, self._types = len(self._numbers), keys.schema
        numbers = [self._numbers.setdefault(key, len(self._numbers)) for key in _tuples(keys)]
        fresh = len(self._numbers) - known
        if fresh:
            self._keys += islice(self._numbers, known, None)
            self._until = np.concatenate([self._until, np.full(fresh, NO_BOUND)])
            self._changed.update(range(known, known + fresh))
        return numbers

    @property
    def turned_away(self) -> int:
        return self._turned_away

    @property
    def held(self) -> int:
        return 0

    @property
    def state_bytes(self) -> int:
        return super().state_bytes + int(self._until.nbytes)

    def changes(self) -> Changes:
        if self._changed:
            self._saved.add(self._table(sorted(self._changed)))
            self._changed.clear()
        return super().changes()

    def _table(self, numbers: list[int]) -> pa.Table:
        """Some groups with their bounds."""
        assert self._types is not None
        keys = [self._keys[number] for number in numbers]
        columns = [
            pa.array([key[place] for key in keys], self._types.field(name).type)
            for place, name in enumerate(self._types.names)
        ]
        return pa.Table.from_arrays([*columns, pa.array(self._until[numbers])], names=[*self._types.names, _UNTIL])

    def _latest(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Each group once, with its greatest bound: bounds never go back."""
        columns = [name for name in tables[0].schema.names if name != _UNTIL]
        grouped = pa.concat_tables(tables).group_by(columns).aggregate([(_UNTIL, "max")])
        return grouped.rename_columns([*columns, _UNTIL]).combine_chunks()

    def restore(self, changes: Changes) -> None:
        super().restore(changes)
        tables = self._saved.between(None, END_OF_TIME)
        if tables:
            latest = self._latest(tables)
            keys = latest.drop_columns([_UNTIL])
            self._types, self._keys = keys.schema, _tuples(keys)
            self._numbers = {key: number for number, key in enumerate(self._keys)}
            self._until = latest.column(_UNTIL).to_numpy().copy()


def _tuples(keys: pa.Table) -> list[_Key]:
    return list(zip(*(column.to_pylist() for column in keys.columns), strict=True))
