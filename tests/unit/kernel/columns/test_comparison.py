from __future__ import annotations

import math
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.kernel.columns.comparison import in_order, ordinals

KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.int16(), st.integers(-9, 9)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text(st.characters(max_codepoint=255), max_size=3)),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.dates(date(1960, 1, 1), date(2030, 1, 1))),
    (pa.timestamp("us", "UTC"), st.integers(-(2**40), 2**40)),
    (pa.list_(pa.int32()), st.lists(st.none() | st.integers(-1, 1), max_size=5)),
    (
        pa.struct([("a", pa.string()), ("b", pa.list_(pa.list_(pa.int8())))]),
        st.tuples(
            st.none() | st.sampled_from(["", "x"]),
            st.none() | st.lists(st.none() | st.lists(st.integers(0, 1), max_size=2), max_size=3),
        ).map(lambda pair: {"a": pair[0], "b": pair[1]}),
    ),
]


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=lambda each: str(each))
@given(data=st.data())
def test_ordinals_compare_as_the_values_do(kind: pa.DataType, values: Any, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.none() | values, max_size=8))
    found = ordinals(pa.array(drawn, kind)).tolist()
    for left, first in zip(drawn, found, strict=True):
        for right, second in zip(drawn, found, strict=True):
            assert (first < second) == less(left, right)
            assert (first == second) == (left == right)


def less(left: Any, right: Any) -> bool:
    return _key(left) < _key(right)


def _key(value: Any) -> Any:
    """What a value is compared by: null is less than all, nested values by their parts."""
    if isinstance(value, dict | list):
        return (True, [_key(each) for each in (value.values() if isinstance(value, dict) else value)])
    return (value is not None, 0 if value is None else value)


@pytest.mark.parametrize("hole", [[], [None]])
def test_nan_is_greater_than_all_numbers_and_zeros_are_equal(hole: list[None]) -> None:
    found = ordinals(pa.array([math.nan, math.inf, 0.0, -0.0, -math.nan, *hole], pa.float64())).tolist()
    assert found[0] == found[4] > found[1] > found[2] == found[3]


FRACTIONS = [math.nan, -math.inf, -0.0, 0.0, 1.5, math.inf, None]


@pytest.mark.parametrize("compare", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_nan_equals_nan_and_is_above_all_numbers(compare: str, kind: pa.DataType) -> None:
    plain = getattr(pc, compare)
    pairs = [(one, other) for one in FRACTIONS for other in FRACTIONS]
    # With infinity and one more in its place the order is that of numbers.
    finite = {math.inf: 1e30, -math.inf: -1e30}
    ranks = [[2e30 if each != each else each and finite.get(each, each) for each in pair] for pair in pairs]
    expected = plain(*(pa.array(each, pa.float64()) for each in zip(*ranks, strict=True))).to_pylist()
    ones, others = (pa.array([None, *each], kind).slice(1) for each in zip(*pairs, strict=True))
    assert in_order(plain)(ones, others).to_pylist() == expected
    alone = [in_order(plain)(pa.array([one], kind), pa.scalar(other, kind))[0].as_py() for one, other in pairs]
    assert alone == expected
