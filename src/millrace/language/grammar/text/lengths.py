"""How far, in the unit in which rows progress: a length of time, or a number."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from millrace.errors import Place, QueryError
from millrace.language.grammar.statements import Length, NumberOfRows
from millrace.language.grammar.text.intervals import microseconds


def length_of(interval: exp.Expr, place: Place | None) -> Length:
    """The length of an interval in an expression; refuses months, which have no fixed one."""
    if interval.args.get("unit") is not None:
        microseconds("1", "month", place)
    return Length(int(interval.this.name), place=place)


def measured(size: Length | NumberOfRows, unit: Literal["time", "rows", "number"], what: str) -> int:
    """The microseconds of a length, or a number where rows are counted or progress by one."""
    if isinstance(size, Length):
        if unit == "number":
            raise QueryError(
                f"{what} is a length of time, and the rows progress by a BIGINT, which has no unit",
                hint=f"Write a number: {what} 10.",
                place=size.place,
            )
        return size.micros
    if unit == "time":
        raise QueryError(
            f"{what} is a number without a unit, and the rows progress by time",
            hint=f"Write a length of time: {what} {size.number} SECONDS.",
            place=size.place,
        )
    return size.number
