"""Which rows of a group stand together in which window, for every kind of window."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from millrace.plan.nodes.aggregate_nodes import (
    AnyWindow,
    CalendarWindow,
    ClockWindow,
    DividedWindow,
    InstantWindow,
    PairWindow,
    PartitionedRows,
    SessionWindow,
    TrailingWindow,
    Window,
)
from tests.reference_values import TIME, Row, micros, timestamp


@dataclass(frozen=True)
class Frame:
    """A window with a row in it: from `start` up to `end`, its result's own time, and its rows."""

    start: int | None
    end: int
    time: int
    rows: list[Row]


def frames(window: AnyWindow, rows: list[Row], counts: Callable[[Row], bool]) -> Iterator[Frame]:
    """The windows of one group's rows; a row that does not count is numbered all the same."""
    match window:
        case Window():
            yield from _fixed(window, rows)
        case ClockWindow():
            yield from _by_clock(window, rows)
        case CalendarWindow():
            yield from _calendar(window, rows)
        case DividedWindow():
            yield from _divided(window, rows)
        case InstantWindow():
            for time in sorted({row[TIME] for row in rows}):
                yield Frame(time, time + 1, time, [row for row in rows if row[TIME] == time])
        case PairWindow(first=first, second=second):
            for pair in {(row[first], row[second]) for row in rows}:
                time = max(map(micros, pair))
                yield Frame(None, time, time, [row for row in rows if (row[first], row[second]) == pair])
        case SessionWindow():
            yield from _sessions(window, rows)
        case TrailingWindow():
            yield from _trailing(window, rows)
        case PartitionedRows(slide=None):
            yield from _last_rows(window.rows, sorted(rows, key=lambda row: row[TIME]), counts)
        case PartitionedRows():
            yield from _numbered(window.rows, window.slide, sorted(rows, key=lambda row: row[TIME]), counts)


def _fixed(window: Window, rows: list[Row]) -> Iterator[Frame]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        for start in _starts(row[TIME], window):
            found[start].append(row)
    for start, members in found.items():
        yield Frame(start, start + window.range, start + window.range - 1, members)


def _starts(time: int, window: Window) -> Iterator[int]:
    """The starts of the windows that hold a time, from the last one back."""
    start = (time - window.origin) // window.slide * window.slide + window.origin
    while start + window.range > time:
        yield start
        start -= window.slide


def _by_clock(window: ClockWindow, rows: list[Row]) -> Iterator[Frame]:
    """Every window near a row is tried: it holds the row if the clock has reached its start, and not its end."""
    zone = ZoneInfo(window.zone)
    found: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in rows:
        shown = timestamp(row[TIME]).astimezone(zone)
        at = shown.year * 12 + shown.month - 1 if window.months else shown_micros(row[TIME], zone) - window.origin
        last = at // window.slide + 2
        for number in range(last - window.range // window.slide - 5, last + 1):
            start, end = number * window.slide, number * window.slide + window.range
            bounds = tuple(
                first_shown((_first_of(each) if window.months else each) + window.origin, zone) for each in (start, end)
            )
            if bounds[0] <= row[TIME] < bounds[1]:
                found[bounds[0], bounds[1]].append(row)
    for (start, end), members in found.items():
        yield Frame(start, end, end - 1, members)


def shown_micros(time: int, zone: ZoneInfo) -> int:
    """What the clock of a zone shows at a time."""
    return micros(timestamp(time).astimezone(zone).replace(tzinfo=dt.UTC))


def first_shown(shown: int, zone: ZoneInfo) -> int:
    """The first instant at which a clock has reached a time; clocks are set at whole quarters of an hour."""
    quarter = 900_000_000
    time = shown // quarter * quarter - 100 * quarter
    while shown_micros(time, zone) < shown:
        time += quarter
    exact = time - (shown_micros(time, zone) - shown)
    return exact if time - exact < quarter and shown_micros(exact, zone) == shown else time


def _calendar(window: CalendarWindow, rows: list[Row]) -> Iterator[Frame]:
    months = {"month": 1, "quarter": 3, "year": 12}[window.every]
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        day = timestamp(row[TIME])
        found[(day.year * 12 + day.month - 1) // months].append(row)
    for number, members in found.items():
        start, end = _first_of(number * months), _first_of((number + 1) * months)
        yield Frame(start, end, end - 1, members)


def _first_of(months: int) -> int:
    return micros(dt.datetime(months // 12, months % 12 + 1, 1, tzinfo=dt.UTC))


def _divided(window: DividedWindow, rows: list[Row]) -> Iterator[Frame]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        ticks = row[TIME] // window.tick
        found[abs(ticks) // window.count * (1 if ticks > 0 else -1)].append(row)
    for number, members in found.items():
        start, end = (
            _first_tick(number, window.count) * window.tick,
            _first_tick(number + 1, window.count) * window.tick,
        )
        yield Frame(start, end, end - 1, members)


def _first_tick(number: int, count: int) -> int:
    """The least tick whose quotient is a number: rounding towards zero, more than the count of them have 0."""
    return number * count if number > 0 else (number - 1) * count + 1


def _sessions(window: SessionWindow, rows: list[Row]) -> Iterator[Frame]:
    session: list[Row] = []
    gap = window.gap
    for row in sorted(rows, key=lambda row: row[TIME]):
        apart = row[TIME] - session[-1][TIME] if session else 0
        if apart > gap or (apart == gap and not window.merges_at_gap):
            yield _session(session, gap)
            session = []
        session.append(row)
    if session:
        yield _session(session, gap)


def _session(rows: list[Row], gap: int) -> Frame:
    end = rows[-1][TIME] + gap
    return Frame(rows[0][TIME], end, end - 1, rows)


def _trailing(window: TrailingWindow, rows: list[Row]) -> Iterator[Frame]:
    for row in rows:
        time = row[TIME]
        start = None if window.range is None else time - window.range
        members = [each for each in rows if each[TIME] <= time and (start is None or each[TIME] >= start)]
        yield Frame(start, time + 1 if window.unit == "rows" else time, time, members)


def _last_rows(length: int, rows: list[Row], counts: Callable[[Row], bool]) -> Iterator[Frame]:
    for number, row in enumerate(rows):
        start = number - length + 1
        if counts(row):
            members = [each for each in rows[max(start, 0) : number + 1] if counts(each)]
            yield Frame(start, number + 1, row[TIME], members)


def _numbered(length: int, slide: int, rows: list[Row], counts: Callable[[Row], bool]) -> Iterator[Frame]:
    start = -length // slide * slide
    while start < len(rows):
        held = rows[max(start, 0) : max(start + length, 0)]
        if members := [row for row in held if counts(row)]:
            completed = rows[min(start + length, len(rows)) - 1]
            yield Frame(start, start + length, completed[TIME], members)
        start += slide
