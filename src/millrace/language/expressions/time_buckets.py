"""Monotone functions of the time: to group by one is to group by windows.

`bucket_of` knows them by their shape: date_trunc, date_format with the fields of a time in order, a date, a year, and
seconds divided by a whole number; each also of a time that is moved by a constant. `is_strict` knows the functions with
another value for each time: the time moved by a constant, or counted and multiplied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal as OneOf

import pyarrow as pa

from millrace.kernel.columns.date_formats import Field, postgres_parts, spark_parts
from millrace.kernel.columns.expressions import Call, Cast, Column, Expression, Literal
from millrace.kernel.elements import INTERVAL, MONTHS
from millrace.plan.nodes.aggregate_nodes import CalendarWindow, DividedWindow, Window

SECOND = 1_000_000
DAY = 86_400 * SECOND
_MONDAY = 4 * DAY
"""The first Monday after the epoch's beginning, where weeks begin."""
_UNITS = {
    "microsecond": 1, "millisecond": 1_000, "second": SECOND, "minute": 60 * SECOND, "hour": 3_600 * SECOND, "day": DAY,
}  # fmt: skip
_DIRECTIVES = ("%Y", "%m", "%d", "%H", "%M", "%S")
_TICKS = {"unix_timestamp": SECOND, "unix_seconds": SECOND, "unix_millis": 1_000, "unix_micros": 1}


@dataclass(frozen=True)
class TimeBucket:
    """The windows in which a monotone function has one value; `is_start` is true if that is the start of the window."""

    column: str
    window: Window | CalendarWindow | DividedWindow
    is_start: bool = False

    @property
    def length(self) -> int:
        """How long a window is, roughly for calendar units."""
        if isinstance(self.window, Window):
            return self.window.range
        if isinstance(self.window, DividedWindow):
            return self.window.tick * self.window.count
        return {"month": 28, "quarter": 90, "year": 365}[self.window.every] * DAY


def bucket_of(expression: Expression, times: Mapping[str, int]) -> TimeBucket | None:
    """The windows of a monotone function of one of the time columns; None for any other expression."""
    plain, shift = _unmoved(expression, times)
    found = _bucket_of(plain, times)
    if found is None or not shift:
        return found
    match found.window:
        case Window(origin=origin, slide=slide):
            return TimeBucket(found.column, replace(found.window, origin=(origin - shift) % slide))
        case DividedWindow():
            return TimeBucket(found.column, replace(found.window, origin=-shift))
    return None


def _unmoved(expression: Expression, times: Mapping[str, int]) -> tuple[Expression, int]:
    """An expression without the constant that is added to the time in it, and that constant in microseconds."""
    match expression:
        case Call("+", (Literal() as constant, inner)) if not isinstance(inner, Literal):
            return _unmoved(Call("+", (inner, constant)), times)
        case Call("+" | "-" as sign, (inner, Literal(value=int(value), type=kind))):
            tick = _tick(inner, kind, times)
            if tick is not None:
                return inner, (value if sign == "+" else -value) * tick
    moved = [_unmoved(each, times) for each in expression.children()]
    return expression.with_children([each for each, _ in moved]), sum(shift for _, shift in moved)


def _tick(moved: Expression, kind: pa.DataType, times: Mapping[str, int]) -> int | None:
    """The microseconds of one step of what is added to a time, or to a count of it."""
    if kind == INTERVAL:
        return 1 if isinstance(moved, Column) and moved.name in times else None
    ticks = ticks_of(_plain(moved), times)
    return None if ticks is None else ticks[1]


def is_strict(expression: Expression, times: Mapping[str, int]) -> bool:
    """True if an expression has another value for each time of one of the columns."""
    match expression:
        case Column(name) | Call("unix_micros", (Column(name),)):
            return name in times
        case Call("+" | "*" as sign, (Literal() as constant, inner)) if not isinstance(inner, Literal):
            return is_strict(Call(sign, (inner, constant)), times)
        case Call("+" | "-", (inner, Literal(value=int(), type=kind))):
            return kind != MONTHS and is_strict(inner, times)
        case Call("*", (inner, Literal(value=int(factor)))):
            return factor > 0 and is_strict(inner, times)
    return False


def _bucket_of(expression: Expression, times: Mapping[str, int]) -> TimeBucket | None:
    match expression:
        case Call("date_trunc", (Literal(value=unit), Column(name))) if name in times:
            return TimeBucket(name, _of_unit(str(unit)), is_start=True)
        case Call("date_format" | "to_char" as function, (Column(name), Literal(value=pattern))) if name in times:
            unit = _finest(spark_parts(pattern) if function == "date_format" else postgres_parts(pattern))
            return None if unit is None else TimeBucket(name, _of_unit(unit))
        case Call("year", (Column(name),)) if name in times:
            return TimeBucket(name, CalendarWindow("year"))
        case Cast(Column(name), kind) if name in times and pa.types.is_date(kind):
            return TimeBucket(name, _of_unit("day"))
        case Call("div", (counted, Literal(value=number))) if isinstance(number, int) and number > 0:
            tick = ticks_of(_plain(counted), times)
            return None if tick is None else TimeBucket(tick[0], DividedWindow(tick[1], number))
    ticks = ticks_of(expression, times)
    return None if ticks is None else TimeBucket(ticks[0], Window(ticks[1], ticks[1]))


def _of_unit(unit: str) -> Window | CalendarWindow:
    if unit == "week":
        return Window(7 * DAY, 7 * DAY, _MONDAY)
    if unit in _UNITS:
        return Window(_UNITS[unit], _UNITS[unit])
    every: dict[str, OneOf["month", "quarter", "year"]] = {"month": "month", "quarter": "quarter", "year": "year"}
    return CalendarWindow(every[unit])


def _finest(parts: Sequence[str | Field]) -> str | None:
    """The unit of the last field of a pattern that has the fields of a time in order, without a gap."""
    fields = [each for each in parts if isinstance(each, Field)]
    in_order = [each.directive for each in fields] == list(_DIRECTIVES[: len(fields)])
    return fields[-1].unit if fields and in_order else None


def ticks_of(expression: Expression, times: Mapping[str, int]) -> tuple[str, int] | None:
    """The time column that a whole number counts, and the microseconds of one step."""
    match expression:
        case Call("floor", (Call("/", (counted, Literal(value=number))),)):
            return _times(ticks_of(_plain(counted), times), number)
        case Call(function, (Column(name),)) if function in _TICKS and name in times:
            return name, _TICKS[function]
        case Cast(Column(name), kind) if name in times and kind == pa.int64():
            return name, SECOND
    return None


def _plain(expression: Expression) -> Expression:
    """A count without the cast that arithmetic may have put around it."""
    if isinstance(expression, Cast) and not isinstance(expression.argument, Column):
        return expression.argument
    return expression


def _times(ticks: tuple[str, int] | None, number: object) -> tuple[str, int] | None:
    whole = isinstance(number, int | float | Decimal) and not isinstance(number, bool) and float(number).is_integer()
    if ticks is None or not whole or not isinstance(number, int | float | Decimal) or number <= 0:
        return None
    return ticks[0], ticks[1] * int(number)
