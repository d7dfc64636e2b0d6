"""Functions of Python's over columns: called once for each distinct row of arguments, and as other functions are."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from millrace.kernel.columns.functions.distinct_arguments import by_distinct
from millrace.kernel.columns.functions.number_functions import attempted
from millrace.kernel.columns.scalar_functions import FUNCTIONS


def test_a_function_is_called_once_for_each_distinct_row() -> None:
    rows: list[Any] = []

    def joined(one: str, other: str) -> str:
        rows.append((one, other))
        return one + other

    kernel = by_distinct(pa.string())(joined)
    ones, others = pa.array(["a", "a", None, "b", "a"]), pa.array(["x", "x", "x", None, "y"])
    assert kernel(ones, others).to_pylist() == ["ax", "ax", None, None, "ay"]
    assert sorted(rows) == [("a", "x"), ("a", "y")]
    assert kernel(ones, pa.scalar("!")).to_pylist() == ["a!", "a!", None, "b!", "a!"]
    assert kernel(pa.chunked_array([["a"], ["b"]]), pa.scalar(None, pa.string())).to_pylist() == [None, None]
    assert kernel(pa.scalar("a"), pa.scalar("b")).as_py() == "ab"
    assert kernel(ones.slice(0, 0), others.slice(0, 0)).type == pa.string()


@pytest.mark.parametrize(
    ("function", "others"),
    [("substring", [2, 1]), ("lpad", [4, "x"]), ("replace", ["a", "b"]), ("rlike", ["^a"]), ("split", ["b"]),
     ("regexp_extract", ["(a)(b)?", 2]), ("regexp_replace", ["(a)", "<$1>"]), ("like", ["a%"]), ("trim", ["a"])],
)  # fmt: skip
def test_constants_and_columns_of_them_give_the_same(function: str, others: list[Any]) -> None:
    texts = pa.array(["abc", "", None, "cab", "aa", "äb"])
    of_constants = FUNCTIONS[function](texts, *(pa.scalar(each) for each in others))
    of_columns = FUNCTIONS[function](texts, *(pa.array([each] * len(texts)) for each in others))
    assert of_constants.to_pylist() == of_columns.to_pylist()
    alone = [FUNCTIONS[function](each, *(pa.scalar(other) for other in others)).as_py() for each in texts]
    assert of_constants.to_pylist() == alone


def test_rows_that_fail_are_null_and_no_others() -> None:
    numbers = pa.array([2**62, 1, None, -(2**63), 5, 2**62])
    found = attempted(FUNCTIONS["+"])(numbers, numbers)
    assert found.equals(pa.array([None, 2, None, None, 10, None], pa.int64()))
