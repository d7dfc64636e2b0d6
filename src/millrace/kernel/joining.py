"""Joining in any order: rows of several inputs that match each other (004 Fig. 4, for any number of inputs).

Rules:
- A row that comes is looked up among the rows that the other inputs keep, one input after the other; each match is
  found once, when the last of its rows has come. Inputs need be neither in order nor in step.
- Rows match if their keys are equal, and each one's time is at most the `until` of every other: `ahead` after the
  other's own time, or what its column says. What else is asked is a condition on the joined columns.
- A row is let go when the bounds of all other inputs have passed its `until`; one of an outer side that has matched
  nothing is given then, with nulls. One that no later row can match is not kept at all.
- Only numbers of rows are carried until a match is certain; then each column is gathered once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import ARRIVED, END_OF_TIME, NO_BOUND, RESERVED, TIME, Batch, Mask, Microseconds, Times
from millrace.kernel.expressions import Expression
from millrace.kernel.match_keys import Integers
from millrace.kernel.match_run import Questions, Run
from millrace.kernel.matches import Holder, Matches, passed
from millrace.kernel.sides import JoinTime, Side
from millrace.kernel.state import Changes
from millrace.kernel.stores import joined, parted


@dataclass(frozen=True, eq=False)
class _Found:
    """Combinations of rows, one of each input that has been looked at: by input its run, and places in it."""

    picks: Mapping[int, tuple[Holder, Integers]]
    asked: Questions

    def where(self, places: Integers) -> dict[int, tuple[Holder, Integers]]:
        """What some of the combinations are made of."""
        return {port: (run, rows[places]) for port, (run, rows) in self.picks.items()}


class Joining:
    """What a join keeps, and how it matches; see `plan.nodes.Join` for what the arguments mean."""

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
            Matches(side, schema, _reach(port, sides))
            for port, (side, schema) in enumerate(zip(sides, schemas, strict=True))
        ]
        self._outer = any(side.outer for side in sides)
        self._timed = False
        assert not self._outer or len(schemas) == 2, "an outer join has two inputs"
        places = {name: (port, name) for port, schema in enumerate(schemas) for name in schema.names}
        self._read = {name: places[name] for name in (dict.fromkeys(residual.columns()) if residual else ())}

    # Rows

    def arrive(self, port: int, batch: Batch) -> Batch | None:
        """The rows that a batch makes with what is kept, if any; what of it may match later is kept, too."""
        self._timed = self._timed or ARRIVED in batch.block.rows.schema.names
        store = self.stores[port]
        run, unusable = store.read(batch)
        matched = np.zeros(len(run), np.bool_)
        made = []
        for picks in self._matches(port, run) if len(run) else ():
            self._mark(port, picks, matched)
            made.append(self._joined(picks))
        kept = ~passed(run.untils, self._others(port))
        if store.side.outer:
            if unusable is not None:
                made.append(self._alone(port, unusable))
            proven = ~kept & ~matched
            if proven.any():
                made.append(self._alone(port, run.rows.filter(pa.array(proven))))
        store.add(run.where(kept), matched[kept])
        return Batch(pa.concat_batches(made)) if made else None

    def _matches(self, port: int, run: Run) -> Iterator[dict[int, tuple[Holder, Integers]]]:
        """The matches of a run that has come, in pieces."""
        rows = run.in_order
        found = [_Found({port: (run, rows)}, Questions(run, rows, run.times, run.untils))]
        others = [each for each in range(len(self.stores)) if each != port]
        for other in others[:-1]:
            found = [each for before in found for each in self._extended(before, other)]
        for before in found:
            for answering, questions, answers in self.stores[others[-1]].answers(before.asked):
                self.compared += len(answers)
                picks = {**before.where(questions), others[-1]: (answering, answers)}
                picks = self._passing(picks)
                if len(picks[port][1]):
                    yield picks

    def _extended(self, found: _Found, other: int) -> Iterator[_Found]:
        """Combinations with a row of one more input."""
        asked = found.asked
        for run, questions, answers in self.stores[other].answers(asked):
            self.compared += len(answers)
            picks = {**found.where(questions), other: (run, answers)}
            latest = np.maximum(asked.latest[questions], run.times[answers])
            upper = np.minimum(asked.upper[questions], run.untils[answers])
            yield _Found(picks, Questions(asked.run, asked.rows[questions], latest, upper))

    def _passing(self, picks: dict[int, tuple[Holder, Integers]]) -> dict[int, tuple[Holder, Integers]]:
        """The combinations for which the residual condition is true."""
        if self.residual is None:
            return picks
        columns = {name: _taken(*picks[port], name) for name, (port, name) in self._read.items()}
        count = len(next(iter(picks.values()))[1])
        rows = pa.RecordBatch.from_pydict(columns) if columns else pa.record_batch({"": pa.nulls(count)})
        passing = np.flatnonzero(self.residual.over(rows).fill_null(False).to_numpy(zero_copy_only=False))
        return {port: (run, places[passing]) for port, (run, places) in picks.items()}

    def _mark(self, port: int, picks: Mapping[int, tuple[Holder, Integers]], matched: Mask) -> None:
        """Note which rows of outer sides have been matched."""
        if self._outer:
            matched[picks[port][1]] = True
            for other, (run, rows) in picks.items():
                if not isinstance(run, Run) and self.stores[other].side.outer:
                    run.mark(rows)

    # Results

    def _joined(self, picks: Mapping[int, tuple[Holder, Integers]]) -> pa.RecordBatch:
        """Combinations as rows."""
        columns = [_taken(*picks[port], name) for port, schema in enumerate(self.schemas) for name in schema.names]
        return self._rows(columns, self._times(picks), [_arrivals(*pick) for pick in picks.values()])

    def _times(self, picks: Mapping[int, tuple[Holder, Integers]]) -> Times:
        """The time of each combination."""
        if isinstance(self.time, int):
            run, rows = picks[self.time]
            return run.times[rows]
        parts = [run.times[rows] for run, rows in picks.values()]
        return (np.maximum if self.time == "max" else np.minimum).reduce(parts)

    def _alone(self, port: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows that match nothing, with nulls for the other input."""
        columns = [
            rows.column(name) if place == port else pa.nulls(rows.num_rows, kind)
            for place, schema in enumerate(self.schemas)
            for name, kind in zip(schema.names, schema.types, strict=True)
        ]
        arrived = [rows.column(ARRIVED).to_numpy()] if ARRIVED in rows.schema.names else []
        return self._rows(columns, rows.column(TIME).to_numpy(), arrived)

    def _rows(self, columns: list[pa.Array], times: Times, arrived: Sequence[Times | None]) -> pa.RecordBatch:
        """Columns with the reserved ones behind them."""
        names = [name for schema in self.schemas for name in schema.names]
        reserved = [pa.array(times)]
        if self._timed:
            known = [each for each in arrived if each is not None]
            reserved.append(pa.array(np.maximum.reduce(known) if known else np.full(len(times), NO_BOUND)))
        return pa.RecordBatch.from_arrays([*columns, *reserved], names=[*names, *RESERVED[: len(reserved)]])

    # Bounds

    def raise_bound(self, port: int, until: Microseconds) -> Batch | None:
        """Let go of what the bound of an input has passed; the rows of an outer side that now match nothing, if any."""
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

    @property
    def held(self) -> int:
        """How many rows are kept."""
        return sum([len(store) for store in self.stores])

    @property
    def state_bytes(self) -> int:
        """How much memory they take."""
        return sum(store.nbytes for store in self.stores)

    def changes(self) -> Changes:
        """What changed since the last save."""
        return joined([store.changes() for store in self.stores], {"bounds": self.bounds[:], "timed": self._timed})

    def restore(self, changes: Changes) -> None:
        """Go on from all saved segments and the last note."""
        self.bounds, self._timed = list(changes.note["bounds"]), changes.note["timed"]
        for store, saved in zip(self.stores, parted(changes), strict=True):
            store.restore(saved)


def _reach(port: int, sides: Sequence[Side]) -> int | None:
    """How long a row of an input may be kept, from the first to the last that it matches; None where a column says."""
    ahead = sides[port].ahead
    behind = [side.ahead for place, side in enumerate(sides) if place != port and side.ahead is not None]
    return None if ahead is None else ahead + max(behind, default=0)


def _taken(run: Holder, places: Integers, name: str) -> pa.Array:
    return run.rows.column(name).take(pa.array(places))


def _arrivals(run: Holder, places: Integers) -> Times | None:
    """When rows arrived; None where that is not known."""
    if ARRIVED not in run.rows.schema.names:
        return None
    arrived: Times = run.rows.column(ARRIVED).to_numpy()
    return arrived[places]
