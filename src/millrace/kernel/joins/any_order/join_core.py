"""How rows match in any order: rows of several inputs that match each other (004 Fig. 4, for any number of inputs).

Rules:
- A row that comes is looked up among the rows that the other inputs keep, one input after the other; each match is
  found once, when the last of its rows has come. Inputs need be neither in order nor in step.
- Rows match if their keys are equal, and each one's time is at most the `until` of every other: `ahead` after the
  other's own time, or what its column says. What else is asked is a condition on the joined columns.
- A row is released when the bounds of all other inputs have passed its `until`; one of an outer side that has matched
  nothing is emitted then, with nulls. One that no later row can match is not kept at all.
- Only numbers of rows are carried until a match is certain; then each column is gathered once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import ARRIVED, END_OF_TIME, NO_BOUND, TIME, Batch, Microseconds, Times, integer_column
from millrace.kernel.joins.any_order.match_run import MatchRows, Questions
from millrace.kernel.joins.any_order.match_store import Holder, MatchStore, passed
from millrace.kernel.joins.sides import JoinTime, Side
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.recent_rows import concat_rows

_FEW = 1024
"""Results of fewer rows, from several places, are made together."""

Picks = dict[int, tuple[Holder, Integers]]
"""Combinations of rows: by input where its rows stand, and which rows of them."""


class _Combinations:
    """Combinations of rows of those inputs that have been looked at, and what is asked of the next."""

    def __init__(self, picks: Mapping[int, tuple[Holder, Integers | None]], asked: Questions) -> None:
        self.picks = picks
        self.asked = asked

    def where(self, places: Integers) -> Picks:
        """What some of the combinations are made of."""
        return {port: (holder, places if rows is None else rows[places]) for port, (holder, rows) in self.picks.items()}


class JoinCore:
    """What a join keeps, and how it matches; the plan node `Join` says what the arguments mean."""

    def __init__(
        self,
        schemas: Sequence[pa.Schema],
        sides: Sequence[Side],
        residual: Expression | None = None,
        time: JoinTime = "max",
    ) -> None:
        self.schemas = tuple(schemas)
        self.residual = residual
        self.time = time
        self.bounds: list[Microseconds] = [NO_BOUND] * len(schemas)
        self.compared = 0
        self.stores = [
            MatchStore(side, schema, _reach(port, sides))
            for port, (side, schema) in enumerate(zip(sides, schemas, strict=True))
        ]
        self._outer = any(side.outer for side in sides)
        self._timed = False
        assert not self._outer or len(schemas) == 2, "an outer join has two inputs"
        self._names = [name for schema in schemas for name in schema.names]
        read = set(residual.columns()) if residual is not None else set()
        self._read = [[name for name in schema.names if name in read] for schema in schemas]
        """The columns of each input that the residual condition reads."""

    # Rows

    def arrive(self, port: int, batch: Batch) -> Batch | None:
        """The rows that a batch makes with what is kept, if any; what of it may match later is kept, too."""
        made = list(self.pieces(port, batch))
        return Batch(pa.concat_batches(made)) if made else None

    def pieces(self, port: int, batch: Batch) -> Iterator[pa.RecordBatch]:
        """What `arrive` gives, in pieces; all of them must be taken."""
        self._timed = self._timed or ARRIVED in batch.block.rows.schema.names
        store = self.stores[port]
        rows, unusable = store.read(batch)
        few: list[Picks] = []
        for picks in self._matches(port, rows) if len(rows) else ():
            if self._outer:
                _mark(picks)
            if len(picks[port][1]) < _FEW:
                few.append(picks)
            else:
                yield self._joined([picks])
        if few:
            yield self._joined(few)
        kept = ~passed(rows.untils, self._others(port))
        if store.side.outer:
            if unusable is not None:
                yield self._alone(port, unusable)
            assert rows.matched is not None
            proven = ~kept & ~rows.matched
            if proven.any():
                yield self._alone(port, rows.rows.filter(pa.array(proven)))
        store.add(rows.where(kept))

    def _matches(self, port: int, rows: MatchRows) -> Iterator[Picks]:
        """The matches of rows that have come, in pieces."""
        found = [_Combinations({port: (rows, None)}, Questions(rows, None, rows.times, rows.untils))]
        *others, last = [each for each in range(len(self.stores)) if each != port]
        for other in others:
            found = [each for before in found for each in self._extended(before, other)]
        for before in found:
            for holder, questions, answers in self.stores[last].answers(before.asked):
                self.compared += len(answers)
                picks = self._passing({**before.where(questions), last: (holder, answers)})
                if len(picks[port][1]):
                    yield picks

    def _extended(self, found: _Combinations, other: int) -> Iterator[_Combinations]:
        """Combinations with a row of one more input."""
        asked = found.asked
        for run, questions, answers in self.stores[other].answers(asked):
            self.compared += len(answers)
            picks = {**found.where(questions), other: (run, answers)}
            latest = np.maximum(asked.latest[questions], run.times[answers])
            upper = np.minimum(asked.upper[questions], run.untils[answers])
            yield _Combinations(picks, Questions(asked.source, asked.rows(questions), latest, upper))

    def _passing(self, picks: Picks) -> Picks:
        """The combinations for which the residual condition is true."""
        if self.residual is None:
            return picks
        parts = [
            holder.rows.select(self._read[port]).take(pa.array(places))
            for port, (holder, places) in picks.items()
            if self._read[port]
        ]
        columns = {name: part.column(name) for part in parts for name in part.schema.names}
        count = len(next(iter(picks.values()))[1])
        rows = pa.record_batch(columns or {"": pa.nulls(count)})
        passing = np.flatnonzero(self.residual.over(rows).fill_null(False).to_numpy(zero_copy_only=False))
        return {port: (run, places[passing]) for port, (run, places) in picks.items()}

    # Results

    def _joined(self, found: Sequence[Picks]) -> pa.RecordBatch:
        """Combinations as rows."""
        parts = [_taken([picks[port] for picks in found]) for port in range(len(self.schemas))]
        columns = [part.column(name) for part, schema in zip(parts, self.schemas, strict=True) for name in schema.names]
        times = [integer_column(part, TIME) for part in parts]
        if isinstance(self.time, int):
            return self._rows(columns, times[self.time], parts)
        return self._rows(columns, reduce(np.maximum if self.time == "max" else np.minimum, times), parts)

    def _alone(self, port: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows that match nothing, with nulls for the other input."""
        columns = [
            rows.column(name) if place == port else pa.nulls(rows.num_rows, kind)
            for place, schema in enumerate(self.schemas)
            for name, kind in zip(schema.names, schema.types, strict=True)
        ]
        return self._rows(columns, integer_column(rows, TIME), [rows])

    def _rows(self, columns: list[pa.Array], times: Times, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Columns with the reserved ones behind them; a row has arrived when the last of its parts has."""
        if self._timed:
            arrived = [integer_column(part, ARRIVED) for part in parts if ARRIVED in part.schema.names]
            reserved = [pa.array(times), pa.array(reduce(np.maximum, arrived, np.full(len(times), NO_BOUND)))]
        else:
            reserved = [pa.array(times)]
        return pa.RecordBatch.from_arrays(
            [*columns, *reserved], names=[*self._names, *(TIME, ARRIVED)[: len(reserved)]]
        )

    # Bounds

    def raise_bound(self, port: int, until: Microseconds) -> Batch | None:
        """Release what the bound of an input has passed; the rows of an outer side that now match nothing, if any."""
        self.bounds[port] = max(self.bounds[port], until)
        made = []
        for other, store in enumerate(self.stores):
            bound = self._others(other)
            if other != port and bound > store.bound:
                unmatched = store.release(bound)
                if unmatched is not None:
                    made.append(self._alone(other, unmatched))
        return Batch(pa.concat_batches(made)) if made else None

    def until(self) -> Microseconds:
        """The bound on the time of all that is yet to come."""
        if self.time == "max":
            bound = min(self.bounds)
        else:
            ports = range(len(self.bounds)) if self.time == "min" else (self.time,)
            bound = min([min(self.bounds[port], self.stores[port].least_time()) for port in ports])
        outer = [port for port, store in enumerate(self.stores) if store.side.outer]
        return min([bound, *(self.unmatched_bound(port) for port in outer)])

    def unmatched_bound(self, port: int) -> Microseconds:
        """The bound on the own time of a row of an outer side that will be given alone."""
        return min(self.bounds[port], self.stores[port].least_time(unmatched=True))

    def _others(self, port: int) -> Microseconds:
        """The least bound of the other inputs."""
        return min([bound for other, bound in enumerate(self.bounds) if other != port], default=END_OF_TIME)

    # State

    def __len__(self) -> int:
        """How many rows are kept."""
        return sum([len(store) for store in self.stores])

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return sum(store.nbytes for store in self.stores)

    def changes(self) -> Changes:
        """What changed since the last save."""
        return combined([store.changes() for store in self.stores], {"bounds": self.bounds[:], "timed": self._timed})

    def restore(self, changes: Changes) -> None:
        """Continue from all saved segments and the last note."""
        self.bounds, self._timed = list(changes.note["bounds"]), changes.note["timed"]
        for store, saved in zip(self.stores, separated(changes), strict=True):
            store.restore(saved)


def _taken(picks: Sequence[tuple[Holder, Integers]]) -> pa.RecordBatch:
    """The rows that stand in several places, one after another."""
    holder, places = picks[0]
    if all(other is holder for other, _ in picks):
        places = np.concatenate([each for _, each in picks]) if len(picks) > 1 else places
        return holder.rows.take(pa.array(places))
    return concat_rows([each.rows.take(pa.array(places)) for each, places in picks])


def _mark(picks: Picks) -> None:
    """Note which rows of outer sides have been matched."""
    for holder, rows in picks.values():
        if holder.matched is not None:
            holder.mark(rows)


def _reach(port: int, sides: Sequence[Side]) -> int | None:
    """How long a row of an input may be kept, from the first to the last that it matches; None where a column says."""
    ahead = sides[port].ahead
    behind = [side.ahead for place, side in enumerate(sides) if place != port and side.ahead is not None]
    return None if ahead is None else ahead + max(behind, default=0)
