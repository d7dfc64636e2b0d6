"""What every statement is made of: names, lengths and options, each with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millrace.errors import Place


@dataclass(frozen=True)
class Placed:
    """A part of a statement, and where it stands: None for a statement that was built without a text."""

    place: Place | None = field(default=None, kw_only=True, repr=False, compare=False)


@dataclass(frozen=True)
class Name(Placed):
    """A word."""

    text: str


@dataclass(frozen=True)
class Length(Placed):
    """An interval in microseconds."""

    micros: int


@dataclass(frozen=True)
class MonthLength(Placed):
    """A number of months, which has no fixed length."""

    months: int


@dataclass(frozen=True)
class NumberOfRows(Placed):
    """A number of rows, or a length where rows progress by a number: it has no unit."""

    number: int


@dataclass(frozen=True)
class Setting:
    """`key value` of OPTIONS or WITH: the key in lower case, the value as text."""

    key: Name
    value: Name


Options = Mapping[str, Setting]
"""Settings by key."""
