from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from millrace.kernel.grouping import Call, group


def random_rows(seed: int, count: int, keys: int) -> pa.Table:
    random = np.random.default_rng(seed)
    holes = random.random(count) < 0.2
    return pa.table(
        {
            "text": pa.array([None if each == 0 else f"k{each}" for each in random.integers(0, keys, count)]),
            "whole": pa.array(random.integers(-(2**62), 2**62, count) // count, mask=holes),
            "fraction": pa.array(random.integers(-99, 99, count) / 4, mask=holes),
            "time": pa.array(random.integers(0, keys, count)).cast(pa.timestamp("us")),
        }
    )


def by_arrow(rows: pa.Table, by: list[str], calls: list[Call]) -> list[str]:
    options = {"count": pc.CountOptions(mode="only_valid"), "sum": pc.ScalarAggregateOptions(min_count=1)}
    specs = [([], "count_all", None) if name is None else (name, call, options.get(call)) for name, call in calls]
    return as_set(rows.group_by(by).aggregate(specs))


def as_set(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True))


NUMBERS: list[Call] = [(None, "count")]
NUMBERS += [(name, call) for name in ("whole", "fraction") for call in ("count", "sum", "min", "max")]
TEXTS: list[Call] = [("text", "max"), ("time", "min"), ("whole", "sum"), (None, "count")]


@pytest.mark.parametrize("calls", [NUMBERS, TEXTS], ids=["numbers", "others"])
@pytest.mark.parametrize("by", [["text"], ["text", "time"], ["text", "time", "whole"], ["fraction", "whole"]])
@pytest.mark.parametrize("keys", [1, 5, 2_000])
def test_groups_are_those_of_a_hash_aggregation(keys: int, by: list[str], calls: list[Call]) -> None:
    rows = random_rows(keys, 3_000, keys)
    names = [f"r{number}" for number in range(len(calls))]
    found = group(rows, by, calls, names)
    assert found.column_names == [*by, *names]
    assert as_set(found) == by_arrow(rows, by, calls)


def test_sums_of_large_whole_numbers_are_exact() -> None:
    rows = pa.table({"k": ["a", "a", "b"], "n": [2**53, 1, None]})
    found = group(rows, ["k"], [("n", "sum")], ["s"]).to_pylist()
    assert sorted(found, key=lambda row: row["k"]) == [{"k": "a", "s": 2**53 + 1}, {"k": "b", "s": None}]


def test_a_sum_beyond_64_bits_is_refused_rather_than_wrong() -> None:
    rows = pa.table({"k": ["a", "b", "a"], "n": [2**62, 2**62, 2**62]})
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        group(rows, ["k"], [("n", "sum")], ["s"])
    assert group(rows, ["n"], [("n", "max")], ["m"]).num_rows == 1


def test_no_columns_make_one_group() -> None:
    assert group(pa.table({"n": [1, 2]}), [], [(None, "count"), ("n", "max")], ["c", "m"]).to_pylist() == [
        {"c": 2, "m": 2}
    ]
