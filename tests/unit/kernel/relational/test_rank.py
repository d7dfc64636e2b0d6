from __future__ import annotations

from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest

from millrace.kernel.elements import ARRIVED, END_OF_TIME, TIME, Batch, Element, Punctuation
from millrace.kernel.relational.rank import Rank
from tests.unit.kernel.check_operator import Script, check_operator, outputs, random_script

FUNCTIONS = ["row_number", "rank", "dense_rank"]


def rows_in(elements: list[Element]) -> list[dict[str, Any]]:
    return [row for each in elements if isinstance(each, Batch) for row in each.rows.to_pylist()]


def least_null(value: Any) -> tuple[bool, Any]:
    return (value is not None, value)


def expected_ranks(rows: list[dict[str, Any]], function: str, falling: bool, limit: int | None) -> list[str]:
    """Ranks of `n` among rows of equal time and `k`, row by row."""
    found = []
    among = lambda row: (row[TIME], least_null(row["k"]))  # noqa: E731
    for _, members in groupby(sorted(rows, key=among), among):
        ordered = sorted(members, key=lambda row: least_null(row["n"]), reverse=falling)
        values = [row["n"] for row in ordered]
        for place, row in enumerate(ordered):
            first = values.index(row["n"])
            rank = {"row_number": place, "rank": first, "dense_rank": len(set(values[:first]))}[function] + 1
            if limit is None or rank <= limit:
                found.append(repr({"k": row["k"], "n": row["n"], "place": rank, TIME: row[TIME]}))
    return sorted(found)


@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_are_ranked_within_their_time_and_partition(function: str, falling: bool, limit: int | None) -> None:
    for seed in range(3):
        script = _coarse(random_script(seed, ports=1, batches=30))
        operator = Rank(function, ("k",), (("n", falling),), "place", limit)
        given = [row for _, element in script.steps for row in rows_in([element])]
        assert sorted(map(repr, rows_in(outputs(operator, script)))) == expected_ranks(given, function, falling, limit)
        assert operator.held == 0


def _coarse(script: Script) -> Script:
    """Rows at few different times, so that many are ranked together; bounds to fit."""
    return Script(tuple((port, _rounded(element)) for port, element in script.steps))


def _rounded(element: Element) -> Element:
    if isinstance(element, Punctuation):
        return element if element.until == END_OF_TIME else Punctuation(element.until // 10)
    assert isinstance(element, Batch)
    return Batch(element.rows.set_column(2, TIME, pa.array(element.times // 10)))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_ranking_keeps_the_contract(function: str) -> None:
    make = lambda: Rank(function, ("k",), (("n", True),), "place", 3)  # noqa: E731
    check_operator(make, ports=1, scripts=lambda seed: _coarse(random_script(seed, ports=1)), seeds=4)


def test_other_columns_decide_between_equal_rows() -> None:
    numbered = []
    for names in (["b", None, "a"], ["a", "b", None]):
        operator = Rank("row_number", (), (("n", True),), "place")
        rows = pa.record_batch({"n": [1.0, 1.0, 1.0], "k": names, TIME: [0, 0, 0], ARRIVED: [5, 6, 7]})
        list(operator.on_batch(0, Batch(rows)))
        ranked, _ = operator.on_punctuation(Punctuation(1))
        assert isinstance(ranked, Batch)
        assert ranked.rows.schema.names == ["n", "k", "place", TIME, ARRIVED]
        numbered.append({row["k"]: row["place"] for row in ranked.rows.to_pylist()})
    assert numbered == [{None: 1, "a": 2, "b": 3}] * 2


def test_rows_wait_until_the_bound_is_past_their_time() -> None:
    operator = Rank("rank", (), (("n", False),), "place")
    list(operator.on_batch(0, Batch(pa.record_batch({"n": [3, 1], TIME: [-7, 2]}))))
    assert operator.wanted() == -6
    assert list(operator.on_punctuation(Punctuation(-7))) == [Punctuation(-7)]
    ranked, bound = operator.on_punctuation(Punctuation(2))
    assert isinstance(ranked, Batch) and ranked.rows.column("n").to_pylist() == [3]
    assert bound == Punctuation(2)
    assert operator.held == 1


def test_null_is_the_least_value_and_nan_the_greatest() -> None:
    operator = Rank("rank", (), (("n", True),), "place")
    rows = pa.record_batch({"n": pa.array([1.0, None, float("nan"), -1.0]), TIME: [0] * 4})
    list(operator.on_batch(0, Batch(rows)))
    ranked, _ = operator.on_punctuation(Punctuation(1))
    assert isinstance(ranked, Batch)
    assert [str(value) for value in ranked.rows.column("n").to_pylist()] == ["nan", "1.0", "-1.0", "None"]
