"""Windows: which rows an aggregate brings together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["time", "rows"]
"""What a window counts in: microseconds, or sequence numbers."""


@dataclass(frozen=True)
class Window:
    """Windows `[start, start + range)` of the progressing attribute, start a multiple of `slide` from `origin` on.

    The attribute is a time since the epoch, or with unit rows a sequence number.
    """

    range: int
    slide: int
    origin: int = 0
    unit: Unit = "time"


@dataclass(frozen=True)
class CalendarWindow:
    """Windows of a calendar unit, which differ in length; UTC."""

    every: Literal["month", "quarter", "year"]


@dataclass(frozen=True)
class DividedWindow:
    """Windows of times with equal `ticks div count`, which rounds towards zero; a tick is some microseconds."""

    tick: int
    count: int


@dataclass(frozen=True)
class InstantWindow:
    """Rows of exactly equal time together; results have no bounds of their own, for the keys say which they are."""


@dataclass(frozen=True)
class SessionWindow:
    """Rows of a group that follow each other by less than `gap`; `window_end` is the last row's time + gap."""

    gap: int


@dataclass(frozen=True)
class TrailingWindow:
    """A result for each row: over the rows of its group at or before it, at most `range` back (None: all).

    Rows of equal time count for each other. With unit rows the range is in sequence numbers.
    """

    range: int | None
    unit: Unit = "time"


@dataclass(frozen=True)
class PartitionedRows:
    """The last `rows` rows of each group, counted as they entered: a result for each row, or for every `slide` rows.

    With a slide, window number i of a group holds its rows from i * slide up to i * slide + rows.
    """

    rows: int
    slide: int | None = None


@dataclass(frozen=True)
class PairWindow:
    """Joined rows of exactly equal times on both sides together; the two columns are keys of the aggregate too.

    A pair is complete when no row can come that is below both bounds of a joint punctuation (004 section 7).
    """

    first: str
    second: str


AnyWindow = (
    Window
    | CalendarWindow
    | DividedWindow
    | InstantWindow
    | PairWindow
    | SessionWindow
    | TrailingWindow
    | PartitionedRows
)
