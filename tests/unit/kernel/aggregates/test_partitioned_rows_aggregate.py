from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.errors import RunError
from millrace.kernel.aggregates.panes.window_geometry import Instants
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.aggregates.partitioned_rows_aggregate import PartitionedRowsAggregate
from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Element, Punctuation
from tests.unit.kernel.check_operator import Script, check_bounds, check_operator, outputs

AGGREGATIONS = [
    FunctionCall("rows", "count"),
    FunctionCall("total", "sum", ("n",)),
    FunctionCall("kinds", "count_distinct", ("n",)),
]


def partitioned(rows: int, slide: int | None, keys: Sequence[str] = ("k",), **options: Any) -> PartitionedRowsAggregate:
    return PartitionedRowsAggregate(Partials(Instants(), keys, AGGREGATIONS), rows, slide, **options)


def sequence(seed: int, *, batches: int = 25) -> Script:
    """Rows under sequence numbers, a little out of order, and the bounds that they allow."""
    random = np.random.default_rng(seed)
    total = int(random.integers(1, 160))
    numbers = np.argsort(np.arange(total) + random.uniform(0, 12, total))
    steps: list[tuple[int, Element]] = []
    bound = -1
    for part in np.array_split(numbers, batches):
        if len(part):
            steps.append((0, _rows(random, part)))
        came = np.concatenate([each.times for _, each in steps if isinstance(each, Batch)])
        reached = int(np.setdiff1d(np.arange(total + 1), came)[0])
        if reached > bound and random.random() < 0.7:
            bound = reached
            steps.append((0, Punctuation(bound)))
    return Script((*steps, (0, Punctuation(END_OF_TIME))))


def _rows(random: np.random.Generator, numbers: np.ndarray) -> Batch:
    count = len(numbers)
    groups = [[None, "a", "b", "c"][each] for each in random.integers(0, 4, count)]
    values = [None if each == 0 else int(each) for each in random.integers(0, 9, count)]
    wanted = [[None, True, True, False][each] for each in random.integers(0, 4, count)]
    columns = [pa.array(groups, pa.string()), pa.array(values, pa.int64()), pa.array(wanted, pa.bool_())]
    return Batch(pa.RecordBatch.from_arrays([*columns, pa.array(numbers)], names=["k", "n", "w", TIME]))


def results(elements: Sequence[Element]) -> list[tuple[Any, ...]]:
    """Group, start, end, time, count, total, distinct of each window."""
    names = ("k", "window_start", "window_end", TIME, "rows", "total", "kinds")
    rows = [row for each in elements if isinstance(each, Batch) for row in each.rows.to_pylist()]
    return sorted([tuple(row.get(name) for name in names) for row in rows], key=repr)


def expected(script: Script, rows: int, slide: int | None, *, where: bool, keyed: bool = True) -> list[tuple[Any, ...]]:
    """The same, row by row."""
    all_rows = [row for _, each in script.steps if isinstance(each, Batch) for row in each.rows.to_pylist()]
    all_rows.sort(key=lambda row: row[TIME])
    bound = max((each.until for _, each in script.steps[:-1] if isinstance(each, Punctuation)), default=-1)
    found = []
    for group in {row["k"] if keyed else None for row in all_rows}:
        members = [row for row in all_rows if not keyed or row["k"] == group]
        for start in _starts(members, rows, slide, where):
            frame = [row for row in members[max(start, 0) : start + rows] if row["w"] or not where]
            values = [row["n"] for row in frame if row["n"] is not None]
            complete = start + rows <= len(members)
            time = members[start + rows - 1][TIME] if complete else max(members[-1][TIME], bound)
            if frame:
                total = sum(values) if values else None
                found.append((group, start, start + rows, time, len(frame), total, len(set(values))))
    return sorted(found, key=repr)


def _starts(members: list[dict[str, Any]], rows: int, slide: int | None, where: bool) -> list[int]:
    if slide is None:
        return [number - rows + 1 for number, row in enumerate(members) if row["w"] or not where]
    return [start for start in range(-rows * slide, len(members)) if start % slide == 0 and start + rows > 0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("rows", "slide"), [(1, None), (5, None), (1, 1), (6, 2), (5, 3), (4, 4), (2, 5), (500, 100)])
@pytest.mark.parametrize("where", [True, False], ids=["where", "all"])
def test_windows_are_those_of_a_plain_reading(seed: int, rows: int, slide: int | None, where: bool) -> None:
    script = sequence(seed)
    found = outputs(partitioned(rows, slide, where="w" if where else None), script)
    check_bounds(found)
    assert results(found) == expected(script, rows, slide, where=where)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "slide"), [(5, None), (5, 3), (2, 5)])
def test_partitioned_rows_keep_the_contract(rows: int, slide: int | None) -> None:
    check_operator(lambda: partitioned(rows, slide, where="w"), scripts=sequence, seeds=4)


def test_without_keys_all_rows_are_one_group() -> None:
    script = sequence(5)
    found = outputs(partitioned(7, 3, ()), script)
    assert results(found) == expected(script, 7, 3, where=False, keyed=False)


def batch(*times: int, k: str = "a") -> Batch:
    return Batch(pa.record_batch({"k": [k] * len(times), "n": [1] * len(times), TIME: times}))


def test_a_window_is_reported_when_its_last_row_is_final() -> None:
    operator = partitioned(2, 2)
    list(operator.on_batch(0, batch(0, 1, 2)))
    assert operator.wanted() == 1
    assert list(operator.on_punctuation(Punctuation(1))) == [Punctuation(1)]
    reported, _ = operator.on_punctuation(Punctuation(3))
    assert results([reported]) == [("a", 0, 2, 1, 2, 2, 1)]
    assert operator.wanted() is None
    left, _ = operator.on_punctuation(Punctuation(END_OF_TIME))
    assert [each[1:3] for each in results([left])] == [(2, 4)]
    assert operator.held == 0


def test_of_a_group_only_the_rows_to_come_back_to_are_held() -> None:
    operator = partitioned(3, None)
    list(operator.on_batch(0, batch(*range(100))))
    list(operator.on_punctuation(Punctuation(100)))
    assert operator.held == 2


def test_more_groups_than_the_limit_are_refused() -> None:
    operator = partitioned(1, None, state_limit=1)
    list(operator.on_batch(0, batch(0)))
    list(operator.on_batch(0, batch(1, k="b")))
    with pytest.raises(RunError, match="more than 1 groups"):
        list(operator.on_punctuation(Punctuation(2)))
