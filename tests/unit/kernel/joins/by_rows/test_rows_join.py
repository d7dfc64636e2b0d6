from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.errors import RunError
from millrace.kernel.columns import hashing
from millrace.kernel.columns.expressions import Call, Column
from millrace.kernel.elements import ARRIVED, END_OF_TIME, NO_BOUND, TIME, Batch, Element, Punctuation
from millrace.kernel.joins.by_rows import row_windows
from millrace.kernel.joins.by_rows.rows_join import RowsJoin
from millrace.kernel.joins.sides import RowsSide
from tests.unit.kernel.check_by_input import interleaved, random_scripts, schemas
from tests.unit.kernel.check_operator import Script, check_operator, outputs, rows_of

Row = dict[str, Any]

SIDES = {
    "both by rows": (RowsSide(("k0",), rows=3), RowsSide(("k1",), rows=5)),
    "the last row": (RowsSide(("k0",), rows=1), RowsSide(("k1",), rows=1)),
    "one without a window": (RowsSide(("k0",), rows=4), RowsSide(("k1",))),
    "the other without": (RowsSide(("k0",)), RowsSide(("k1",), rows=4)),
    "rows and range": (RowsSide(("k0",), rows=4), RowsSide(("k1",), range=15)),
    "both by range": (RowsSide(("k0",), range=0), RowsSide(("k1",), range=25)),
    "by the key": (RowsSide(("k0",), rows=2, partition=("k0",)), RowsSide(("k1",), rows=3, partition=("k1",))),
    "by another column": (RowsSide(("k0",), rows=2, partition=("n0",)), RowsSide(("k1",), rows=3)),
    "by more columns": (RowsSide(("k0",), rows=1, partition=("k0", "n0")), RowsSide(("k1",), rows=2)),
    "two keys": (RowsSide(("k0", "n0"), rows=9, partition=("n0",)), RowsSide(("k1", "n1"), rows=7)),
    "every pair": (RowsSide(rows=2), RowsSide(rows=3, partition=("k1",))),
}


def merged(script: Script) -> Script:
    """The same rows with the least bound of both inputs, when it has advanced."""
    bounds, least, steps = [NO_BOUND, NO_BOUND], NO_BOUND, list[tuple[int, Element]]()
    for port, element in script.steps:
        if isinstance(element, Batch):
            steps.append((port, element.ending(None)))
        until = element.until if isinstance(element, Batch | Punctuation) else None
        bounds[port] = max(bounds[port], NO_BOUND if until is None else until)
        if min(bounds) > least:
            least = min(bounds)
            steps.append((0, Punctuation(least)))
    return Script(tuple(steps))


def make(sides: str, by_entry: bool = True) -> RowsJoin:
    return RowsJoin(schemas(), SIDES[sides], by_entry=(by_entry, by_entry))


def naive(script: Script, sides: Sequence[RowsSide], by_entry: bool) -> list[str]:
    """Every row held against every other."""
    first, second = (_in_order(_given(script, port), by_entry) for port in (0, 1))
    found = [
        _joined(one, other)
        for one in first
        for other in second
        if _equal(one, other, sides)
        and (_kept(one, first, sides[0], other[TIME]) or _kept(other, second, sides[1], one[TIME]))
    ]
    return sorted(map(repr, found))


def _given(script: Script, port: int) -> list[Row]:
    batches = [each for at, each in script.steps if at == port and isinstance(each, Batch)]
    return [row for batch in batches for row in batch.rows.to_pylist()]


def _in_order(rows: list[Row], by_entry: bool) -> list[Row]:
    if not by_entry:
        rows = sorted(rows, key=lambda row: [(value is not None, value) for value in row.values()])
    return sorted(rows, key=lambda row: row[TIME])


def _equal(one: Row, other: Row, sides: Sequence[RowsSide]) -> bool:
    pairs = [(one[mine], other[theirs]) for mine, theirs in zip(sides[0].keys, sides[1].keys, strict=True)]
    return all(mine is not None and mine == theirs for mine, theirs in pairs)


def _kept(row: Row, rows: list[Row], side: RowsSide, now: int) -> bool:
    if row[TIME] > now or (side.range is not None and row[TIME] < now - side.range):
        return False
    if side.rows is None:
        return side.range is not None
    own = [each for each in rows if each[TIME] <= now and all(each[name] == row[name] for name in side.partition)]
    return any(each is row for each in own[-side.rows :])


def _joined(one: Row, other: Row) -> Row:
    found = {name: value for row in (one, other) for name, value in row.items() if name not in (TIME, ARRIVED)}
    found[TIME] = max(one[TIME], other[TIME])
    return {**found, ARRIVED: max(one[ARRIVED], other[ARRIVED])} if ARRIVED in one else found


@pytest.mark.slow
@pytest.mark.parametrize(("sides", "by_entry"), [*((each, True) for each in SIDES), ("both by rows", False)])
def test_a_join_by_rows_keeps_the_contract(sides: str, by_entry: bool) -> None:
    check_operator(lambda: make(sides, by_entry), seeds=2, scripts=lambda seed: merged(random_scripts(seed + 2)))


@pytest.mark.slow
@pytest.mark.parametrize("by_entry", [True, False])
@pytest.mark.parametrize("sides", SIDES)
def test_a_pair_is_given_once_if_one_is_in_its_window_at_the_time_of_the_other(sides: str, by_entry: bool) -> None:
    for seed in range(3):
        script = merged(random_scripts(seed, keys=2, batches=10))
        assert rows_of(outputs(make(sides, by_entry), script)) == naive(script, SIDES[sides], by_entry)


@pytest.mark.slow
@pytest.mark.parametrize("sides", SIDES)
def test_the_answer_does_not_depend_on_which_input_came_first(sides: str) -> None:
    for seed in range(2):
        script = random_scripts(seed)
        other = outputs(make(sides), merged(interleaved(script, seed)))
        assert rows_of(other) == rows_of(outputs(make(sides), merged(script)))


@pytest.mark.parametrize("sides", SIDES)
def test_keys_and_partitions_that_share_a_hash_are_told_apart(sides: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        hashing, "hashes", lambda columns, count=None: np.zeros(len(columns[0]) if columns else count, np.uint64)
    )
    for seed in range(2):
        script = merged(random_scripts(seed, keys=2, batches=10))
        assert rows_of(outputs(make(sides), script)) == naive(script, SIDES[sides], True)


def test_many_pairs_come_out_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    script = merged(random_scripts(1))
    expected = outputs(make("every pair"), script)
    monkeypatch.setattr(row_windows, "_PAIRS", 7)
    found = outputs(make("every pair"), script)
    assert rows_of(found) == rows_of(expected)
    assert max(len(each) for each in found if isinstance(each, Batch)) <= 7


def rows(port: int, keys: Sequence[str], times: Sequence[int]) -> Batch:
    columns = [pa.array(keys, pa.string()), pa.array(range(len(keys)), pa.int64()), pa.nulls(len(keys))]
    columns[2] = columns[2].cast(schemas()[port].field(2).type)
    return Batch(
        pa.RecordBatch.from_arrays([*columns, pa.array(times, pa.int64())], names=[*schemas()[port].names, TIME])
    )


def test_a_residual_condition_is_asked_of_the_joined_row() -> None:
    joins = RowsJoin(schemas(), SIDES["both by rows"], Call("<", (Column("n0"), Column("n1"))))
    script = merged(random_scripts(3))
    found = [row for each in outputs(joins, script) if isinstance(each, Batch) for row in each.rows.to_pylist()]
    whole = [each for each in outputs(make("both by rows"), script) if isinstance(each, Batch)]
    numbers = [(row["n0"], row["n1"]) for each in whole for row in each.rows.to_pylist()]
    assert len(found) == sum(None not in pair and pair[0] < pair[1] for pair in numbers) > 0


def test_rows_wait_for_the_bound_and_say_so() -> None:
    join = make("both by rows")
    assert join.wanted() is None
    assert list(join.on_batch(0, rows(0, ["a", "a"], [7, 5]))) == []
    assert list(join.on_batch(1, rows(1, ["a"], [6]))) == []
    assert (join.wanted(), join.held) == (6, 3)
    assert list(join.on_punctuation(Punctuation(5))) == [Punctuation(5)]
    found, bound = join.on_punctuation(Punctuation(7))
    assert isinstance(found, Batch) and found.times.tolist() == [6] and bound == Punctuation(7)
    assert join.wanted() == 8


def test_rows_with_a_null_key_count_in_the_window_all_the_same() -> None:
    join = RowsJoin(schemas(), (RowsSide(("k0",), rows=2), RowsSide(("k1",))))
    null = Batch(rows(0, ["a", "b"], [1, 2]).rows.set_column(0, "k0", pa.array(["a", None])))
    for port, batch in ((0, null), (1, rows(1, ["a"], [3])), (0, rows(0, ["c"], [4])), (1, rows(1, ["a"], [5]))):
        list(join.on_batch(port, batch))
    (found, _) = join.on_punctuation(Punctuation(END_OF_TIME))
    assert isinstance(found, Batch) and found.times.tolist() == [3]


def test_rows_with_a_null_key_are_compared_with_none() -> None:
    join = make("both by rows")
    for port in (0, 1):
        nulls = rows(port, ["a", "a"], [1, 2]).rows.set_column(0, f"k{port}", pa.nulls(2, pa.string()))
        list(join.on_batch(port, Batch(nulls)))
    assert list(join.on_punctuation(Punctuation(3))) == [Punctuation(3)]
    assert join.compared == 0


@pytest.mark.parametrize("sides", ["both by rows", "rows and range", "by the key"])
def test_a_window_is_small_again_after_many_rows_at_once(sides: str) -> None:
    join = make(sides)
    for port in (0, 1):
        list(join.on_batch(port, rows(port, ["a", "b"] * 5_000, range(10_000))))
    list(join.on_punctuation(Punctuation(10_000)))
    assert join.held <= 30
    assert join.state_bytes < 100_000


@pytest.mark.parametrize("sides", ["both by rows", "rows and range", "by the key"])
def test_what_has_left_the_window_is_let_go(sides: str) -> None:
    join = make(sides)
    for step in range(40):
        for port in (0, 1):
            list(join.on_batch(port, rows(port, ["a", "b"] * 50, range(step * 100, step * 100 + 100))))
        list(join.on_punctuation(Punctuation(step * 100 + 100)))
        assert join.held <= 30
        assert join.state_bytes < 100_000
    list(join.on_punctuation(Punctuation(END_OF_TIME)))
    assert join.held == 0


def test_a_save_writes_what_changed_and_not_the_windows() -> None:
    join = RowsJoin(schemas(), (RowsSide(("k0",), rows=5_000), RowsSide(("k1",), rows=5_000, partition=("k1",))))
    written = 0
    for step in range(100):
        for port in (0, 1):
            keys = [f"{port}-{number}" for number in range(50)]
            list(join.on_batch(port, rows(port, keys, [step] * 50)))
        list(join.on_punctuation(Punctuation(step + 1)))
        written += sum(table.num_rows for table in join.changes().added.values())
    assert join.held == 5_000 + 5_000
    assert written < 8 * 100 * 100


def test_a_row_compares_with_the_rows_of_its_keys_alone() -> None:
    join = RowsJoin(schemas(), (RowsSide(("k0",), rows=1_000), RowsSide(("k1",), rows=1_000)))
    keys = [f"k{number}" for number in range(1_000)]
    for port in (0, 1):
        list(join.on_batch(port, rows(port, keys, range(1_000))))
    list(join.on_punctuation(Punctuation(END_OF_TIME)))
    assert join.compared == 2_000


def test_equal_times_go_by_contents_where_the_order_of_entry_is_not_known() -> None:
    answers = []
    for keys in (["b", "a"], ["a", "b"]):
        join = RowsJoin(schemas(), (RowsSide(rows=1), RowsSide()), by_entry=(False, True))
        list(join.on_batch(0, Batch(rows(0, keys, [1, 1]).rows.set_column(1, "n0", pa.array([1, 1])))))
        list(join.on_batch(1, rows(1, ["x"], [2])))
        answers.append(rows_of(list(join.on_punctuation(Punctuation(END_OF_TIME)))))
    assert answers[0] == answers[1] and "'k0': 'b'" in answers[0][0]


def test_fractions_have_one_zero_and_one_nan() -> None:
    fractions = [pa.schema([(name, pa.float64())]) for name in ("x", "y")]
    join = RowsJoin(fractions, (RowsSide(("x",), rows=1, partition=("x",)), RowsSide(("y",))))
    for port, values in enumerate(([0.0, -0.0, np.nan, np.nan], [0.0, -0.0, np.nan])):
        columns = [pa.array(values), pa.array(np.arange(len(values)) + port * 10)]
        list(join.on_batch(port, Batch(pa.RecordBatch.from_arrays(columns, names=[*fractions[port].names, TIME]))))
    found, _ = join.on_punctuation(Punctuation(END_OF_TIME))
    assert isinstance(found, Batch) and found.times.tolist() == [10, 11, 12]


def test_more_rows_than_the_limit_are_refused_by_the_name_of_the_option() -> None:
    sides = (RowsSide(("k0",), rows=1, partition=("k0",)), RowsSide(("k1",)))
    script = merged(random_scripts(1, keys=12, batches=24))
    held = RowsJoin(schemas(), sides, state_limit=10_000)
    outputs(held, script)
    with pytest.raises(RunError, match="more than 3 rows") as refused:
        outputs(RowsJoin(schemas(), sides, state_limit=3), script)
    assert "state_limit" in refused.value.hint
