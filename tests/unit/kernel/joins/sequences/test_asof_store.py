from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.elements import END_OF_TIME, TIME, Batch
from millrace.kernel.joins.sequences.asof_store import AsofStore

COUNT = 20_000


def rows(first: int, count: int, keys: int) -> Batch:
    """Rows a microsecond apart, of keys that take turns."""
    numbers = np.arange(first, first + count)
    return Batch(pa.record_batch({"k": pa.array(numbers % keys), "n": pa.array(numbers), TIME: pa.array(numbers)}))


def found(store: AsofStore, keys: list[int], times: list[int]) -> list[int | None]:
    """The number of the latest row for each key and time."""
    places, table = store.find([pa.array(keys)], np.array(times))
    numbers = [] if table is None else table.column("n").to_pylist()
    return [None if place < 0 else numbers[place] for place in places.tolist()]


def test_finds_the_latest_row_in_every_run_and_among_newcomers() -> None:
    store = AsofStore(["k"], ["k", "n"])
    for first in range(0, COUNT, 5_000):
        store.add(rows(first, 5_000, 10))
    store.add(rows(COUNT, 10, 10))
    assert found(store, [3, 4, 4, 11], [2, 14, COUNT + 5, COUNT]) == [None, 14, COUNT + 4, None]


def test_rows_that_are_followed_by_another_up_to_the_floor_are_let_go() -> None:
    store = AsofStore(["k"], ["k", "n"])
    store.add(rows(0, COUNT, 10))
    assert len(store) == COUNT
    store.raise_floor(COUNT - 100)
    assert len(store) == 109
    assert found(store, [1, 2], [COUNT - 100, COUNT - 1]) == [COUNT - 109, COUNT - 8]
    store.raise_floor(END_OF_TIME)
    assert len(store) == 0


@pytest.mark.parametrize(("strict", "kept"), [(False, [7]), (True, [6, 7])])
def test_a_row_at_the_floor_replaces_the_one_before_it_unless_it_must_be_earlier(strict: bool, kept: list[int]) -> None:
    store = AsofStore(["k"], ["k", "n"], strict=strict)
    store.raise_floor(7)
    store.add(rows(5, 3, 1))
    assert [row["n"] for table in store.changes().added.values() for row in table.to_pylist()] == kept


def test_rows_that_are_too_old_for_all_that_may_be_asked_are_let_go() -> None:
    store = AsofStore(["k"], ["k", "n"], 50)
    store.add(rows(0, COUNT, COUNT))
    store.raise_floor(COUNT - 100)
    assert len(store) == 150
    assert found(store, [COUNT - 150, COUNT - 150], [COUNT - 100, COUNT - 99]) == [COUNT - 150, None]


def test_what_is_held_does_not_grow_with_what_has_passed() -> None:
    store, held = AsofStore(["k"], ["k", "n"]), []
    for first in range(0, 30 * 3_000, 3_000):
        store.add(rows(first, 3_000, 10))
        store.raise_floor(first + 2_000)
        held.append(len(store))
    assert max(held) < 5 * 3_000


def test_a_save_writes_only_what_came_since_the_last_one() -> None:
    store = AsofStore(["k"], ["k", "n"])
    store.add(rows(0, COUNT, 10))
    assert sum(table.num_rows for table in store.changes().added.values()) == COUNT
    store.add(rows(COUNT, 7, 10))
    saved = store.changes()
    assert sum(table.num_rows for table in saved.added.values()) == 7
    assert saved.removed == ()
