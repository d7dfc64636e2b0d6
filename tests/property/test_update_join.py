"""The join of update streams against a naive one, whatever the batches and wherever it is saved."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.kernel.columns.expressions import Call, Column
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, TIME, Batch, Element, Punctuation
from millrace.kernel.updates.joins.update_join import UpdateJoin
from tests.unit.kernel.saved_segments import SavedSegments

SCHEMAS = [pa.schema([(f"k{port}", pa.int64()), (f"n{port}", pa.int64())]) for port in (0, 1)]
KEYS = (("k0",), ("k1",))
RESIDUAL = Call("<", (Column("n0"), Column("n1")))

Row = tuple[int, int, int]
"""A key, a number and a time."""
Within = tuple[int | None, int | None]


@dataclass(frozen=True)
class Step:
    """Rows of a port, and how far its bound rises then; whether the join is saved after it."""

    port: int
    rows: tuple[tuple[int, int, int], ...]
    rises: int
    saved: bool


_limits = st.one_of(st.none(), st.integers(-5, 20))
_rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 12)), max_size=6).map(tuple)
_steps = st.lists(st.builds(Step, st.integers(0, 1), _rows, st.integers(0, 9), st.booleans()), max_size=25)


@dataclass
class Naive:
    """One row after another, with everything kept."""

    within: Within
    residual: bool
    latest: tuple[dict[int, Row], dict[int, Row]] = field(default_factory=lambda: ({}, {}))

    def batch(self, port: int, rows: list[Row]) -> list[tuple[int, int, int, int]]:
        """The results of a batch: key, both numbers, time."""
        touched: list[int] = []
        for row in rows:
            before = self.latest[port].get(row[0])
            if before is None or row[2] >= before[2]:
                self.latest[port][row[0]] = row
                touched.append(row[0])
        return sorted(found for key in set(touched) if (found := self.match(key)) is not None)

    def match(self, key: int) -> tuple[int, int, int, int] | None:
        """What the latest rows of a key give."""
        a, b = (side.get(key) for side in self.latest)
        if a is None or b is None:
            return None
        after, before = self.within
        if (after is not None and b[2] > a[2] + after) or (before is not None and a[2] > b[2] + before):
            return None
        return None if self.residual and not a[1] < b[1] else (key, a[1], b[1], max(a[2], b[2]))


class Kept:
    """A join that can be saved, and goes on from what was saved."""

    def __init__(self, within: Within, residual: bool) -> None:
        self.within, self.residual = within, RESIDUAL if residual else None
        self.join = self.made()
        self.segments = SavedSegments()

    def made(self) -> UpdateJoin:
        return UpdateJoin(SCHEMAS, KEYS, self.within, self.residual)

    def batch(self, port: int, rows: list[Row]) -> list[tuple[int, int, int, int]]:
        arrays = [pa.array(values, pa.int64()) for values in zip(*rows, strict=True)]
        names = [*SCHEMAS[port].names, TIME]
        return results(list(self.join.on_batch(port, Batch(pa.RecordBatch.from_arrays(arrays, names=names)))))

    def save(self) -> None:
        saved, held = self.segments.after(self.join.changes()), self.join.held
        self.join = self.made()
        self.join.restore(saved)
        assert self.join.held == held


def results(elements: list[Element]) -> list[tuple[int, int, int, int]]:
    rows = [row for each in elements if isinstance(each, Batch) for row in each.rows.to_pylist()]
    return sorted((row["k0"], row["n0"], row["n1"], row[TIME]) for row in rows)


@pytest.mark.slow
@settings(max_examples=8 * settings.default.max_examples)
@given(within=st.tuples(_limits, _limits), residual=st.booleans(), steps=_steps)
def test_the_join_gives_what_a_naive_one_gives(within: Within, residual: bool, steps: list[Step]) -> None:
    kept, naive = Kept(within, residual), Naive(within, residual)
    bounds, promised = [0, 0], NO_BOUND
    for step in steps:
        rows = [(key, number, bounds[step.port] + after) for key, number, after in step.rows]
        if rows:
            found = kept.batch(step.port, rows)
            assert found == naive.batch(step.port, rows)
            assert all(time >= promised for *_, time in found)
        if step.rises:
            bounds[step.port] += step.rises
            for each in kept.join.on_bound(step.port, Punctuation(bounds[step.port])):
                assert isinstance(each, Punctuation) and each.until > promised
                promised = each.until
        if step.saved:
            kept.save()
    for port in (0, 1):
        list(kept.join.on_bound(port, Punctuation(END_OF_TIME)))
    assert kept.join.held == 0


@pytest.mark.slow
@settings(max_examples=5 * settings.default.max_examples)
@given(within=st.tuples(_limits, _limits), residual=st.booleans(), steps=_steps, cuts=st.lists(st.integers(1, 6)))
def test_the_last_result_is_the_match_of_the_last_rows(
    within: Within, residual: bool, steps: list[Step], cuts: list[int]
) -> None:
    join, naive = Kept(within, residual), Naive(within, residual)
    last: dict[int, tuple[int, int, int, int]] = {}
    cutting = iter(cuts)
    for step in steps:
        rows = list(step.rows)
        naive.batch(step.port, rows)
        while rows:
            size = next(cutting, 1)
            for found in join.batch(step.port, rows[:size]):
                assert found[3] >= last.get(found[0], found)[3]
                last[found[0]] = found
            rows = rows[size:]
    for key in range(4):
        match = naive.match(key)
        assert match is None or last[key] == match
