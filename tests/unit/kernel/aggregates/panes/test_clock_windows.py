"""Windows by the clock of a zone, against Python's own zones."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.kernel.aggregates.panes.clock_windows import clock_windows
from millrace.kernel.aggregates.panes.window_geometry import FAR
from millrace.kernel.aggregates.panes.zone_clock import ZoneClock
from tests.reference_windows import first_shown, shown_micros

HOUR = 3_600_000_000
DAY = 24 * HOUR
ZONES = (
    "Europe/Berlin",
    "America/Havana",  # summer time begins and ends at midnight
    "America/St_Johns",  # it ended at a minute past midnight
    "America/Sao_Paulo",  # midnight did not exist
    "Asia/Beirut",
    "Australia/Lord_Howe",  # half an hour
    "Africa/Casablanca",  # another change for Ramadan
    "Asia/Kolkata",
)
SINCE, UNTIL = 473_385_600_000_000, 1_900_000_000_000_000
"""From 1985 to 2030."""


@given(st.sampled_from(ZONES), st.integers(SINCE // (HOUR // 4), UNTIL // (HOUR // 4)))
def test_a_time_of_the_clock_is_first_reached_when_python_says_so(zone: str, quarter: int) -> None:
    shown, clock = quarter * (HOUR // 4), ZoneClock(zone)
    (first,) = clock.instants(np.array([shown])).tolist()
    assert first == first_shown(shown, ZoneInfo(zone))
    before, at = clock.numbers(np.array([first - 1, first])).tolist()
    assert before < shown <= at


@given(st.sampled_from(ZONES), st.lists(st.integers(SINCE, UNTIL), min_size=1, max_size=8))
def test_what_a_clock_has_shown_never_goes_back(zone: str, times: list[int]) -> None:
    near = np.sort(np.array([time + more for time in times for more in range(0, 30 * HOUR, HOUR // 3)]))
    shown = ZoneClock(zone).numbers(near)
    assert (np.diff(shown) >= 0).all()
    # It is what the clock shows, or has shown up to a day before.
    now = np.array([shown_micros(int(time), ZoneInfo(zone)) for time in near])
    assert ((shown >= now) & (shown < now + 25 * HOUR)).all()
    assert [ZoneClock(zone).numbers(near[at : at + 1])[0] for at in range(len(near))] == shown.tolist()


@pytest.mark.parametrize("months", [False, True])
@given(
    zone=st.sampled_from(ZONES), time=st.integers(SINCE, UNTIL), slide=st.integers(1, 4), more=st.integers(0, 3),
    offset=st.integers(-30, 30),
)  # fmt: skip
def test_windows_hold_the_rows_between_their_bounds(
    months: bool, zone: str, time: int, slide: int, more: int, offset: int
) -> None:
    unit = 1 if months else 6 * HOUR
    origin = offset * HOUR if months else offset * HOUR % (slide * unit)
    windows = clock_windows((slide + more) * unit, slide * unit, origin, zone, months=months)
    times = np.array([time, time + 1, time + DAY])
    panes = windows.panes(times)
    first, last = windows.windows_of(panes)
    for place, row in enumerate(times.tolist()):
        held = [number for number in range(int(first[place]) - 2, int(last[place]) + 3) if _holds(windows, number, row)]
        counted = range(int(first[place]), int(last[place]) + 1)
        # A window whose hours the clock skips is empty.
        assert held == [number for number in counted if len(set(_bounds(windows, number))) == 2]
        assert windows.last_instants(panes[place : place + 1])[0] >= row
        end = _bounds(windows, int(last[place]))[1]
        assert windows.last_closed(end) >= int(last[place]) > windows.last_closed(end - 1)
        assert windows.usable(end) == end


@pytest.mark.parametrize("months", [False, True])
def test_bounds_beyond_all_rows_close_nothing_and_everything(months: bool) -> None:
    windows = clock_windows(1 if months else DAY, 1 if months else DAY, 0, "Europe/Berlin", months=months)
    pane = int(windows.panes(np.array([0]))[0])
    assert windows.last_closed(-FAR) < pane < windows.last_closed(FAR)
    assert windows.usable(FAR) == FAR
    assert windows.panes(np.array([], np.int64)).tolist() == []


def _bounds(windows: object, number: int) -> tuple[int, int]:
    starts, ends = windows.bounds(np.array([number]))  # type: ignore[attr-defined]
    return int(starts[0]), int(ends[0])


def _holds(windows: object, number: int, row: int) -> bool:
    start, end = _bounds(windows, number)
    return start <= row < end
