from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from millrace.kernel.columns.grouping import Groups, grouped


def random_rows(seed: int, count: int, keys: int) -> pa.Table:
    random = np.random.default_rng(seed)
    holes = random.random(count) < 0.2
    return pa.table(
        {
            "text": pa.array([None if each == 0 else f"k{each}" for each in random.integers(0, keys, count)]),
            "whole": pa.array(random.integers(-(2**62), 2**62, count) // count, mask=holes),
            "fraction": pa.array(random.integers(-99, 99, count) / 4, mask=holes),
            "time": pa.array(random.integers(0, keys, count)).cast(pa.timestamp("us")),
            "number": pa.array(random.integers(-99, 99, count)),
        }
    )


def as_set(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("by", [["text"], ["text", "time"], ["text", "time", "whole"], ["fraction", "whole"]])
@pytest.mark.parametrize("keys", [1, 5, 2_000])
def test_groups_are_those_of_a_hash_aggregation(keys: int, by: list[str]) -> None:
    rows = random_rows(keys, 3_000, keys)
    found, groups = grouped(rows, by)
    numbers = rows.column("number").to_numpy()
    for fold in (groups.counts, groups.sums(numbers), groups.extremes(numbers, greatest=False)):
        found = found.append_column("", pa.array(fold))
    calls = [([], "count_all"), ("number", "sum"), ("number", "min")]
    assert as_set(found) == as_set(rows.group_by(by).aggregate(calls))


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64()])
@pytest.mark.parametrize("first", [-128, -3, 100])
def test_whole_numbers_that_lie_close_together_are_groups_in_their_order(kind: pa.DataType, first: int) -> None:
    numbers = np.random.default_rng(1).permutation(np.repeat(np.arange(first, first + 28), 40))
    rows = pa.table({"number": pa.array(numbers, kind), "text": [f"k{each % 3}" for each in range(len(numbers))]})
    found, groups = grouped(rows, ["number"])
    assert found.column("number").to_pylist() == list(range(first, first + 28))
    assert groups.counts.tolist() == [40] * 28
    found, groups = grouped(rows, ["text", "number"])
    assert as_set(found.append_column("", pa.array(groups.counts))) == as_set(
        rows.group_by(["text", "number"]).aggregate([([], "count_all")])
    )


def test_numbers_from_one_end_of_their_type_to_the_other_are_groups() -> None:
    ends = pa.array([127, -128, 127, 0] * 100, pa.int8())
    found, groups = grouped(pa.table({"number": ends}), ["number"])
    counted = dict(zip(found.column("number").to_pylist(), groups.counts.tolist(), strict=True))
    assert counted == {127: 200, -128: 100, 0: 100}


@pytest.mark.parametrize("greatest", [True, False])
def test_the_chosen_row_has_the_extreme_of_its_columns_in_order(greatest: bool) -> None:
    rows = random_rows(7, 500, 20)
    found, groups = grouped(rows, ["text"])
    chosen = rows.take(groups.chosen(pc.floor(rows["number"]).combine_chunks(), whole(rows), greatest=greatest))
    best = max if greatest else min
    for key, row in zip(found.column("text").to_pylist(), chosen.to_pylist(), strict=True):
        members = [each for each in rows.to_pylist() if each["text"] == key]
        assert order_of(row) == best(order_of(each) for each in members)


def whole(rows: pa.Table) -> pa.Array:
    return rows["whole"].combine_chunks()


def order_of(row: dict[str, int | None]) -> tuple[int | None, bool, int]:
    return row["number"], row["whole"] is not None, row["whole"] or 0


def test_a_group_may_be_without_rows() -> None:
    groups = Groups(np.array([2, 2, 0]), 4, np.array([0, 1, 2])).of(np.array([True, True, False]))
    assert groups.counts.tolist() == [0, 0, 2]
    assert groups.empty.tolist() == [True, True, False]
    assert groups.sums(np.array([5, 6])).tolist() == [0, 0, 11]
    assert groups.chosen(pa.array([5, 6]), greatest=True).to_pylist() == [None, None, 1]


def test_sums_of_large_whole_numbers_are_exact() -> None:
    assert Groups(np.array([0, 0, 1]), 2).sums(np.array([2**53, 1, 7])).tolist() == [2**53 + 1, 7]


def test_a_sum_beyond_64_bits_is_refused_rather_than_wrong() -> None:
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        Groups(np.array([0, 1, 0]), 2).sums(np.array([2**62, 2**62, 2**62]))
    assert Groups(np.array([0, 1, 2]), 3).sums(np.array([2**62, 2**62, 2**62])).tolist() == [2**62] * 3


def test_no_columns_make_one_group() -> None:
    _, groups = grouped(pa.table({"n": [1, 2]}), [])
    assert (groups.size, groups.counts.tolist()) == (1, [2])
