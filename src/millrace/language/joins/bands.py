"""What conditions of a join say about the times of its inputs.

Rules:
- A comparison of spans (spans.py) of two inputs limits how far one is after the other. If nothing was cut off, the
  limit says all that the comparison does.
- A time of one input below a TIMESTAMP of another says until when a row of the other can match.
- Equal values of a monotone function are rows of one bucket, which has an end.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from millrace.kernel.columns.expressions import Call, Cast, Column, Expression, Literal
from millrace.kernel.elements import TIMESTAMP
from millrace.language.expressions.progressing import Kinds, of_attributes, of_times
from millrace.language.expressions.time_buckets import TimeBucket, bucket_of
from millrace.language.joins.spans import Span, Times, longest, span, span_of, tick_in
from millrace.plan.joins.time_limits import TimeLimit
from millrace.plan.nodes.aggregate_nodes import DividedWindow, Window
from millrace.plan.nodes.conditions import later, substituted

Until = tuple[int, int, Expression]
"""An input, another whose rows match its rows, and the time up to which they do, computed from a row of the first."""

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}

# Comparisons


@dataclass(frozen=True)
class Band:
    """What a condition says of the times; `exact` if it says nothing else, `until` each by itself.

    `is_equal` says that equal values are rows of one instant or one bucket, so that they may be keys.
    """

    limits: tuple[TimeLimit, ...] = ()
    untils: tuple[Until, ...] = ()
    exact: bool = False
    is_equal: bool = False


def band_of(condition: Expression, times: Times, owners: Mapping[str, int], kinds: Kinds | None = None) -> Band:
    """What a condition says of times; `owners` are the inputs by column, `kinds` the types of times that are no
    TIMESTAMP."""
    if not isinstance(condition, Call) or len(condition.arguments) != 2 or condition.function not in _FLIPPED:
        return Band()
    if not kinds:
        return _band_of(condition, times, owners)
    compared = all(isinstance(each, Column) and each.name in times for each in condition.arguments)
    form = condition if compared else of_times(condition, kinds)
    assert isinstance(form, Call)
    found = _band_of(form, times, owners, {name for name, kind in kinds.items() if pa.types.is_date(kind)})
    return replace(found, untils=tuple((*each[:2], of_attributes(each[2], kinds)) for each in found.untils))


def _band_of(condition: Call, times: Times, owners: Mapping[str, int], dates: Container[str] = ()) -> Band:
    left, right = condition.arguments
    found = _of_distance(condition.function, left, right, times) or _of_spans(condition.function, left, right, times)
    if found is not None:
        return found if condition.function != "=" else _with_ends(found, left, right, times)
    if condition.function == "=":
        return _of_buckets(left, right, times) or _of_moment(left, right, times, owners, dates)
    return _until(condition.function, left, right, times, owners, dates)


def is_comparison(condition: Expression) -> bool:
    """True if a condition may limit times."""
    return isinstance(condition, Call) and condition.function in _FLIPPED


def _of_distance(function: str, left: Expression, right: Expression, times: Times) -> Band | None:
    """`abs(difference) <= constant`."""
    if function in (">", ">="):
        return _of_distance(_FLIPPED[function], right, left, times)
    if function == "=" or not isinstance(left, Call) or left.function != "abs":
        return None
    (inner,) = left.arguments
    above = _of_spans(function, inner, right, times)
    below = _of_spans(function, Call("negative", (inner,)), right, times)
    if above is None or below is None:
        return None
    return Band((*above.limits, *below.limits), exact=above.exact and below.exact)


def _of_spans(function: str, left: Expression, right: Expression, times: Times) -> Band | None:
    """A comparison of spans of two inputs."""
    plain = {name: more for name, (_, more) in times.items()}
    tick = tick_in(left, plain) or tick_in(right, plain)
    first, second = (span(each, times, plain, tick) for each in (left, right))
    if first is None or second is None:
        return None
    difference = first.plus(second.negated())
    if sorted(difference.terms.values()) != [-1, 1]:
        return None
    limits = []
    if function in ("<", "<=", "="):
        limits.append(_limit(difference, strict=function == "<"))
    if function in (">", ">=", "="):
        limits.append(_limit(difference.negated(), strict=function == ">"))
    return Band(tuple(limits), exact=difference.is_exact)


def _limit(difference: Span, *, strict: bool) -> TimeLimit:
    """The limit of a difference of two times that is not above zero."""
    later = next(part for part, sign in difference.terms.items() if sign == 1)
    first = next(part for part, sign in difference.terms.items() if sign == -1)
    return TimeLimit(first, later, -difference.least - (difference.tick or 1 if strict else 0))


# Equal values of monotone functions


def _pair_of_buckets(left: Expression, right: Expression, times: Times) -> tuple[TimeBucket, TimeBucket] | None:
    """The buckets of two inputs, if they are alike."""
    plain = {name: more for name, (_, more) in times.items()}
    first, second = bucket_of(left, plain), bucket_of(right, plain)
    if first is None or second is None or times[first.column][0] == times[second.column][0]:
        return None
    alike = _function_of(left, first.column) == _function_of(right, second.column)
    return (first, second) if alike else None


def _function_of(expression: Expression, column: str) -> str:
    """An expression without the name of its column, to be compared with others."""
    return repr(substituted(expression, {column: Column("")}))


def _of_buckets(left: Expression, right: Expression, times: Times) -> Band | None:
    pair = _pair_of_buckets(left, right, times)
    if pair is None:
        return None
    (first, more), (second, further) = (times[each.column] for each in pair)
    length = longest(pair[0]) - 1
    limits = (TimeLimit(first, second, length + more - further), TimeLimit(second, first, length + further - more))
    return _with_ends(Band(limits), left, right, times)


def _with_ends(band: Band, left: Expression, right: Expression, times: Times) -> Band:
    """The band with the ends of the buckets, where they can be computed: then it says all that equality does."""
    pair = _pair_of_buckets(left, right, times)
    if pair is None:
        plain = all(isinstance(each, Column) for each in (left, right))
        return replace(band, is_equal=plain)
    parts = [times[each.column] for each in pair]
    untils = []
    for value, bucket, (part, _), (other, further) in zip((left, right), pair, parts, reversed(parts), strict=True):
        end = _end(value, bucket)
        if end is not None:
            untils.append((part, other, later(end, -further)))
    return replace(band, untils=tuple(untils), exact=len(untils) == 2, is_equal=True)


def _end(value: Expression, bucket: TimeBucket) -> Expression | None:
    """The last time of the bucket that a row is in, where the function has some value."""
    match bucket.window:
        case Window(range=length) if bucket.is_start:
            return later(value, length - 1)
        case Window(range=length, origin=origin):
            micros = Call("unix_micros", (Column(bucket.column),))
            into = _modulo(_number("-", micros, origin), length)
            return Call("timestamp_micros", (_number("+", Call("-", (micros, into)), length - 1),))
        case DividedWindow(tick, count, origin):
            # Before the origin a bucket ends with the tick that is its number times the count.
            first = Call("*", (value, Literal(tick * count, pa.int64())))
            is_before = Call("<", (value, Literal(0, pa.int64())))
            ends = (tick - 1 + origin, tick * count - 1 + origin)
            last = Call("case", (is_before, *(_number("+", first, each) for each in ends)))
            return Call("timestamp_micros", (last,))
    return None


def _number(sign: str, value: Expression, number: int) -> Expression:
    return Call(sign, (value, Literal(number, pa.int64()))) if number else value


def _modulo(value: Expression, length: int) -> Expression:
    """The remainder from below, also before 1970."""
    size = Literal(length, pa.int64())
    return Call("%", (Call("+", (Call("%", (value, size)), size)), size))


# Until


def _until(
    function: str,
    left: Expression,
    right: Expression,
    times: Times,
    owners: Mapping[str, int],
    dates: Container[str] = (),
) -> Band:
    """`time of one input <= TIMESTAMP of another`, or the same in microseconds or days."""
    if function in (">", ">="):
        return _until(_FLIPPED[function], right, left, times, owners, dates)
    span = span_of(left, times)
    parts = {owners[name] for name in right.columns()}
    if span is None or len(span.terms) != 1 or span.tick not in (None, 1) or not span.is_exact or len(parts) != 1:
        return Band()
    ((other, sign),) = span.terms.items()
    (part,) = parts
    if sign != 1 or part == other:
        return Band()
    strict = 1 if function == "<" else 0
    if span.tick is not None:
        right = Call("timestamp_micros", (right,))
    elif any(name in dates for name in left.columns()):
        right = Cast(right, TIMESTAMP)
    return Band(untils=((part, other, later(right, -span.least - strict)),), exact=True)


def _of_moment(
    left: Expression, right: Expression, times: Times, owners: Mapping[str, int], dates: Container[str]
) -> Band:
    """`time of one input = TIMESTAMP of another`: it says until when, and more."""
    found = [_until("<=", one, other, times, owners, dates) for one, other in ((left, right), (right, left))]
    return Band(untils=tuple(until for each in found for until in each.untils))
