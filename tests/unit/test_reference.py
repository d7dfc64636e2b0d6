"""The comparison that the oracle's tests rest on tells rows apart."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reference import same
from tests.reference_aggregates import Between

Row = dict[str, Any]
ROWS: list[Row] = [{"k": "a", "n": 1, "mean": 0.1}, {"k": None, "n": 2, "mean": None}, {"k": "a", "n": 1, "mean": 7.5}]


def test_order_and_the_last_digits_make_no_difference() -> None:
    assert same(reversed(ROWS), [{**row, "mean": row["mean"] and row["mean"] * (1 + 1e-14)} for row in ROWS])


@pytest.mark.parametrize(
    "other",
    [
        ROWS[:2],
        [*ROWS, ROWS[0]],
        [ROWS[0], ROWS[0], ROWS[1]],
        [{**ROWS[0], "n": 2}, *ROWS[1:]],
        [{**ROWS[0], "mean": 0.1000001}, *ROWS[1:]],
        [{**ROWS[0], "mean": None}, *ROWS[1:]],
        [{"n": 1, "k": "a", "mean": 0.1}, *ROWS[1:]],
        [{"key": "a", "n": 1, "mean": 0.1}, *ROWS[1:]],
    ],
    ids=["fewer", "more", "another twice", "number", "fraction", "null", "order of columns", "name"],
)
def test_everything_else_makes_one(other: list[Row]) -> None:
    assert not same(other, ROWS)
    assert not same(ROWS, other)


def test_what_is_approximate_must_be_in_its_range() -> None:
    expected = [{"k": "a", "about": Between(9, 11)}, {"k": "b", "about": None}]
    assert same([{"k": "b", "about": None}, {"k": "a", "about": 10}], expected)
    assert not same([{"k": "b", "about": None}, {"k": "a", "about": 12}], expected)
    assert not same([{"k": "b", "about": None}, {"k": "a", "about": None}], expected)
    assert not same([{"k": "b", "about": 10}, {"k": "a", "about": 10}], expected)
