"""What a select aggregates over: a window that it writes, or the one that its groups stand for.

Rules:
- Without a window, GROUP BY the rows' own time, or a bound of the window whose results they are, brings rows of one
  instant together. GROUP BY a monotone function of it groups by windows of time.
- The value of such a function is computed from the start of its window, because it is the same for all rows of the
  window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from millrace.errors import Place, QueryError
from millrace.kernel.columns.expressions import Column, Expression
from millrace.kernel.elements import INTERVAL
from millrace.language.expressions import typed
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.progressing import kinds_of, of_times
from millrace.language.expressions.time_buckets import TimeBucket, bucket_of, is_strict
from millrace.language.expressions.typed import Typed
from millrace.plan.nodes.aggregate_nodes import (
    WINDOW_END,
    WINDOW_START,
    AnyWindow,
    CalendarWindow,
    ClockWindow,
    DividedWindow,
    InstantWindow,
    PairWindow,
    SessionWindow,
    TrailingWindow,
    Window,
)

_OWN = "__own"
"""Stands for an expression that holds the rows' own time."""


@dataclass(frozen=True)
class WindowedRows:
    """A window over rows; `written` says that the select names it, else `bucket` is the group that it stands for.

    `shift` is what a bucket's own start is after the start of its window.
    """

    window: AnyWindow
    relation: BoundRelation
    written: bool = True
    group: Typed | None = None
    bucket: TimeBucket | None = None
    shift: int = 0

    @property
    def bounds_type(self) -> pa.DataType | None:
        """The type of the window's bounds; None where there are none."""
        return self.window.bounds_type

    def bound(self, name: str, place: Place | None) -> Typed:
        """A bound of the window, for a node that names it."""
        column = typed.column(name, self.bounds_type, place)
        kind = INTERVAL if self.relation.unit == "time" else pa.int64()
        return typed.call("+", [column, typed.literal(self.shift, kind, place)], place) if self.shift else column

    def key(self, given: Typed) -> Typed | None:
        """What a group expression is over the result, if the window stands for it."""
        if self.group is None or self.bucket is None or given.expression != self.group.expression:
            return None
        start = self.bound(WINDOW_START, given.place)
        if self.bucket.is_start:
            return start
        value = _with(given.expression, _held_by(self.bucket, self.relation), start.expression)
        return Typed(value, given.value, given.place)

    def timed(self) -> dict[Expression, int | None]:
        """The results' expressions that say their own time: what each adds to it, None if it is another value."""
        start, end = Column(WINDOW_START), Column(WINDOW_END)
        match self.window:
            case Window(range=length) if self.bucket is not None:
                assert self.group is not None
                own = self.bound(WINDOW_START, self.group.place).expression
                value = self.key(self.group)
                assert value is not None
                return {value.expression: None, own: 1 - length + self.shift}
            case Window(range=length):
                return {start: 1 - length, end: 1}
            case ClockWindow() | CalendarWindow() | DividedWindow():
                value = None if self.group is None else self.key(self.group)
                return {start: None, end: 1} if value is None else {start: None, end: 1, value.expression: None}
            case SessionWindow():
                return {end: 1}
            case TrailingWindow(range=None):
                return {end: 0}
            case TrailingWindow(range=int(length), unit=unit):
                return {start: -length, end: 1 if unit == "rows" else 0}
        return {}


def by_groups(groups: Sequence[Typed], given: BoundRelation) -> WindowedRows | None:
    """The window that groups stand for; None where none of them says the time."""
    return _by_own_time(groups, given) or _by_pair(groups, given) or _by_choice(groups, given)


def _by_own_time(groups: Sequence[Typed], given: BoundRelation) -> WindowedRows | None:
    if any(is_instant(each.expression, given) for each in groups):
        return WindowedRows(InstantWindow(), given, written=False)
    found = [(bucket, each) for each in groups if (bucket := bucket_in(each.expression, given)) is not None]
    if not found:
        return None
    # Any one of them would do; the shortest windows are complete first.
    bucket, group = min(found, key=lambda pair: pair[0].length)
    shift = given.times.get(bucket.column, 0)
    window = bucket.window
    if not isinstance(window, CalendarWindow):
        window = replace(window, unit=given.unit)
    if isinstance(window, Window):
        window = replace(window, origin=(window.origin - shift) % window.slide)
    elif shift:
        raise QueryError(
            f'results of a window cannot be grouped by "{group.expression}"',
            hint="Group by it over the stream's own time, or group the results by their window_start.",
            place=group.place,
        )
    return WindowedRows(window, given, False, group, bucket, shift)


def _by_pair(groups: Sequence[Typed], given: BoundRelation) -> WindowedRows | None:
    """Groups by the times of both inputs of a join."""
    choices = given.choices
    if choices is None or choices.joint is None:
        return None
    columns: dict[int, str] = {}
    for each in groups:
        if isinstance(each.expression, Column) and each.expression.name in choices.columns:
            part, more = choices.columns[each.expression.name]
            if more == 0:
                columns.setdefault(part, each.expression.name)
    return (
        WindowedRows(PairWindow(columns[0], columns[1]), given.by_pair(), written=False) if len(columns) == 2 else None
    )


def _by_choice(groups: Sequence[Typed], given: BoundRelation) -> WindowedRows | None:
    """Groups by another time that rows of a join may have, or by a function of it."""
    read = given.by_times_in([each.expression for each in groups])
    found = [windowed for each in read if (windowed := _by_own_time(groups, each)) is not None]
    return min(found, key=lambda windowed: windowed.bucket.length if windowed.bucket else 0, default=None)


def is_instant(expression: Expression, given: BoundRelation) -> bool:
    """True if each value of an expression stands for one time of the rows."""
    if expression in given.own or (isinstance(expression, Column) and expression.name in given.instants):
        return True
    return is_strict(of_times(expression, kinds_of(given.times, given.schema)), given.times)


def bucket_in(expression: Expression, given: BoundRelation) -> TimeBucket | None:
    """The windows of a monotone function of the rows' own time."""
    for own in given.own:
        expression = _with(expression, own, Column(_OWN))
    times = {**given.times, _OWN: 0} if given.own else given.times
    kinds = dict(kinds_of(given.times, given.schema))
    if given.own and given.unit == "number":
        kinds[_OWN] = pa.int64()
    return bucket_of(of_times(expression, kinds), times)


def _held_by(bucket: TimeBucket, given: BoundRelation) -> Expression:
    """What holds the time that a bucket is made of."""
    return given.own[0] if bucket.column == _OWN else Column(bucket.column)


def _with(expression: Expression, old: Expression, new: Expression) -> Expression:
    """The expression with a part of it replaced."""
    if expression == old:
        return new
    return expression.with_children([_with(each, old, new) for each in expression.children()])
