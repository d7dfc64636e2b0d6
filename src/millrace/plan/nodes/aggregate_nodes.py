"""Window aggregates: which rows a window brings together, and what is computed of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pyarrow as pa

from millrace.kernel.aggregates.functions import result_type
from millrace.kernel.aggregates.functions.function import Parameter
from millrace.kernel.aggregates.functions.user_aggregates import UserAggregate
from millrace.kernel.aggregates.panes.clock_windows import clock_windows
from millrace.kernel.aggregates.panes.window_geometry import CalendarWindows, DividedWindows, Instants, WindowGeometry
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.elements import TIMESTAMP
from millrace.plan.nodes.node import Keys, OneInput, columns_of

WINDOW_START = "window_start"
WINDOW_END = "window_end"

Unit = Literal["time", "rows", "number"]
"""What a window counts in: microseconds, sequence numbers, or the numbers by which rows progress."""


class AnyWindow:
    """Which rows an aggregate brings together."""

    sql_name: ClassVar[str] = "a window of ROWS"
    """What a refusal calls it."""
    is_same_for_groups: ClassVar[bool] = False
    """True if windows do not depend on the rows of a group, so that rows can be reduced to panes."""
    has_one_result: ClassVar[bool] = True
    """True if a window gives one result per group; if not, results belong to rows."""

    @property
    def geometry(self) -> WindowGeometry:
        """Where windows begin and end; those that follow the rows of single groups have no geometry of their own."""
        return Instants()

    @property
    def bounds_type(self) -> pa.DataType | None:
        """The type of `window_start` and `window_end`; None where there are none."""
        return TIMESTAMP


def _bounds_type(unit: Unit) -> pa.DataType:
    return TIMESTAMP if unit == "time" else pa.int64()


@dataclass(frozen=True)
class Window(AnyWindow):
    """Windows `[start, start + range)` of the progressing attribute, start a multiple of `slide` from `origin` on.

    The attribute is a time since the epoch, a sequence number, or a number of the rows' own, as `unit` says.
    """

    range: int
    slide: int
    origin: int = 0
    unit: Unit = "time"
    is_same_for_groups: ClassVar[bool] = True

    @property
    def geometry(self) -> WindowGeometry:
        return WindowGeometry(self.range, self.slide, self.origin)

    @property
    def bounds_type(self) -> pa.DataType | None:
        return _bounds_type(self.unit)


@dataclass(frozen=True)
class ClockWindow(AnyWindow):
    """Windows `[start, start + range)` by the clock of a zone, start a multiple of `slide` from `origin` on.

    They begin when the clock first shows their start. `range` and `slide` are microseconds or, with `months`, numbers
    of months; `origin` is microseconds.
    """

    range: int
    slide: int
    origin: int
    zone: str
    months: bool = False
    sql_name: ClassVar[str] = "a window by the clock of a zone"
    is_same_for_groups: ClassVar[bool] = True

    @property
    def geometry(self) -> WindowGeometry:
        return clock_windows(self.range, self.slide, self.origin, self.zone, months=self.months)


@dataclass(frozen=True)
class CalendarWindow(AnyWindow):
    """Windows of a calendar unit, which differ in length; UTC."""

    every: Literal["month", "quarter", "year"]
    sql_name: ClassVar[str] = "a window of the calendar"
    is_same_for_groups: ClassVar[bool] = True

    @property
    def geometry(self) -> WindowGeometry:
        return CalendarWindows({"month": 1, "quarter": 3, "year": 12}[self.every])


@dataclass(frozen=True)
class DividedWindow(AnyWindow):
    """Windows of times with equal `ticks div count`, which rounds towards zero; a tick is some microseconds.

    Ticks count from `origin` on, also in microseconds.
    """

    tick: int
    count: int
    origin: int = 0
    unit: Unit = field(default="time", repr=False)
    sql_name: ClassVar[str] = "a window by a quotient"
    is_same_for_groups: ClassVar[bool] = True

    @property
    def geometry(self) -> WindowGeometry:
        return DividedWindows(self.tick, self.count, self.origin)

    @property
    def bounds_type(self) -> pa.DataType | None:
        return _bounds_type(self.unit)


@dataclass(frozen=True)
class InstantWindow(AnyWindow):
    """Rows of exactly equal time together; results have no bounds of their own, because their keys hold that time."""

    sql_name: ClassVar[str] = "GROUP BY a time"
    is_same_for_groups: ClassVar[bool] = True

    @property
    def bounds_type(self) -> pa.DataType | None:
        return None


@dataclass(frozen=True)
class SessionWindow(AnyWindow):
    """Rows of a group that follow each other by less than `gap`; `window_end` is the last row's time + gap."""

    gap: int
    unit: Unit = field(default="time", repr=False)
    sql_name: ClassVar[str] = "a session"
    merges_at_gap: ClassVar[bool] = False

    @property
    def bounds_type(self) -> pa.DataType | None:
        return _bounds_type(self.unit)


@dataclass(frozen=True)
class BorrowedSessionWindow(SessionWindow):
    """Sessions as Spark and Flink have them: a row exactly `gap` after another belongs to its session."""

    merges_at_gap: ClassVar[bool] = True


@dataclass(frozen=True)
class TrailingWindow(AnyWindow):
    """A result per row: over the rows of its group at or before it, at most `range` back (None: all).

    Rows of equal time count for each other. With unit rows the range is in sequence numbers.
    """

    range: int | None
    unit: Unit = "time"
    sql_name: ClassVar[str] = "a window that ends at each row"
    has_one_result: ClassVar[bool] = False

    @property
    def bounds_type(self) -> pa.DataType | None:
        return _bounds_type(self.unit)


@dataclass(frozen=True)
class PartitionedRows(AnyWindow):
    """The last `rows` rows of each group, counted as they entered: a result per row, or one for every `slide` rows.

    With a slide, window number i of a group holds its rows from i * slide up to i * slide + rows.
    """

    rows: int
    slide: int | None = None
    has_one_result: ClassVar[bool] = False

    @property
    def bounds_type(self) -> pa.DataType | None:
        return pa.int64()


@dataclass(frozen=True)
class PairWindow(AnyWindow):
    """Joined rows of exactly equal times on both sides together; the two columns are keys of the aggregate too.

    A pair is complete when no row can come that is below both bounds of a joint punctuation (004 section 7).
    """

    first: str
    second: str
    sql_name: ClassVar[str] = "GROUP BY a pair of times"

    @property
    def bounds_type(self) -> pa.DataType | None:
        return None


@dataclass(frozen=True)
class Aggregation:
    """One aggregate: a function over arguments (none: `count(*)`), over the rows where `where` holds.

    `parameters` are constants of the call, such as the fraction of a quantile.
    """

    name: str
    function: str | UserAggregate
    arguments: tuple[Expression, ...] = ()
    where: Expression | None = None
    parameters: tuple[Parameter, ...] = ()

    def expressions(self) -> tuple[Expression, ...]:
        """All that is computed per row."""
        return self.arguments if self.where is None else (*self.arguments, self.where)


@dataclass(frozen=True)
class Aggregate(OneInput):
    """A window aggregate by window id: `window_start`, `window_end`, the keys, the aggregates.

    With partitioned rows, rows where `where` does not hold are counted but neither aggregated nor reported.
    """

    window: AnyWindow
    keys: tuple[tuple[str, Expression], ...]
    aggregations: tuple[Aggregation, ...]
    where: Expression | None = None
    depends_on: ClassVar[tuple[str, ...]] = ("panes", "state_limit")

    @property
    def schema(self) -> pa.Schema:
        given = self.input.schema
        kind = self.window.bounds_type
        bounds = [] if kind is None else [(WINDOW_START, kind), (WINDOW_END, kind)]
        keys = [(name, key.type_in(given)) for name, key in self.keys]
        results = [
            (each.name, result_type(each.function, [argument.type_in(given) for argument in each.arguments]))
            for each in self.aggregations
        ]
        return pa.schema([*bounds, *keys, *results])

    def column_names(self) -> list[str]:
        bounds = [] if self.window.bounds_type is None else [WINDOW_START, WINDOW_END]
        return [*bounds, *(name for name, _ in self.keys), *(each.name for each in self.aggregations)]

    def reads(self, wanted: Sequence[str]) -> list[list[str]]:
        return [columns_of(self.expressions())]

    def expressions(self) -> tuple[Expression, ...]:
        found = [key for _, key in self.keys] + [each for one in self.aggregations for each in one.expressions()]
        return tuple(found if self.where is None else [*found, self.where])

    def spread_keys(self, position: int) -> Keys | None:
        return tuple(name for name, _ in self.keys)
