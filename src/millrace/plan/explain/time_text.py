"""Lengths of time as SQL writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from millrace.kernel.elements import END_OF_TIME, NO_BOUND

_UNITS = (
    (86_400_000_000, "DAY"),
    (3_600_000_000, "HOUR"),
    (60_000_000, "MINUTE"),
    (1_000_000, "SECOND"),
    (1_000, "MILLISECOND"),
    (1, "MICROSECOND"),
)


def interval_text(length: int, unit: Literal["time", "rows", "number"] = "time") -> str:
    """An interval in the largest unit that keeps it whole; numbers as they are.

    >>> interval_text(90_000_000), interval_text(60_000_000), interval_text(0), interval_text(10, "number")
    ('90 SECONDS', '1 MINUTE', '0 SECONDS', '10')
    """
    if unit != "time":
        return str(length)
    if length == 0:
        return "0 SECONDS"
    micros, name = next(each for each in _UNITS if length % each[0] == 0)
    count = length // micros
    return f"{count} {name}" if count == 1 else f"{count} {name}S"


def clock_text(micros: int, *, exact: bool = False, unit: Literal["time", "rows", "number"] = "time") -> str:
    """A time in microseconds as text, to the second or exactly; a dash before the first. Numbers as they are."""
    if micros == NO_BOUND:
        return "-"
    if micros == END_OF_TIME:
        return "end"
    if unit != "time":
        return str(micros)
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    except OverflowError:
        return f"{micros} us"
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f" if exact and micros % 1_000_000 else "%Y-%m-%d %H:%M:%S")
