from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from millrace.kernel.columns.integers import dense, distinct, order_within, stable_order

CODES = st.lists(st.integers(0, 5), max_size=20)


@given(codes=CODES)
def test_orders_are_those_of_a_plain_sort(codes: list[int]) -> None:
    array = np.array(codes, np.int64)
    assert stable_order(array).tolist() == sorted(range(len(codes)), key=codes.__getitem__)
    assert distinct(array).tolist() == sorted(set(codes))


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([-1.5, 0.0, 2.0, math.inf, math.nan])), max_size=20))
def test_the_order_within_codes_is_by_value_with_nan_last(rows: list[tuple[int, float]]) -> None:
    codes, values = np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.float64)
    found = [rows[place] for place in order_within(codes, values)]
    assert repr(found) == repr(sorted(rows, key=lambda row: (row[0], math.isnan(row[1]), row[1])))


@given(values=st.lists(st.sampled_from([-(2**62), -3, 0, 1, 7, 2**62]), max_size=20), ordered=st.booleans())
def test_values_are_numbered_in_their_order_whether_they_stand_in_it_or_not(values: list[int], ordered: bool) -> None:
    values = sorted(values) if ordered else values
    found, codes = dense(np.array(values, np.int64))
    assert found.tolist() == sorted(set(values))
    assert [int(found[code]) for code in codes] == values
