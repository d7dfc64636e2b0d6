"""Lengths of time: words or timedeltas in Python, words in SQL."""

from __future__ import annotations

from datetime import timedelta

from millrace.errors import QueryError, RequestError
from millrace.language import parse_interval

Length = str | timedelta
"""Words such as "5 seconds", or a timedelta."""
Extent = Length | int
"""A length of time, or a number where rows progress by a BIGINT."""

_UNITS = {
    "days": timedelta(days=1),
    "hours": timedelta(hours=1),
    "minutes": timedelta(minutes=1),
    "seconds": timedelta(seconds=1),
    "milliseconds": timedelta(milliseconds=1),
    "microseconds": timedelta(microseconds=1),
}


def words_of(given: timedelta) -> str:
    """A timedelta in words.

    >>> words_of(timedelta(minutes=90)), words_of(timedelta(seconds=1.5)), words_of(timedelta(0))
    ('90 minutes', '1500 milliseconds', '0 seconds')
    """
    if not given:
        return "0 seconds"
    return next(f"{given // each} {name}" for name, each in _UNITS.items() if not given % each)


def extent(name: str, given: object) -> str:
    """A length of time in words, or a number where rows progress by a BIGINT.

    >>> extent("range", "5 seconds"), extent("range", 10)
    ('5 seconds', '10')
    """
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else length(name, given)


def interval(name: str, given: object) -> str:
    """The same, where a length of time stands after INTERVAL.

    >>> interval("disorder", "5 seconds"), interval("disorder", 10)
    ('INTERVAL 5 seconds', '10')
    """
    return extent(name, given) if isinstance(given, int) else f"INTERVAL {length(name, given)}"


def length(name: str, given: object) -> str:
    """A length of time in words; `name` is the argument or the option that it is given for.

    >>> length("within", "5 seconds"), length("within", timedelta(seconds=3))
    ('5 seconds', '3 seconds')
    """
    if isinstance(given, timedelta):
        return words_of(given)
    try:
        if isinstance(given, str):
            parse_interval(given)
            return given
    except QueryError:
        pass
    other = "" if name.startswith("--") else ", or give a timedelta"
    raise RequestError(f'{name} is a length of time, not "{given}"', hint=f"Write {name}='5 seconds'{other}.")
