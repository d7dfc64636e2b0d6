"""Expressions: what fails for some rows is computed for those alone where its value counts."""

from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.language import bind_expression

ROWS = pa.record_batch(
    {
        "i": pa.array([1, 2**31 - 1, None], pa.int32()),
        "s": ["%d", "%d %d", None],
        "l": pa.array([[1], [2], None], pa.list_(pa.int32())),
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CASE WHEN i < 5 THEN i + 1 END", [2, None, None]),
        ("if(i < 5, if(i < 3, i * i * 3, i + i), NULL)", [3, None, None]),
        ("i < 5 AND i + 1 = 2", [True, False, None]),
        ("i > 5 OR i + 1 = 2", [True, True, None]),
        ("coalesce(if(i > 5, 0, NULL), i + 1)", [2, 0, None]),
        ("if(i < 5, transform(l, x -> x + i), array(0))", [[2], [0], [0]]),
        ("decode(i, 1, format_string(s, 7), 'none')", ["7", "none", "none"]),
    ],
)
def test_a_branch_that_is_not_taken_does_not_fail(text: str, expected: list[object]) -> None:
    assert bind_expression(text, ROWS.schema).over(ROWS).to_pylist() == expected


def test_a_branch_that_is_taken_fails() -> None:
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        bind_expression("CASE WHEN i > 5 THEN i + 1 END", ROWS.schema).over(ROWS)
