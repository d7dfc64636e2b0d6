"""Times of the inputs of a join plus constants, as conditions write them.

A `Span` is the time of an input, or a difference of two, plus a constant: a range of constants where a function such as
date_trunc has cut something off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from millrace.kernel.columns.expressions import Call, Column, Expression, Literal
from millrace.kernel.elements import INTERVAL
from millrace.language.expressions.time_buckets import TimeBucket, bucket_of, ticks_of
from millrace.plan.nodes.aggregate_nodes import CalendarWindow, DividedWindow, Window

Times = Mapping[str, tuple[int, int]]
"""The columns that hold times: of which input, and what each adds to the row's own time."""

_LONGEST_UNIT = {"month": 31, "quarter": 92, "year": 366}
_DAY = 86_400_000_000


@dataclass(frozen=True)
class Span:
    """A value between `least` and `most` microseconds after a sum of times, counted in `tick` microseconds.

    `terms` are the inputs whose times are added (1) and subtracted (-1).
    """

    terms: Mapping[int, int]
    least: int
    most: int
    tick: int | None = None

    @property
    def is_exact(self) -> bool:
        return self.least == self.most

    def plus(self, other: Span) -> Span:
        sums = {each: self.terms.get(each, 0) + other.terms.get(each, 0) for each in {*self.terms, *other.terms}}
        terms = {each: sign for each, sign in sums.items() if sign}
        return Span(terms, self.least + other.least, self.most + other.most, self.tick or other.tick)

    def negated(self) -> Span:
        terms = {each: -sign for each, sign in self.terms.items()}
        return Span(terms, -self.most, -self.least, self.tick)


def span_of(expression: Expression, times: Times) -> Span | None:
    """The span that an expression is; None for any other."""
    plain = {name: more for name, (_, more) in times.items()}
    tick = tick_in(expression, plain)
    return span(expression, times, plain, tick)


def tick_in(expression: Expression, plain: Mapping[str, int]) -> int | None:
    """The tick that the numbers of an expression count; None for times and intervals."""
    found = ticks_of(expression, plain)
    if found is not None:
        return found[1]
    return next((tick for each in expression.children() if (tick := tick_in(each, plain)) is not None), None)


def span(expression: Expression, times: Times, plain: Mapping[str, int], tick: int | None) -> Span | None:
    """The span that an expression is, whose numbers count a tick; `plain` is what each column adds to its time."""
    match expression:
        case Column(name) if name in times and tick is None:
            part, more = times[name]
            return Span({part: 1}, more, more)
        case Literal(value=int(value), type=kind) if _counts(kind, tick):
            return Span({}, value * (tick or 1), value * (tick or 1), tick)
        case Call("+" | "-" as sign, (first, second)):
            left, right = span(first, times, plain, tick), span(second, times, plain, tick)
            if left is None or right is None:
                return None
            return left.plus(right if sign == "+" else right.negated())
        case Call("negative", (inner,)):
            found = span(inner, times, plain, tick)
            return None if found is None else found.negated()
    return _cut(expression, times, plain, tick)


def _counts(kind: pa.DataType, tick: int | None) -> bool:
    return kind == INTERVAL if tick is None else bool(pa.types.is_integer(kind))


def _cut(expression: Expression, times: Times, plain: Mapping[str, int], tick: int | None) -> Span | None:
    """A function that cuts off a part of the time."""
    counted = ticks_of(expression, plain)
    if counted is not None and counted[1] == tick:
        part, more = times[counted[0]]
        return Span({part: 1}, more - tick + 1, more, tick)
    bucket = bucket_of(expression, plain) if tick is None else None
    if bucket is None or not bucket.is_start:
        return None
    part, more = times[bucket.column]
    return Span({part: 1}, more - longest(bucket) + 1, more)


def longest(bucket: TimeBucket) -> int:
    """An upper bound, in microseconds, on the distance of two times of one bucket."""
    match bucket.window:
        case CalendarWindow(every):
            return _LONGEST_UNIT[every] * _DAY
        case DividedWindow(tick, count):
            # The bucket around 1970 has both sides of it.
            return (2 * count - 1) * tick
        case Window(range=length):
            return length
