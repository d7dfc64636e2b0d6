"""JoinCore against a nested loop over all rows that ever came."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import permutations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.columns import hashing
from millrace.kernel.columns.expressions import Call, Column, Expression
from millrace.kernel.elements import ARRIVED, END_OF_TIME, NO_BOUND, TIME, Batch, Element
from millrace.kernel.joins.any_order import (
    kept_run,
    match_keys,
    match_run,
)
from millrace.kernel.joins.any_order import (
    match_store as matches,
)
from millrace.kernel.joins.any_order.join import Join
from millrace.kernel.joins.any_order.join_core import JoinCore
from millrace.kernel.joins.sides import JoinTime, Side
from tests.unit.kernel.check_by_input import check_by_input, outputs, random_scripts, restarted, schemas
from tests.unit.kernel.check_operator import Script, rows_of

Row = dict[str, Any]


def rows_by_port(script: Script, ports: int) -> list[list[Row]]:
    return [
        [row for at, each in script.steps if at == port and isinstance(each, Batch) for row in each.rows.to_pylist()]
        for port in range(ports)
    ]


def last_match(row: Row, side: Side) -> int | None:
    """The last time that may match a row; None if none can."""
    ends = [] if side.ahead is None else [row[TIME] + side.ahead]
    if side.until is not None:
        if row[side.until] is None:
            return None
        ends.append(round(row[side.until].timestamp() * 1_000_000))
    return min(ends) if all(row[key] is not None for key in side.keys) else None


Known = tuple[int, int, int]
"""Of a row that can match: its place, its time, and the last time that may match it."""


def by_key(rows: Sequence[Row], side: Side) -> dict[tuple[Any, ...], list[Known]]:
    found: dict[tuple[Any, ...], list[Known]] = {}
    for place, row in enumerate(rows):
        if (last := last_match(row, side)) is not None:
            found.setdefault(tuple(row[key] for key in side.keys), []).append((place, row[TIME], last))
    return found


def places_that_match(inputs: list[list[Row]], sides: Sequence[Side]) -> Iterator[tuple[int, ...]]:
    first, *others = (by_key(rows, side) for rows, side in zip(inputs, sides, strict=True))
    for key in first:
        for found in product(first[key], *(other.get(key, []) for other in others)):
            if all(one[1] <= other[2] for one, other in permutations(found, 2)):
                yield tuple(place for place, _, _ in found)


def expected(
    script: Script, sides: Sequence[Side], time: JoinTime = "max", residual: Any = lambda row: True
) -> list[str]:
    """What a nested loop gives, as `rows_of` gives it."""
    return sorted(repr(row) for row in nested_loop(rows_by_port(script, len(sides)), sides, time, residual))


def nested_loop(inputs: list[list[Row]], sides: Sequence[Side], time: JoinTime, residual: Any) -> Iterator[Row]:
    timed = any(ARRIVED in row for rows in inputs for row in rows)
    matched = [set[int]() for _ in sides]
    for places in places_that_match(inputs, sides):
        parts = [inputs[port][place] for port, place in enumerate(places)]
        if residual({name: part[name] for part in parts for name in part}):
            for port, place in enumerate(places):
                matched[port].add(place)
            times = [part[TIME] for part in parts]
            own = max(times) if time == "max" else min(times) if time == "min" else times[time]
            yield _row(parts, own, max(part.get(ARRIVED, NO_BOUND) for part in parts), timed)
    for port, side in enumerate(sides):
        for place, row in enumerate(inputs[port]):
            if side.outer and place not in matched[port]:
                nulls = dict.fromkeys(schemas(2)[1 - port].names)
                parts = [row, nulls] if port == 0 else [nulls, row]
                yield _row(parts, row[TIME], row.get(ARRIVED, NO_BOUND), timed)


def _row(parts: Sequence[Row], time: int, arrived: int, timed: bool) -> Row:
    columns = {name: value for part in parts for name, value in part.items() if name not in (TIME, ARRIVED)}
    return {**columns, TIME: time, **({ARRIVED: arrived} if timed else {})}


def keyed(port: int, **options: Any) -> Side:
    return Side((f"k{port}",), **options)


def numbers_rise() -> Expression:
    return Call("<", (Column("n0"), Column("n1")))


def rises(row: Row) -> bool:
    return row["n0"] is not None and row["n1"] is not None and row["n0"] < row["n1"]


PAIRS: dict[str, tuple[Side, Side]] = {
    "band": (keyed(0, ahead=10), keyed(1, ahead=25)),
    "same instant": (keyed(0, ahead=0), keyed(1, ahead=0)),
    "apart": (keyed(0, ahead=40), keyed(1, ahead=-10)),
    "empty band": (keyed(0, ahead=-10), keyed(1, ahead=-10)),
    "no keys": (Side(ahead=6), Side(ahead=3)),
    "two keys": (Side(("k0", "n0"), 30), Side(("k1", "n1"), 30)),
    "number": (Side(("n0",), 15), Side(("n1",), 15)),
    "times as keys": (Side(("u0",), 90), Side(("u1",), 90)),
    "until": (keyed(0, until="u0"), keyed(1, ahead=0)),
    "until both": (keyed(0, until="u0"), keyed(1, until="u1")),
    "until and ahead": (keyed(0, until="u0", ahead=12), keyed(1, until="u1", ahead=30)),
    "left": (keyed(0, ahead=10, outer=True), keyed(1, ahead=25)),
    "right": (keyed(0, ahead=10), keyed(1, ahead=5, outer=True)),
    "full": (keyed(0, ahead=10, outer=True), keyed(1, ahead=20, outer=True)),
    "full until": (keyed(0, until="u0", outer=True), keyed(1, ahead=7, outer=True)),
}


TRIPLES: dict[str, tuple[Side, Side, Side]] = {
    "ahead": (keyed(0, ahead=20), keyed(1, ahead=15), keyed(2, ahead=30)),
    "until": (keyed(0, until="u0"), keyed(1, ahead=25), keyed(2, until="u2", ahead=20)),
}

TIMES: tuple[JoinTime, ...] = ("max", "min", 0, 1)


def joined(script: Script, sides: Sequence[Side], *arguments: Any) -> list[str]:
    return rows_of(outputs(lambda: Join(schemas(len(sides)), sides, *arguments), script))


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_join_of_two_gives_what_a_nested_loop_gives(name: str) -> None:
    for seed, time in enumerate(TIMES):
        script = random_scripts(seed, batches=10)
        assert joined(script, PAIRS[name], None, time) == expected(script, PAIRS[name], time), seed


@pytest.mark.slow
@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("name", PAIRS)
def test_join_of_two_gives_what_a_nested_loop_gives_at_length(name: str, time: JoinTime) -> None:
    for seed in range(4, 8):
        script = random_scripts(seed, batches=20)
        assert joined(script, PAIRS[name], None, time) == expected(script, PAIRS[name], time), seed


@pytest.mark.slow
@pytest.mark.parametrize("time", ["max", 0])
@pytest.mark.parametrize("name", PAIRS)
def test_join_of_two_keeps_the_contract_of_operators_that_work_by_input(name: str, time: JoinTime) -> None:
    check_by_input(lambda: Join(schemas(), PAIRS[name], None, time), seeds=2, compares=name != "empty band")


OUTER = [name for name, sides in PAIRS.items() if any(side.outer for side in sides)]


@pytest.mark.slow
@pytest.mark.parametrize("time", ["max", 0])
@pytest.mark.parametrize("name", OUTER)
@pytest.mark.parametrize("delay", [3, 40])
def test_a_join_that_releases_slowly_gives_the_same_and_keeps_the_contract(
    name: str, time: JoinTime, delay: int
) -> None:
    for seed in range(3):
        script = random_scripts(seed, batches=12)
        found = rows_of(outputs(lambda: Join(schemas(), PAIRS[name], None, time, delay=delay), script))
        assert found == expected(script, PAIRS[name], time), seed
    check_by_input(lambda: Join(schemas(), PAIRS[name], None, time, delay=delay), seeds=2)


@pytest.mark.parametrize("name", ["until", "full"])
def test_join_keeps_the_contract_in_short(name: str) -> None:
    for time in ("max", 0):
        check_by_input(
            lambda time=time: Join(schemas(), PAIRS[name], numbers_rise(), time),
            scripts=lambda seed: random_scripts(seed, batches=8),
            seeds=2,
        )


@pytest.mark.parametrize("name", ["band", "no keys", "left", "full until"])
def test_residual_condition_decides_what_matches(name: str) -> None:
    for seed in range(3):
        script = random_scripts(seed, batches=10)
        assert joined(script, PAIRS[name], numbers_rise()) == expected(script, PAIRS[name], residual=rises), seed


@pytest.mark.parametrize("name", TRIPLES)
def test_join_of_three_gives_what_a_nested_loop_gives(name: str) -> None:
    for seed, time in enumerate(("max", "min", 2)):
        script = random_scripts(seed, 3, batches=7)
        assert joined(script, TRIPLES[name], None, time) == expected(script, TRIPLES[name], time), seed


@pytest.mark.slow
@pytest.mark.parametrize("time", ["max", "min", 2])
@pytest.mark.parametrize("name", TRIPLES)
def test_join_of_three_keeps_the_contract_of_operators_that_work_by_input(name: str, time: JoinTime) -> None:
    check_by_input(lambda: Join(schemas(3), TRIPLES[name], None, time), ports=3, seeds=2)


# What many rows need, with few


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores that make runs, cut, merge and widen slices of a handful of rows."""
    monkeypatch.setattr(matches, "ROOM", 8)
    monkeypatch.setattr(matches, "FEW", 2)
    monkeypatch.setattr(matches, "_MANY", 3)
    monkeypatch.setattr(matches, "_LOOKED_THROUGH", 20)
    monkeypatch.setattr(match_run, "_PAIRS", 16)
    monkeypatch.setattr(kept_run, "_MARKS", 2)


def restarted_often(script: Script, sides: Sequence[Side], time: JoinTime) -> list[str]:
    return rows_of(restarted(lambda: Join(schemas(len(sides)), sides, None, time), script, 1, 0.5))


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", PAIRS)
def test_runs_give_what_a_nested_loop_gives(name: str) -> None:
    script = random_scripts(20, batches=12)
    assert joined(script, PAIRS[name]) == expected(script, PAIRS[name])
    assert restarted_often(script, PAIRS[name], 0) == expected(script, PAIRS[name], 0)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", PAIRS)
def test_runs_give_what_a_nested_loop_gives_at_length(name: str) -> None:
    for seed in range(21, 24):
        script = random_scripts(seed, batches=25)
        assert joined(script, PAIRS[name]) == expected(script, PAIRS[name]), seed
        assert restarted_often(script, PAIRS[name], 1) == expected(script, PAIRS[name], 1), seed


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("time", [1, "min"])
@pytest.mark.parametrize("name", PAIRS)
def test_runs_keep_the_contract_of_operators_that_work_by_input(name: str, time: JoinTime) -> None:
    check_by_input(lambda: Join(schemas(), PAIRS[name], None, time), seeds=2, compares=name != "empty band")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", TRIPLES)
def test_runs_of_three_inputs_give_what_a_nested_loop_gives(name: str) -> None:
    for seed in range(23, 27):
        script = random_scripts(seed, 3, batches=9)
        assert joined(script, TRIPLES[name]) == expected(script, TRIPLES[name]), seed


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("bits", [0, 1])
@pytest.mark.parametrize("name", ["band", "two keys", "full"])
def test_different_keys_of_equal_hashes_do_not_match(name: str, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = hashing.text_words
    monkeypatch.setattr(match_keys, "text_words", lambda column: whole(column) & np.uint64(bits))
    for seed in (30, 31):
        script = random_scripts(seed)
        assert joined(script, PAIRS[name]) == expected(script, PAIRS[name]), seed
        assert restarted_often(script, PAIRS[name], "max") == expected(script, PAIRS[name]), seed


@pytest.mark.usefixtures("small")
def test_times_that_span_all_of_time_are_told_apart() -> None:
    sides = (keyed(0, ahead=3), keyed(1, ahead=3))
    moved = [-(2**62) - 5, -7, 0, 2**62]
    script = Script(tuple(_spread(random_scripts(40, arrived=False), moved)))
    assert joined(script, sides) == expected(script, sides)


def _spread(script: Script, moved: Sequence[int]) -> Iterator[tuple[int, Element]]:
    """The rows of a script at several ends of time, and its last bounds."""
    for port, element in script.steps:
        if isinstance(element, Batch):
            offsets = np.array(moved)[np.arange(len(element)) % len(moved)]
            rows = element.rows.set_column(3, TIME, pa.array(element.times + offsets))
            yield port, Batch(rows)
        elif element.until == END_OF_TIME:
            yield port, element


# Keys of every kind


def rows_with(port: int, keys: pa.Array, times: Sequence[int]) -> Batch:
    return Batch(pa.record_batch({f"k{port}": keys, TIME: pa.array(times, pa.int64())}))


def pairs_of(keys: pa.Array) -> set[tuple[int, int]]:
    """Which rows of a column match each other, by place; all at one instant."""
    sides = (Side(("k0",), 1000), Side(("k1",), 1000))
    joining = JoinCore([pa.schema([(f"k{port}", keys.type), (f"n{port}", pa.int64())]) for port in (0, 1)], sides)
    for port in (0, 1):
        columns = {
            f"k{port}": keys,
            f"n{port}": pa.array(range(len(keys))),
            TIME: pa.array([0] * len(keys), pa.int64()),
        }
        found = joining.arrive(port, Batch(pa.record_batch(columns)))
    return {(row["n0"], row["n1"]) for row in found.rows.to_pylist()} if found is not None else set()


@pytest.mark.parametrize("many", [1, 40])
@pytest.mark.parametrize(
    "keys",
    [
        pa.array([1, 2, None, 1], pa.int32()),
        pa.array([2**64 - 1, 5, None, 5], pa.uint64()),
        pa.array([True, False, None, True]),
        pa.array([1.5, -0.0, None, 0.0, math.nan, math.nan]),
        pa.array(["", "a", None, "a\0", "long enough for several words", "a", "long enough for several word5"]),
        pa.array([b"x", None, b"x"], pa.large_binary()),
        pa.array([Decimal("1.10"), None, Decimal("1.10"), Decimal("1.11")]),
        pa.array([1, 2, None, 1], pa.int32()).cast(pa.date32()),
        pa.array([1, 2, None, 1]).cast(pa.timestamp("us", tz="UTC")),
    ],
    ids=lambda keys: str(keys.type),
)
def test_keys_of_every_type_match_where_they_are_equal_and_not_null(keys: pa.Array, many: int) -> None:
    keys = pa.concat_arrays([keys] * many)
    values = ["nan" if isinstance(value, float) and math.isnan(value) else value for value in keys.to_pylist()]
    places = [place for place, value in enumerate(values) if value is not None]
    assert pairs_of(keys) == {(i, j) for i in places for j in places if values[i] == values[j]}


# What is kept


def band(reach: int) -> JoinCore:
    schema = [pa.schema([(f"k{port}", pa.int64())]) for port in (0, 1)]
    return JoinCore(schema, (Side(("k0",), reach), Side(("k1",), reach)))


def test_row_that_nothing_later_can_match_is_joined_and_not_kept() -> None:
    joining = band(10)
    joining.arrive(1, rows_with(1, pa.array([1]), [95]))
    joining.raise_bound(1, 100)
    assert joining.arrive(0, rows_with(0, pa.array([1]), [89])) is not None
    assert len(joining) == 1
    joining.arrive(0, rows_with(0, pa.array([1]), [90]))
    assert len(joining) == 2


def test_row_is_let_go_when_all_other_bounds_have_passed_its_last_match() -> None:
    schema = [pa.schema([(f"k{port}", pa.int64())]) for port in range(3)]
    joining = JoinCore(schema, tuple(Side((f"k{port}",), 10) for port in range(3)))
    joining.arrive(0, rows_with(0, pa.array([1]), [0]))
    joining.raise_bound(1, 11)
    assert len(joining) == 1
    joining.raise_bound(2, 10)
    assert len(joining) == 1
    joining.raise_bound(2, 11)
    assert len(joining) == 0


def test_wide_windows_have_few_runs_and_are_let_go_bit_by_bit() -> None:
    random, joining = np.random.default_rng(0), band(1_000_000)
    most_runs, most_rows = 0, 0
    for step in range(300):
        times = step * 20_000 + random.integers(0, 60_000, 600)
        joining.arrive(0, rows_with(0, pa.array(random.integers(0, 10**6, 600)), times))
        joining.raise_bound(1, step * 20_000)
        most_runs = max(most_runs, len(joining.stores[0]._runs))
        most_rows = max(most_rows, sum(len(kept) for kept in joining.stores[0]._runs))
    assert most_runs <= 12
    assert len(joining) < 1.15 * 600 * 53
    assert most_rows < 1.8 * 600 * 53, "rows that were let go stay in memory"


def test_row_from_the_far_future_does_not_keep_others() -> None:
    joining = band(1000)
    times = np.arange(5000)
    times[77] = 10**15
    joining.arrive(0, rows_with(0, pa.array(times), times))
    joining.raise_bound(1, 100_000)
    assert sum(len(kept) for kept in joining.stores[0]._runs) == 1


def test_save_costs_what_changed() -> None:
    joining = band(1_000_000)
    for step in range(20):
        joining.arrive(0, rows_with(0, pa.array(np.arange(2000)), step * 10_000 + np.arange(2000)))
    assert sum(table.num_rows for table in joining.changes().added.values()) == 40_000
    assert joining.changes().added == {}
    joining.arrive(0, rows_with(0, pa.array([1, 2]), [250_000, 250_001]))
    assert sum(table.num_rows for table in joining.changes().added.values()) <= 2
    joining.raise_bound(1, 10**9)
    last = joining.changes()
    assert last.added == {} and len(last.removed) > 0


def test_matched_rows_are_saved_beside_the_rows() -> None:
    schema = [pa.schema([(f"k{port}", pa.int64())]) for port in (0, 1)]
    joining = JoinCore(schema, (Side(("k0",), 10**6, outer=True), Side(("k1",), 10**6)))
    joining.arrive(0, rows_with(0, pa.array(np.arange(5000)), np.arange(5000)))
    joining.changes()
    for step in range(20):
        joining.arrive(1, rows_with(1, pa.array([step]), [6000 + step]))
        added = joining.changes().added.values()
        assert not any("k0" in table.schema.names for table in added), "rows were written again"
        assert sum(table.num_rows for table in added if "k1" not in table.schema.names) <= step + 1
        assert joining.stores[0].least_until() == 10**6 + step + 1


def test_results_come_in_pieces_where_there_are_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_run, "_PAIRS", 2000)
    joining = JoinCore([pa.schema([(f"k{port}", pa.int64())]) for port in (0, 1)], (Side(ahead=10), Side(ahead=10)))
    joining.arrive(0, rows_with(0, pa.array(range(600)), [0] * 600))
    joining.changes()
    sizes = [piece.num_rows for piece in joining.pieces(1, rows_with(1, pa.array(range(100)), [0] * 100))]
    assert sum(sizes) == 60_000 and max(sizes) <= 2600
    assert joining.compared == 60_000


def test_rows_found_among_the_young_stay_found_when_those_become_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "_LOOKED_THROUGH", 20)
    schema = [pa.schema([(f"k{port}", pa.int64())]) for port in range(3)]
    joining = JoinCore(schema, tuple(Side((f"k{port}",), 100) for port in range(3)))
    joining.arrive(1, rows_with(1, pa.array([1]), [0]))
    joining.changes()
    joining.arrive(1, rows_with(1, pa.array([1] * 30), range(30)))
    joining.arrive(2, rows_with(2, pa.array([1] * 3), range(3)))
    found = joining.arrive(0, rows_with(0, pa.array([1]), [0]))
    assert found is not None and len(found) == 31 * 3
