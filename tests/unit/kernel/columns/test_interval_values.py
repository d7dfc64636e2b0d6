from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.kernel.columns.interval_values import interval_of_text, interval_text, plus_months
from millrace.kernel.elements import INTERVAL, MONTHS


@pytest.mark.parametrize("kind", [INTERVAL, MONTHS], ids=str)
@given(data=st.data())
def test_the_text_of_an_interval_stands_for_it(kind: pa.DataType, data: st.DataObject) -> None:
    numbers = st.integers(-(2**62), 2**62) if kind == INTERVAL else st.integers(-(2**31), 2**31)
    column = pa.array(data.draw(st.lists(st.none() | numbers, max_size=5)), pa.int64()).cast(kind)
    texts = interval_text(column)
    assert interval_of_text(texts, kind).equals(column)
    inside = pa.array([None if each is None else each.split("'")[1] for each in texts.to_pylist()], pa.string())
    assert interval_of_text(inside, kind).equals(column)


def test_text_that_is_no_interval_is_null() -> None:
    texts = pa.array(["", "1 24:00:00", "1 00:60:00", "x", "1-2", "INTERVAL '1-2' YEAR TO MONTH"])
    assert interval_of_text(texts, INTERVAL).null_count == len(texts)
    assert interval_of_text(pa.array(["1-12", "1 02:00:00"]), MONTHS).null_count == 2


@pytest.mark.parametrize(
    ("day", "months", "later"),
    [
        ("2024-01-31", 1, "2024-02-29"),
        ("2023-01-31", 1, "2023-02-28"),
        ("2024-02-29", -12, "2023-02-28"),
        ("1969-12-31", 2, "1970-02-28"),
        ("1970-03-31", -1, "1970-02-28"),
    ],
)
def test_a_month_later_is_the_same_day_or_the_last_one(day: str, months: int, later: str) -> None:
    column = pa.array([months, None], pa.int64()).cast(MONTHS)
    days = pa.array([dt.date.fromisoformat(day)] * 2)
    assert plus_months(days, column).to_pylist() == [dt.date.fromisoformat(later), None]
    times = pa.array([dt.datetime.fromisoformat(f"{day}T23:59:59.5+00:00")] * 2, pa.timestamp("us", "UTC"))
    assert plus_months(times, column).to_pylist() == [dt.datetime.fromisoformat(f"{later}T23:59:59.5+00:00"), None]
