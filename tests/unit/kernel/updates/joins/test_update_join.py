from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from millrace.kernel.columns.expressions import Call, Column, Literal
from millrace.kernel.elements import ARRIVED, END_OF_TIME, TIME, Batch, Element, Punctuation
from millrace.kernel.updates.joins.update_join import UpdateJoin
from millrace.testing import Bench
from tests.unit.kernel.check_by_input import Driven, check_by_input, random_scripts, schemas

A = pa.schema([("a.k", pa.string()), ("a.n", pa.int64())])
B = pa.schema([("b.k", pa.string()), ("b.n", pa.int64())])
KEYS = (("a.k",), ("b.k",))
GREATER = Call(">", (Column("a.n"), Column("b.n")))


def made(within: tuple[int | None, int | None] = (None, None), *, residual: bool = False) -> UpdateJoin:
    return UpdateJoin([A, B], KEYS, within, GREATER if residual else None)


def batch(port: int, *rows: tuple[str | None, int, int], arrived: int | None = None) -> Batch:
    """Rows of a key, a number and a time."""
    key, number, time = zip(*rows, strict=True)
    columns = [pa.array(key, pa.string()), pa.array(number, pa.int64()), pa.array(time, pa.int64())]
    names = [*(A, B)[port].names, TIME]
    if arrived is not None:
        columns.append(pa.array([arrived] * len(rows), pa.int64()))
        names.append(ARRIVED)
    return Batch(pa.RecordBatch.from_arrays(columns, names=names))


def given(join: UpdateJoin, port: int, *rows: tuple[str | None, int, int]) -> list[tuple[object, ...]]:
    """What a batch gives: key, both numbers, and the time."""
    return results(list(join.on_batch(port, batch(port, *rows))))


def results(elements: Sequence[Element]) -> list[tuple[object, ...]]:
    return [
        (row["a.k"], row["a.n"], row["b.n"], row[TIME])
        for each in elements
        if isinstance(each, Batch)
        for row in each.rows.to_pylist()
    ]


def test_an_update_of_either_side_gives_the_match_of_the_latest_rows() -> None:
    join = made()
    assert given(join, 0, ("x", 1, 10), ("y", 2, 11)) == []
    assert given(join, 1, ("x", 5, 8)) == [("x", 1, 5, 10)]
    assert given(join, 0, ("x", 3, 20)) == [("x", 3, 5, 20)]
    assert given(join, 1, ("x", 6, 30), ("y", 7, 9)) == [("x", 3, 6, 30), ("y", 2, 7, 11)]
    assert join.held == 4


def test_of_a_batch_only_the_latest_row_of_a_key_counts() -> None:
    join = made()
    given(join, 1, ("x", 9, 0))
    assert given(join, 0, ("x", 1, 10), ("x", 2, 12), ("x", 3, 11)) == [("x", 2, 9, 12)]
    assert given(join, 0, ("x", 4, 12), ("x", 5, 12)) == [("x", 5, 9, 12)]


def test_a_row_that_is_older_than_the_latest_is_passed_over() -> None:
    join = made()
    given(join, 0, ("x", 1, 10))
    assert given(join, 0, ("x", 2, 9)) == []
    assert given(join, 1, ("x", 9, 1)) == [("x", 1, 9, 10)]
    assert given(join, 0, ("x", 2, 9)) == []


@pytest.mark.parametrize(
    ("within", "second", "matches"),
    [
        ((5, 0), 15, True), ((5, 0), 16, False), ((5, 0), 9, False), ((5, 0), 10, True),
        ((0, 3), 7, True), ((0, 3), 6, False), ((None, 3), 99, True), ((5, None), -99, True), ((-2, None), 9, False),
        ((-2, None), 8, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("first", [0, 1])
def test_rows_that_are_too_far_apart_do_not_match(
    within: tuple[int | None, int | None], second: int, matches: bool, first: int
) -> None:
    join = made(within)
    rows = {0: ("x", 1, 10), 1: ("x", 2, second)}
    assert given(join, first, rows[first]) == []
    assert bool(given(join, 1 - first, rows[1 - first])) == matches


def test_the_residual_condition_decides_about_the_latest_rows_alone() -> None:
    join = made(residual=True)
    given(join, 1, ("x", 5, 0))
    assert given(join, 0, ("x", 9, 1)) == [("x", 9, 5, 1)]
    assert given(join, 0, ("x", 9, 2), ("x", 1, 3)) == []
    assert given(join, 1, ("x", 0, 4)) == [("x", 1, 0, 4)]


def test_a_null_key_matches_nothing_and_no_key_is_one_key() -> None:
    join = made()
    given(join, 0, (None, 1, 10))
    assert given(join, 1, (None, 5, 10)) == [] and join.held == 0
    whole = UpdateJoin([A, B], ((), ()))
    given(whole, 0, ("x", 1, 10), ("y", 2, 9))
    assert given(whole, 1, ("z", 5, 3)) == [("x", 1, 5, 10)]


def test_a_result_has_arrived_when_the_later_part_has() -> None:
    join = made()
    list(join.on_batch(0, batch(0, ("x", 1, 10))))
    (found,) = join.on_batch(1, batch(1, ("x", 5, 11), arrived=70))
    assert isinstance(found, Batch) and found.rows.schema.names[-2:] == [TIME, ARRIVED]
    assert found.rows.column(ARRIVED).to_pylist() == [70]
    (found,) = join.on_batch(0, batch(0, ("x", 1, 12), arrived=50))
    assert isinstance(found, Batch) and found.rows.column(ARRIVED).to_pylist() == [70]


def test_the_lesser_bound_is_passed_on() -> None:
    join = made()
    assert list(join.on_bound(0, Punctuation(10))) == []
    assert list(join.on_bound(1, Punctuation(5))) == [Punctuation(5)]
    assert list(join.on_bound(1, Punctuation(50, ets=True))) == [Punctuation(10, ets=True)]
    assert list(join.on_bound(0, Punctuation(END_OF_TIME))) == [Punctuation(50)]


def test_a_row_is_let_go_when_both_inputs_have_passed_it() -> None:
    join = made((5, 0))
    given(join, 0, ("x", 1, 10), ("y", 1, 30))
    list(join.on_bound(1, Punctuation(16)))
    assert join.held == 2, "an older row of the same input may still come"
    list(join.on_bound(0, Punctuation(11)))
    assert join.held == 1
    list(join.on_bound(1, Punctuation(END_OF_TIME)))
    list(join.on_bound(0, Punctuation(END_OF_TIME)))
    assert join.held == 0


def test_a_row_is_kept_as_long_as_one_to_come_may_match_it() -> None:
    join = made((5, 0))
    given(join, 0, ("x", 1, 10))
    list(join.on_bound(0, Punctuation(11)))
    list(join.on_bound(1, Punctuation(15)))
    assert given(join, 1, ("x", 2, 15)) == [("x", 1, 2, 15)]


def test_a_row_is_kept_as_long_as_an_older_one_may_come() -> None:
    join = made((5, 5))
    given(join, 1, ("x", 7, 8))
    assert given(join, 0, ("x", 1, 10)) == [("x", 1, 7, 10)]
    list(join.on_bound(0, Punctuation(9)))
    list(join.on_bound(1, Punctuation(16)))
    assert given(join, 0, ("x", 2, 9)) == []


def test_rows_without_a_limit_stay_until_the_other_input_ends() -> None:
    join = made()
    given(join, 0, ("x", 1, 10))
    for port in (0, 1):
        list(join.on_bound(port, Punctuation(1_000)))
    assert given(join, 1, ("x", 2, 1_001)) == [("x", 1, 2, 1_001)]
    list(join.on_bound(1, Punctuation(END_OF_TIME)))
    assert join.held == 1, "the other side's row can still be joined"


def test_a_save_writes_what_changed() -> None:
    join = made()
    names = [f"k{number}" for number in range(20_000)]
    for port in (0, 1):
        list(join.on_batch(port, batch(port, *((name, 1, 10) for name in names))))
    assert sum(table.num_rows for table in join.changes().added.values()) >= 60_000
    given(join, 0, ("k7", 2, 11))
    assert sum(table.num_rows for table in join.changes().added.values()) < 10
    assert not join.changes().added


def latest_of(elements: Sequence[Element]) -> list[str]:
    """The last row of each key."""
    rows = [row for each in elements if isinstance(each, Batch) for row in each.rows.to_pylist()]
    return sorted(map(repr, {row["k0"]: row for row in rows}.values()))


@pytest.mark.slow
@pytest.mark.parametrize("within", [(None, None), (30, 30), (10, None)])
def test_it_keeps_the_contract(within: tuple[int | None, int | None]) -> None:
    def join() -> UpdateJoin:
        return UpdateJoin(schemas(), (("k0",), ("k1",)), within)

    # What is given before the latest rows have come depends on who comes first, and on what is one batch.
    check_by_input(join, seen=latest_of if within == (None, None) else lambda _: [])


def test_results_of_a_key_never_go_back_in_time() -> None:
    residual = Call("<>", (Column("n0"), Literal(3, pa.int64())))
    results = 0
    for seed in range(10):
        driven = Driven(lambda: UpdateJoin(schemas(), (("k0",), ("k1",)), (40, 25), residual))
        for port, element in random_scripts(seed).steps:
            driven.step(port, element)
        times: dict[str, int] = {}
        for each in driven.found:
            for row in each.rows.to_pylist() if isinstance(each, Batch) else ():
                assert row[TIME] >= times.get(row["k0"], row[TIME])
                times[row["k0"]] = row[TIME]
                results += 1
    assert results > 20


def test_a_row_that_was_given_alone_is_given_again_with_the_row_that_it_meets_later() -> None:
    stream = "CREATE STREAM {} (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM iterable;"
    query = "CREATE QUERY q AS SELECT s.k, s.v, t.v AS w FROM s LEFT JOIN t ON s.k = t.k;"
    bench = Bench(stream.format("s") + stream.format("t") + query)
    bench.push("s", "k | v | ts \n a | 1 | 00:00:01")
    bench.push("t", "k | v | ts \n a | 7 | 00:00:02")
    assert [(row["v"], row["w"]) for row in bench.results("q")] == [(1, None), (1, 7)]
