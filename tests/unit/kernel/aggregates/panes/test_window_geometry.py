from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.kernel.aggregates.panes.window_geometry import CalendarWindows, Instants, WindowGeometry
from millrace.kernel.elements import END_OF_TIME, NO_BOUND

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
times = st.integers(-(10**6), 10**6)
lengths = st.integers(1, 60)


def windows_with(time: int, length: int, slide: int, origin: int) -> list[int]:
    """The numbers of the windows that hold a time, one by one."""
    near = (time - origin) // slide
    spread = length // slide + 2
    return [
        number
        for number in range(near - spread, near + spread)
        if origin + number * slide <= time < origin + number * slide + length
    ]


@given(time=times, length=lengths, slide=lengths, origin=st.integers(-100, 100))
def test_a_row_is_in_the_windows_of_its_pane(time: int, length: int, slide: int, origin: int) -> None:
    frames = WindowGeometry(length, slide, origin)
    pane = frames.panes(np.array([time]))
    expected = windows_with(time, length, slide, origin)
    covered = frames.covered(pane)
    assert (covered is None or bool(covered[0])) == bool(expected)
    if not expected:
        return
    lowest, highest = frames.windows_of(pane)
    assert list(range(lowest[0], highest[0] + 1)) == expected
    assert frames.first_window(int(pane[0])) == expected[0]
    assert len(expected) <= frames.overlap
    for window in expected:
        first, last = frames.panes_of(window)
        assert first <= pane[0] <= last
        assert frames.end(window) == origin + window * slide + length
        starts, ends = frames.bounds(np.array([window]))
        assert (starts[0], ends[0]) == (origin + window * slide, origin + window * slide + length)


@given(time=times, length=lengths, slide=lengths, origin=st.integers(-100, 100))
def test_the_last_instant_of_a_pane_is_in_it_and_the_next_is_not(
    time: int, length: int, slide: int, origin: int
) -> None:
    frames = WindowGeometry(length, slide, origin)
    panes = frames.panes(np.array([time]))
    (last,) = frames.last_instants(panes).tolist()
    assert last >= time
    assert frames.panes(np.array([last, last + 1])).tolist() == [panes[0], panes[0] + 1]


@given(until=times, length=lengths, slide=lengths, origin=st.integers(-100, 100))
def test_a_bound_closes_the_windows_that_end_at_or_before_it(until: int, length: int, slide: int, origin: int) -> None:
    frames = WindowGeometry(length, slide, origin)
    last = frames.last_closed(until)
    assert frames.end(last) <= until < frames.end(last + 1)
    assert frames.closed_by(np.array([until])).tolist() == [last]
    assert frames.usable(until) == frames.end(last)


@pytest.mark.parametrize(
    "frames",
    [WindowGeometry(10, 3, 7), WindowGeometry(1, 1), WindowGeometry(10**15, 10**6, -5), Instants(), CalendarWindows(1)],
)
def test_bounds_without_end_are_no_trouble(frames: WindowGeometry) -> None:
    assert frames.usable(NO_BOUND) == NO_BOUND
    assert frames.usable(END_OF_TIME) == END_OF_TIME
    assert frames.usable(NO_BOUND + 1) <= NO_BOUND + 1
    assert frames.usable(END_OF_TIME - 1) <= END_OF_TIME - 1
    row = frames.panes(np.array([0]))
    assert frames.last_closed(NO_BOUND) < frames.first_window(int(row[0]))
    assert frames.last_closed(END_OF_TIME) >= frames.windows_of(row)[1][0]
    for until in (NO_BOUND, END_OF_TIME):
        last = frames.last_closed(until)
        assert frames.closed_by(np.array([until])).tolist() == [last]
        first, _ = frames.panes_of(last + 1)
        assert -(2**63) <= first - 1 < 2**63


def test_weeks_begin_on_the_monday_that_is_their_origin() -> None:
    day = 86_400_000_000
    weeks = WindowGeometry(7 * day, 7 * day, 4 * day)
    sunday = -4 * day  # 1969-12-28
    panes = weeks.panes(np.array([sunday, sunday + day]))
    assert panes.tolist() == [-2, -1]
    starts, _ = weeks.bounds(panes)
    assert [(EPOCH + timedelta(microseconds=int(start))).isoweekday() for start in starts] == [1, 1]


@given(
    moment=st.datetimes(datetime(1600, 1, 1), datetime(2400, 1, 1)),
    months=st.sampled_from([1, 3, 12]),
)
def test_a_row_is_in_its_calendar_unit(moment: datetime, months: int) -> None:
    frames = CalendarWindows(months)
    time = (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    month = (moment.month - 1) // months * months
    following = moment.year * 12 + month + months
    start = datetime(moment.year, month + 1, 1, tzinfo=UTC)
    end = datetime(following // 12, following % 12 + 1, 1, tzinfo=UTC)
    panes = frames.panes(np.array([time]))
    (begins,), (ends,) = (each.tolist() for each in frames.bounds(panes))
    assert (EPOCH + timedelta(microseconds=begins), EPOCH + timedelta(microseconds=ends)) == (start, end)
    assert frames.last_instants(panes).tolist() == [ends - 1]
    assert frames.last_closed(ends) == panes[0] == frames.last_closed(ends - 1) + 1
    assert frames.usable(time) == begins
    assert frames.end(int(panes[0])) == ends
