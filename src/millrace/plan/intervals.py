"""Lengths of time as SQL writes them."""

from __future__ import annotations

_UNITS = (
    (86_400_000_000, "DAY"),
    (3_600_000_000, "HOUR"),
    (60_000_000, "MINUTE"),
    (1_000_000, "SECOND"),
    (1_000, "MILLISECOND"),
    (1, "MICROSECOND"),
)


def interval_text(length: int) -> str:
    """An interval in the largest unit that keeps it whole.

    >>> interval_text(90_000_000), interval_text(60_000_000), interval_text(0)
    ('90 SECONDS', '1 MINUTE', '0 SECONDS')
    """
    if length == 0:
        return "0 SECONDS"
    unit, name = next(each for each in _UNITS if length % each[0] == 0)
    count = length // unit
    return f"{count} {name}" if count == 1 else f"{count} {name}S"
