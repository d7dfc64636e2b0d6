"""Dates and times moved, counted and made of parts, over whole columns of days and microseconds.

Rules:
- Times are UTC. A day that a month does not have becomes its last one; a date that does not exist is null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.casts import Value, cast, where
from millrace.kernel.columns.functions.distinct_arguments import Kernel, by_distinct
from millrace.kernel.columns.nested.nested_columns import over_columns
from millrace.kernel.elements import TIMESTAMP

SECOND = 1_000_000
DAY = 86_400 * SECOND
_DATE = pa.date32()
UNITS = {
    "microsecond": 1, "millisecond": 1_000, "second": SECOND, "minute": 60 * SECOND, "hour": 3_600 * SECOND,
    "day": DAY, "week": 7 * DAY,
}  # fmt: skip
"""The units of a fixed length, in microseconds."""
MONTHS = {"month": 1, "quarter": 3, "year": 12}
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MOST_MONTHS = 292_000 * 12
"""So many have room in 64 bits of microseconds."""
_SECONDS_OF_MONTH = 31 * 86_400
_TRUNCATED = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"), "quarter": "quarter", "week": "week",
    **dict.fromkeys(("month", "mm", "mon"), "month"),
}  # fmt: skip


def days_of(dates: pa.Array) -> Any:
    """The days of dates since 1970."""
    return np.asarray(pc.cast(dates, pa.int32()).fill_null(0)).astype(np.int64)


def micros_of(times: pa.Array) -> Any:
    """The microseconds of times since 1970."""
    return np.asarray(pc.cast(times, pa.int64()).fill_null(0))


def _nulls(*columns: pa.Array) -> Any:
    return np.logical_or.reduce([np.asarray(each.is_null()) for each in columns])


def _dates(days: Any, nulls: Any) -> pa.Array:
    return pc.cast(pa.array(days.astype(np.int32), mask=nulls), _DATE)


def times_of(micros: Any, nulls: Any) -> pa.Array:
    """Times of microseconds since 1970."""
    return pc.cast(pa.array(micros.astype(np.int64), mask=nulls), TIMESTAMP)


def _month_and_day(days: Any) -> tuple[Any, Any]:
    """The months since January 1970, and the days of the month, from 0."""
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    return months.astype(np.int64), days - months.astype("datetime64[D]").astype(np.int64)


def _first_days(months: Any) -> Any:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _checked(size: Any, room: float) -> None:
    """Raise where a count leads further than any time is: it would begin again at the other end."""
    if np.any(np.abs(size) >= room):
        raise pa.ArrowInvalid("overflow of a time")


def _months_later(days: Any, count: Any) -> Any:
    _checked(count, _MOST_MONTHS)
    months, day = _month_and_day(days)
    first = _first_days(months + count)
    return first + np.minimum(day, _first_days(months + count + 1) - first - 1)


def _moved(sign: int) -> Kernel:
    @over_columns
    def compute(dates: pa.Array, count: pa.Array) -> pa.Array:
        return _dates(days_of(dates) + sign * np.asarray(count.fill_null(0)).astype(np.int64), _nulls(dates, count))

    return compute


@over_columns
def _add_months(dates: pa.Array, count: pa.Array) -> pa.Array:
    nulls = _nulls(dates, count)
    months = np.where(nulls, 0, np.asarray(count.fill_null(0)).astype(np.int64))
    return _dates(_months_later(days_of(dates), months), nulls)


@over_columns
def _last_day(dates: pa.Array) -> pa.Array:
    months, _ = _month_and_day(days_of(dates))
    return _dates(_first_days(months + 1) - 1, _nulls(dates))


def _weekday(text: str) -> int | None:
    lower = text.lower()
    known = [place for place, name in enumerate(_DAY_NAMES) if lower in (name, name[:3], name[:2])]
    return known[0] if known else None


@over_columns
def _next_day(dates: pa.Array, weekday: pa.Array) -> pa.Array:
    wanted = by_distinct(pa.int64())(_weekday)(weekday)
    days = days_of(dates)
    # The first day of 1970 was a Thursday.
    ahead = (np.asarray(wanted.fill_null(0)) - (days + 3) % 7 - 1) % 7 + 1
    return _dates(days + ahead, _nulls(dates, wanted))


@over_columns
def _date_diff(end: pa.Array, start: pa.Array) -> pa.Array:
    return pa.array((days_of(end) - days_of(start)).astype(np.int32), mask=_nulls(end, start))


def _months_between(one: Value, other: Value, rounded: Value | None = None) -> Value:
    nearest = rounded is None or rounded.as_py()

    @over_columns
    def compute(first: pa.Array, second: pa.Array) -> pa.Array:
        parts = [_parts_of(each) for each in (first, second)]
        (months, day, last, seconds), (others, other_day, other_last, other_seconds) = parts
        whole = (months - others).astype(np.float64)
        apart = (day - other_day) * 86_400 + seconds - other_seconds
        found = np.where((day == other_day) | (last & other_last), whole, whole + apart / _SECONDS_OF_MONTH)
        return pa.array(np.floor(found * 1e8 + 0.5) / 1e8 if nearest else found, mask=_nulls(first, second))

    return compute(one, other)


def _parts_of(times: pa.Array) -> tuple[Any, Any, Any, Any]:
    """Months, days, whether the day is the last of its month, and the seconds of the day."""
    days, micros = np.divmod(micros_of(times), DAY)
    months, day = _month_and_day(days)
    return months, day, _first_days(months + 1) - 1 == days, micros // SECOND


def _later(unit: Value, count: Value, time: Value) -> Value:
    """Times so many units later."""
    name = unit.as_py()

    @over_columns
    def compute(number: pa.Array, times: pa.Array) -> pa.Array:
        steps, micros = np.asarray(number.fill_null(0)).astype(np.int64), micros_of(times)
        steps = np.where(_nulls(number, times), 0, steps)
        _checked(steps.astype(np.float64) * UNITS.get(name, MONTHS.get(name, 1)), 2.0**63 - 2.0**60)
        if name in UNITS:
            return times_of(micros + steps * UNITS[name], _nulls(number, times))
        days, rest = np.divmod(micros, DAY)
        return times_of(_months_later(days, steps * MONTHS[name]) * DAY + rest, _nulls(number, times))

    return compute(count, time)


def _units_between(unit: Value, start: Value, end: Value) -> Value:
    """How many whole units lie between times, cut off towards zero."""
    name = unit.as_py()

    @over_columns
    def compute(first: pa.Array, second: pa.Array) -> pa.Array:
        one, other = micros_of(first), micros_of(second)
        if name in UNITS:
            found = np.sign(other - one) * (np.abs(other - one) // UNITS[name])
        else:
            found = _whole_months(one, other)
            found = np.sign(found) * (np.abs(found) // MONTHS[name])
        return pa.array(found, mask=_nulls(first, second))

    return compute(start, end)


def _whole_months(one: Any, other: Any) -> Any:
    """The whole months from one time to another, as Java counts them: of whole days, of months of 32 days."""
    (days, rest), (others, other_rest) = np.divmod(one, DAY), np.divmod(other, DAY)
    others = others - ((others > days) & (other_rest < rest)) + ((others < days) & (other_rest > rest))
    (months, day), (other_months, other_day) = _month_and_day(days), _month_and_day(others)
    apart = (other_months - months) * 32 + other_day - day
    return np.sign(apart) * (np.abs(apart) // 32)


@over_columns
def _make_date(year: pa.Array, month: pa.Array, day: pa.Array) -> pa.Array:
    days, valid = _days_of_parts(year, month, day)
    return _dates(days, _nulls(year, month, day) | ~valid)


def _days_of_parts(year: pa.Array, month: pa.Array, day: pa.Array) -> tuple[Any, Any]:
    years, months, days = (np.asarray(each.fill_null(1)).astype(np.int64) for each in (year, month, day))
    first = _first_days((years - 1970) * 12 + months - 1)
    room = _first_days((years - 1970) * 12 + months) - first
    valid = (months >= 1) & (months <= 12) & (days >= 1) & (days <= room) & (years >= 1) & (years <= 9999)
    return first + days - 1, valid


@over_columns
def make_time(
    year: pa.Array, month: pa.Array, day: pa.Array, hour: pa.Array, minute: pa.Array, second: pa.Array
) -> pa.Array:
    """Times of their parts, the second with its fraction; null where there is no such time. 60 seconds are a minute."""
    days, valid = _days_of_parts(year, month, day)
    hours, minutes = (np.asarray(each.fill_null(0)).astype(np.int64) for each in (hour, minute))
    micros = np.asarray(pc.cast(pc.multiply(pc.cast(second, pa.decimal128(16, 6)), SECOND), pa.int64()).fill_null(0))
    inside = (hours >= 0) & (hours < 24) & (minutes >= 0) & (minutes < 60) & (micros >= 0) & (micros <= 60 * SECOND)
    found = days * DAY + hours * UNITS["hour"] + minutes * UNITS["minute"] + micros
    return times_of(found, _nulls(year, month, day, hour, minute, second) | ~(valid & inside))


def _trunc(date: Value, unit: Value) -> Value:
    known = _TRUNCATED.get((unit.as_py() or "").lower())
    return where(False, date) if known is None else cast(pc.floor_temporal(cast(date, TIMESTAMP), unit=known), _DATE)


def _seconds_of_minute(time: Value) -> Value:
    """The seconds of the minute with their fraction."""
    micros = pc.cast(pc.cast(time, TIMESTAMP), pa.int64())
    into = over_columns(lambda column: pa.array(np.asarray(column.fill_null(0)) % UNITS["minute"], mask=_nulls(column)))
    return pc.multiply(pc.cast(into(micros), pa.decimal128(19, 0)), pa.scalar(Decimal("0.000001")))


def _named(part: Callable[[Value], Value], names: Sequence[str]) -> Kernel:
    """The first three letters of the name of a field, which is counted from 0."""

    @over_columns
    def compute(times: pa.Array) -> pa.Array:
        return pa.array([name[:3].title() for name in names], pa.string()).take(part(times))

    return compute


CALENDAR_FUNCTIONS: dict[str, Kernel] = {
    "date_add": _moved(1),
    "date_sub": _moved(-1),
    "date_diff": _date_diff,
    "add_months": _add_months,
    "last_day": _last_day,
    "next_day": _next_day,
    "months_between": _months_between,
    "timestampadd": _later,
    "timestampdiff": _units_between,
    "make_date": _make_date,
    "trunc": _trunc,
    "second_fraction": lambda time: pc.cast(_seconds_of_minute(time), pa.decimal128(8, 6)),
    "year_of_week": lambda time: pc.cast(pc.iso_year(cast(time, TIMESTAMP)), pa.int32()),
    "dayname": _named(pc.day_of_week, _DAY_NAMES),
    "monthname": _named(lambda times: pc.subtract(pc.month(times), 1), MONTH_NAMES),
    "unix_date": lambda date: pc.cast(date, pa.int32()),
    "date_from_unix_date": lambda days: pc.cast(days, _DATE),
}
