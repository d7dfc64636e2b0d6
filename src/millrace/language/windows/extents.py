"""How long a window may be, and how many rows it may have."""

from __future__ import annotations

from millrace.errors import QueryError
from millrace.language.grammar.statements import Length, MonthLength, NumberOfRows
from millrace.language.grammar.text.intervals import microseconds
from millrace.language.grammar.text.lengths import measured
from millrace.plan.nodes.aggregate_nodes import Unit

_MOST_ROWS = 2**53
LONGEST = 1_000_000 * 86_400_000_000
"""A million days: bounds of windows stay far inside 64 bits."""


def extent(size: Length | MonthLength | NumberOfRows | None, what: str, unit: Unit, *, least: int = 1) -> int:
    """A length or a number that a window can have."""
    assert size is not None
    if isinstance(size, MonthLength):
        return microseconds("1", "month", size.place)
    number = measured(size, unit, what)
    if number < least:
        example = "1 MINUTE" if isinstance(size, Length) else "100"
        raise QueryError(f"{what} is not positive", hint=f"Write a length such as {example}.", place=size.place)
    if isinstance(size, Length) and number > LONGEST:
        raise QueryError(f"{what} is too long", hint="It is at most 1,000,000 days.", place=size.place)
    if isinstance(size, NumberOfRows) and number > _MOST_ROWS:
        raise QueryError(f"{what} is too large", hint=f"It is at most {_MOST_ROWS:,}.", place=size.place)
    return number
