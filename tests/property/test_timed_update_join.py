"""Joins of two and three update streams against naive ones, whatever the batches, their order, and saves."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.kernel.columns.expressions import Call, Column
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, TIME, Batch, Element, Punctuation
from millrace.kernel.updates.joins.timed_update_join import TimedUpdateJoin
from millrace.kernel.updates.joins.update_join import UpdateJoin
from tests.unit.kernel.saved_segments import SavedSegments

SCHEMAS = [pa.schema([(f"k{port}", pa.int64()), (f"n{port}", pa.int64())]) for port in range(3)]
RESIDUAL = Call("<", (Column("n0"), Column("n1")))
Row = tuple[int, int, int]
"""A key, a number and a time."""
Result = tuple[int | None, ...]
"""A key, the numbers of all inputs and a time."""


@dataclass(frozen=True)
class Step:
    """Rows of a port, and how far the bound of all rises then; whether the join is saved after it."""

    port: int
    rows: tuple[Row, ...]
    rises: int
    saved: bool


@dataclass(frozen=True)
class Match:
    """What matches: the limit of each input, whether there is a residual condition, and whose rows are kept anyway."""

    within: tuple[int | None, ...]
    residual: bool
    kept: int | None = None

    def of(self, key: int, rows: list[Row | None]) -> Result | None:
        found = self.inner(key, rows)
        if found is not None or self.kept is None or (own := rows[self.kept]) is None:
            return found
        numbers = [own[1] if place == self.kept else None for place in (0, 1)]
        return (key, *numbers, max(row[2] for row in rows if row is not None))

    def inner(self, key: int, rows: list[Row | None]) -> Result | None:
        known = [row for row in rows if row is not None]
        if len(known) < len(self.within):
            return None
        for first, other in permutations(range(len(known)), 2):
            limit = self.within[first]
            if limit is not None and known[other][2] > known[first][2] + limit:
                return None
        if self.residual and not known[0][1] < known[1][1]:
            return None
        return (key, *(row[1] for row in known), max(row[2] for row in known))


_limits = st.one_of(st.none(), st.integers(-3, 20))
_matches = st.integers(2, 3).flatmap(lambda count: st.builds(Match, st.tuples(*[_limits] * count), st.booleans()))
_kept = st.builds(Match, st.tuples(_limits, _limits), st.booleans(), st.sampled_from((0, 1)))
_rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 12)), max_size=6).map(tuple)
_steps = st.lists(st.builds(Step, st.integers(0, 2), _rows, st.integers(0, 9), st.booleans()), max_size=25)


class Kept:
    """A join that can be saved, and goes on from what was saved."""

    def __init__(self, kind: type[UpdateJoin], match: Match) -> None:
        self.kind, self.match = kind, match
        self.join = self.made()
        self.segments = SavedSegments()

    def made(self) -> UpdateJoin:
        count = len(self.match.within)
        keys = tuple((f"k{port}",) for port in range(count))
        return self.kind(
            SCHEMAS[:count], keys, self.match.within, RESIDUAL if self.match.residual else None, self.match.kept
        )

    def batch(self, port: int, rows: list[Row]) -> list[Result]:
        arrays = [pa.array(values, pa.int64()) for values in zip(*rows, strict=True)]
        names = [*SCHEMAS[port].names, TIME]
        return self.results(list(self.join.on_batch(port, Batch(pa.RecordBatch.from_arrays(arrays, names=names)))))

    def bound(self, until: int) -> list[Result]:
        if self.join.by_input:
            return self.results(
                [
                    each
                    for port in range(len(self.match.within))
                    for each in self.join.on_bound(port, Punctuation(until))
                ]
            )
        return self.results(list(self.join.on_punctuation(Punctuation(until))))

    def results(self, elements: list[Element]) -> list[Result]:
        rows = [row for each in elements if isinstance(each, Batch) for row in each.rows.to_pylist()]
        count = len(self.match.within)
        return [(_key(row, self.match.kept), *(row[f"n{port}"] for port in range(count)), row[TIME]) for row in rows]

    def save(self) -> None:
        saved, held = self.segments.after(self.join.changes()), self.join.held
        self.join = self.made()
        self.join.restore(saved)
        assert self.join.held == held


def _key(row: dict[str, int], kept: int | None) -> int:
    return row[f"k{kept or 0}"]


def at_every_time(match: Match, given: dict[int, list[Row]]) -> list[Result]:
    """The match of the latest rows of a key at each time at which one of its rows has come."""
    found = []
    for key, time in {(row[0], row[2]) for rows in given.values() for row in rows}:
        latest: list[Row | None] = []
        for port in range(len(match.within)):
            own = [row for row in given[port] if row[0] == key and row[2] <= time]
            # max gives the first of equal ones, and the one that came last counts.
            latest.append(max(reversed(own), key=lambda row: row[2], default=None))
        if (result := match.of(key, latest)) is not None:
            found.append(result)
    return found


@pytest.mark.slow
@settings(max_examples=5 * settings.default.max_examples)
@given(match=_matches | _kept, steps=_steps)
def test_in_order_of_time_every_match_is_given_once(match: Match, steps: list[Step]) -> None:
    count, kept, bound = len(match.within), Kept(TimedUpdateJoin, match), 0
    given: dict[int, list[Row]] = {port: [] for port in range(count)}
    found: list[Result] = []
    for step in steps:
        port, rows = step.port % count, [(key, number, bound + after) for key, number, after in step.rows]
        if rows:
            given[port] += rows
            assert kept.batch(port, rows) == []
        if step.rises:
            bound += step.rises
            released = kept.bound(bound)
            assert all(row[-1] < bound for row in released)
            found += released
        if step.saved:
            kept.save()
    found += kept.bound(END_OF_TIME)
    assert kept.join.held == 0
    assert sorted(found, key=str) == sorted(at_every_time(match, given), key=str)
    times = [row[-1] for row in found]
    assert times == sorted(times)


@pytest.mark.slow
@settings(max_examples=5 * settings.default.max_examples)
@given(match=_matches | _kept, steps=_steps)
def test_as_rows_come_the_last_result_is_the_match_of_the_last_rows(match: Match, steps: list[Step]) -> None:
    count, kept, bound = len(match.within), Kept(UpdateJoin, match), 0
    given: dict[int, list[Row]] = {port: [] for port in range(count)}
    last: dict[int, Result] = {}
    for step in steps:
        port, rows = step.port % count, [(key, number, bound + after) for key, number, after in step.rows]
        if rows:
            given[port] += rows
            for result in kept.batch(port, rows):
                assert result[-1] >= last.get(result[0], (NO_BOUND,))[-1]
                last[result[0]] = result
        bound += step.rises
        if step.rises:
            assert kept.bound(bound) == []
        if step.saved:
            kept.save()
    for key in range(3):
        own = [[row for row in given[port] if row[0] == key] for port in range(count)]
        expected = match.of(key, [max(reversed(rows), key=lambda row: row[2], default=None) for rows in own])
        assert expected is None or last[key] == expected
