"""Joining against a nested loop over all rows that ever came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest

from millrace.kernel.elements import ARRIVED, NO_BOUND, TIME, Batch
from millrace.kernel.expressions import Call, Column, Expression
from millrace.kernel.operators.join import Join
from millrace.kernel.sides import JoinTime, Side
from tests.unit.kernel.check_by_input import check_by_input, outputs, random_scripts, schemas
from tests.unit.kernel.check_operator import Script, rows_of

Row = dict[str, Any]


def rows_by_port(script: Script, ports: int) -> list[list[Row]]:
    return [
        [row for at, each in script.steps if at == port and isinstance(each, Batch) for row in each.rows.to_pylist()]
        for port in range(ports)
    ]


def last_match(row: Row, side: Side, port: int) -> int | None:
    """The last time that may match a row; None if none can."""
    ends = [] if side.ahead is None else [row[TIME] + side.ahead]
    if side.until is not None:
        if row[side.until] is None:
            return None
        ends.append(round(row[side.until].timestamp() * 1_000_000))
    return min(ends) if all(row[key] is not None for key in side.keys) else None


def matching(rows: Sequence[Row], sides: Sequence[Side]) -> bool:
    lasts = [last_match(row, side, port) for port, (row, side) in enumerate(zip(rows, sides, strict=True))]
    if None in lasts:
        return False
    keys = [tuple(row[key] for key in side.keys) for row, side in zip(rows, sides, strict=True)]
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows)) if i != j]
    return all(keys[i] == keys[j] and rows[j][TIME] <= lasts[i] for i, j in pairs)


def expected(
    script: Script, sides: Sequence[Side], time: JoinTime = "max", residual: Any = lambda row: True
) -> list[str]:
    """What a nested loop gives, as `rows_of` gives it."""
    return sorted(repr(row) for row in nested_loop(rows_by_port(script, len(sides)), sides, time, residual))


def nested_loop(inputs: list[list[Row]], sides: Sequence[Side], time: JoinTime, residual: Any) -> Iterator[Row]:
    timed = any(ARRIVED in row for rows in inputs for row in rows)
    matched = [set[int]() for _ in sides]
    for places in product(*(range(len(rows)) for rows in inputs)):
        parts = [inputs[port][place] for port, place in enumerate(places)]
        if matching(parts, sides) and residual({name: part[name] for part in parts for name in part}):
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


@pytest.mark.parametrize("time", ["max", "min", 0, 1])
@pytest.mark.parametrize("name", PAIRS)
def test_join_of_two_gives_what_a_nested_loop_gives(name: str, time: JoinTime) -> None:
    for seed in range(12):
        script = random_scripts(seed)
        found = outputs(lambda: Join(schemas(), PAIRS[name], None, time), script)
        assert rows_of(found) == expected(script, PAIRS[name], time), seed


@pytest.mark.parametrize("name", PAIRS)
def test_join_of_two_keeps_the_contract_of_operators_that_work_by_input(name: str) -> None:
    for time in ("max", 0):
        check_by_input(
            lambda time=time: Join(schemas(), PAIRS[name], None, time), seeds=4, compares=name != "empty band"
        )


@pytest.mark.parametrize("name", ["band", "no keys", "left", "full", "full until"])
def test_residual_condition_decides_what_matches(name: str) -> None:
    for seed in range(12):
        script = random_scripts(seed)
        found = outputs(lambda: Join(schemas(), PAIRS[name], numbers_rise()), script)
        assert rows_of(found) == expected(script, PAIRS[name], residual=rises), seed
    check_by_input(lambda: Join(schemas(), PAIRS[name], numbers_rise(), "min"), seeds=4)


@pytest.mark.parametrize("time", ["max", "min", 1])
def test_join_of_three_gives_what_a_nested_loop_gives(time: JoinTime) -> None:
    sides = (keyed(0, ahead=20), keyed(1, ahead=15), keyed(2, ahead=30))
    untils = (keyed(0, until="u0"), keyed(1, ahead=25), keyed(2, until="u2", ahead=20))
    for seed in range(6):
        script = random_scripts(seed, 3, batches=9)
        for each in (sides, untils):
            found = outputs(lambda each=each: Join(schemas(3), each, None, time), script)
            assert rows_of(found) == expected(script, each, time), seed


def test_join_of_three_keeps_the_contract_of_operators_that_work_by_input() -> None:
    sides = (keyed(0, ahead=20), keyed(1, ahead=15), keyed(2, ahead=30))
    for time in ("max", "min", 2):
        check_by_input(lambda time=time: Join(schemas(3), sides, None, time), ports=3, seeds=3)
