from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.columns.comparison import same_keys, without_null
from millrace.kernel.joins.sequences.key_time_store import KeyTimes, by_contents, merged_order, order_of

SPANS = [20, 2**61]


def rows(random: np.random.Generator, span: int) -> tuple[list[int], list[int]]:
    """Hashes and times, sorted by both."""
    count = int(random.integers(0, 30))
    hashes, times = random.integers(-3, 3, count) * 2**60, random.integers(-span, span, count)
    found = sorted(zip(hashes.tolist(), times.tolist(), strict=True))
    return [hash for hash, _ in found], [time for _, time in found]


def key_times(pair: tuple[list[int], list[int]]) -> KeyTimes:
    return KeyTimes(np.array(pair[0], np.int64), np.array(pair[1], np.int64))


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("seed", range(10))
def test_rows_up_to_a_time_end_where_counting_says(seed: int, span: int) -> None:
    random = np.random.default_rng(seed)
    hashes, times = rows(random, span)
    index = key_times((hashes, times))
    asked = random.integers(-4, 4, 40) * 2**60
    moments = random.integers(-2 * span, 2 * span, 40)
    codes, known = index.codes_of(asked)
    assert known.tolist() == [hash in hashes for hash in asked.tolist()]
    for hash, moment, end in zip(
        asked[known].tolist(), moments[known].tolist(), index.ends(codes[known], moments[known]).tolist(), strict=True
    ):
        assert end == sum((other, time) <= (hash, moment) for other, time in zip(hashes, times, strict=True))


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("seed", range(20))
def test_merged_rows_are_in_order_and_of_equal_ones_the_older_come_first(seed: int, span: int) -> None:
    random = np.random.default_rng(seed)
    older, newer = rows(random, span), rows(random, span)
    together = list(zip(older[0] + newer[0], older[1] + newer[1], range(len(older[0] + newer[0])), strict=True))
    assert merged_order(key_times(older), key_times(newer)).tolist() == [place for _, _, place in sorted(together)]


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_equal_hash_and_time_keep_their_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    hashes, times = random.integers(-2, 2, 50), random.integers(0, 5, 50)
    expected = sorted(range(50), key=lambda place: (hashes[place], times[place], place))
    assert order_of(hashes, times).tolist() == expected


def test_ties_are_told_apart_by_all_columns_nulls_first() -> None:
    table = pa.table({"a": ["y", "x", "x", "z"], "b": [1, 2, None, 0]})
    same = np.array([False, True, True, False])
    assert by_contents(table, np.arange(4), same, ["a", "b"]).tolist() == [2, 1, 0, 3]


def test_null_equals_nothing_and_no_number_equals_no_number() -> None:
    ones, others = pa.array([1.0, None, float("nan"), -0.0]), pa.array([1.0, None, float("nan"), 0.0])
    equal = same_keys([ones], [others])
    assert equal is not None and equal.tolist() == [True, False, True, True]
    valid = without_null([ones, pa.array([None, 1, 1, 1])])
    assert valid is not None and valid.tolist() == [False, False, True, True]
    assert without_null([pa.array([1])]) is None
