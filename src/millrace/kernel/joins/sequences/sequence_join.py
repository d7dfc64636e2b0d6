"""What sequence joins have in common: rows wait for the bound of another input, and leave with a row of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millrace.errors import RunError
from millrace.kernel.columns.comparison import with_whole_keys
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import (
    ARRIVED,
    END_OF_TIME,
    NO_BOUND,
    TIME,
    Batch,
    Element,
    GroupPunctuation,
    JointPunctuation,
    Microseconds,
    Punctuation,
)
from millrace.kernel.joins.sequences.key_time_store import KeyTimeStore
from millrace.kernel.operator import StoringOperator
from millrace.kernel.stores.hold_buffer import HoldBuffer

KeyNames = tuple[Sequence[str], Sequence[str]]


class SequenceJoin(StoringOperator):
    """Give each row of the first input with a row of the second that is not after it, once it is known which.

    State: the rows of the first input that wait, and the store of the second input; at most `state_limit` rows
    together. Punctuations: the lesser of both bounds, for a result has the time of its row of the first input.
    Promises for single groups, and for pairs of times, end here.
    """

    noted: tuple[str, ...] = ("bounds", "promised", "timed")
    kept = ""
    """What the rows of the store are, for the error at the limit."""

    holds = True
    senses_bounds = True
    uses_every_bound = True
    by_input = True

    def __init__(
        self,
        schemas: Sequence[pa.Schema],
        keys: KeyNames,
        store: KeyTimeStore[Any],
        *,
        outer: bool,
        state_limit: int | None,
    ) -> None:
        self.schemas = tuple(schemas)
        self.state_limit = state_limit
        self.keys = keys
        self.outer = outer
        self.compared = 0
        self._bounds = [NO_BOUND, NO_BOUND]
        self._promised: Microseconds = NO_BOUND
        self._waiting = HoldBuffer()
        self._store = store
        self.stores = (self._waiting, store)
        self._timed = False
        """True if rows of the second input say when they arrived."""

    def on_bound(self, port: int, punctuation: Punctuation) -> Iterator[Element]:
        self._bounds = [punctuation.until if place == port else bound for place, bound in enumerate(self._bounds)]
        yield from self._released()
        until = min(self._bounds)
        if until > self._promised:
            self._promised = until
            yield Punctuation(until, punctuation.ets)

    def on_groups(self, punctuation: GroupPunctuation) -> Iterator[Element]:
        return iter(())

    def on_joint(self, punctuation: JointPunctuation) -> Iterator[Element]:
        return iter(())

    def wants(self) -> Sequence[Mapping[int, Microseconds]]:
        least = self._waiting.least
        return () if least is None else (self._wants(least),)

    def _released(self) -> Iterator[Batch]:
        """What bounds release."""
        raise AssertionError("a sequence says what a bound releases")

    def _wants(self, least: Microseconds) -> Mapping[int, Microseconds]:
        """The bounds that release a row at a time."""
        raise AssertionError("a sequence says what its rows wait for")

    def _keep(self, batch: Batch) -> None:
        """Keep rows of the second input."""
        self._timed = self._timed or ARRIVED in batch.block.rows.schema.names
        self._store.add(batch)

    def _check_limit(self) -> None:
        """Refuse to hold more rows than allowed."""
        if self.state_limit is None or self.held <= self.state_limit:
            return
        self._store.compact()
        if self.held > self.state_limit:
            raise RunError(
                f"a sequence holds more than {self.state_limit} rows {self.kept}",
                hint="Raise state_limit in the query's options, or say within which time rows follow each other.",
            )

    def _may_follow(self, batch: Batch) -> Batch:
        """The rows of the first input that may be given: all, or those without a null key."""
        return batch if self.outer else with_whole_keys(batch, self.keys[0])

    def _floor(self) -> Microseconds:
        """No row that is still to be answered is before this time."""
        least = self._waiting.least
        return self._bounds[0] if least is None else min(self._bounds[0], least)

    def _paired(self, rows: pa.RecordBatch, places: Integers, found: pa.Table | None) -> Iterator[Batch]:
        """Rows of the first input, each with the row at its place of what was found, -1 being none."""
        missing = places < 0
        self.compared += len(places) - int(missing.sum())
        if missing.any() and not self.outer:
            rows, places = rows.filter(pa.array(~missing)), places[~missing]
            missing = missing[:0]
        if not len(places):
            return
        if found is None:
            found = self._second.empty_table()
        mask = missing if missing.any() else None
        yield self._joined(rows, found.take(pa.array(places, mask=mask)))

    @property
    def _second(self) -> pa.Schema:
        """How rows of the second input are kept."""
        reserved = [pa.field(name, pa.int64()) for name in ((TIME, ARRIVED) if self._timed else (TIME,))]
        return pa.schema([*self.schemas[1], *reserved])

    def _joined(self, rows: pa.RecordBatch, others: pa.Table) -> Batch:
        """Rows side by side, at the times of the first."""
        names = [*self.schemas[0].names, *self.schemas[1].names, TIME]
        columns = [*map(rows.column, self.schemas[0].names), *map(others.column, self.schemas[1].names)]
        columns.append(rows.column(TIME))
        arrived = [each.column(ARRIVED) for each in (rows, others) if ARRIVED in each.schema.names]
        if arrived:
            names.append(ARRIVED)
            columns.append(pc.fill_null(pc.max_element_wise(*arrived), NO_BOUND))
        return Batch(pa.table(columns, names=names).combine_chunks().to_batches()[0])


def behind(time: Microseconds) -> Microseconds:
    """The bound that is past a time."""
    return min(time, END_OF_TIME - 1) + 1
