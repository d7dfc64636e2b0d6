"""Expressions with their type, which is that of their value on no rows, and their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millrace.errors import Place, QueryError
from millrace.kernel.columns import casts
from millrace.kernel.columns import scalar_functions as functions
from millrace.kernel.columns.expressions import Call, Cast, Column, Expression, Literal, sql_name
from millrace.kernel.elements import TIMESTAMP

_ARROW_REFUSALS = (pa.ArrowException, AttributeError, TypeError, ValueError, OverflowError)
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


@dataclass(frozen=True)
class Typed:
    """An expression, its value over no rows (a scalar when it is constant), and its place.

    The binder says the place of what has none, and of errors.
    """

    expression: Expression
    value: Any
    place: Place | None = None

    @property
    def type(self) -> pa.DataType:
        return self.value.type

    @property
    def is_constant(self) -> bool:
        return isinstance(self.value, pa.Scalar)


def column(name: str, kind: pa.DataType, place: Place | None = None) -> Typed:
    """A column by name."""
    return Typed(Column(name), pa.array([], kind), place)


def literal(value: object, kind: pa.DataType, place: Place | None = None) -> Typed:
    """A constant."""
    return Typed(Literal(value, kind), pa.scalar(value, kind), place)


def call(function: str, arguments: Sequence[Typed], place: Place | None = None) -> Typed:
    """A function of the kernel over arguments; refuses types that it cannot take."""
    expression = Call(function, tuple(each.expression for each in arguments))
    try:
        value = functions.FUNCTIONS[function](*(each.value for each in arguments))
        if function == "rlike":
            # Arrow reads the pattern only when there is a row to match.
            functions.FUNCTIONS[function](pa.array([""]), arguments[1].value)
    except AttributeError:
        raise QueryError(
            f'"{function}" takes constants after its first argument',
            hint="Write the pattern, length or number of digits as a literal.",
            place=place,
        ) from None
    except _ARROW_REFUSALS as error:
        raise _not_computable(expression, arguments, place, error) from error
    return Typed(expression, value, place)


def _not_computable(
    expression: Expression, arguments: Sequence[Typed], place: Place | None, error: Exception
) -> QueryError:
    if all(each.is_constant for each in arguments):
        reason = str(error).split("\n")[0]
        return QueryError(f'"{expression}" has no value: {reason}', hint="Write another constant.", place=place)
    kinds = ", ".join(sql_name(each.type) for each in arguments)
    return QueryError(
        f'"{expression}" cannot be computed for {kinds}',
        hint="Bring the arguments to types that fit with CAST(... AS type).",
        place=place,
    )


def cast(given: Typed, kind: pa.DataType) -> Typed:
    """The value brought to a type; itself when it has it."""
    if given.type == kind:
        return given
    if pa.types.is_null(given.type) and isinstance(given.expression, Literal):
        return literal(None, kind, given.place)
    if (wider := _wider_literal(given, kind)) is not None:
        return wider
    try:
        value = casts.cast(given.value, kind)
    except _ARROW_REFUSALS as error:
        if _is_text_literal(given):
            raise _no_such_value(given, kind) from error
        raise QueryError(
            f"{sql_name(given.type)} cannot be cast to {sql_name(kind)}",
            hint="Cast by way of STRING or BIGINT if that is what you mean.",
            place=given.place,
        ) from error
    return Typed(Cast(given.expression, kind), value, given.place)


def brought(given: Typed, kind: pa.DataType) -> Typed:
    """An argument cast to the type that a user's function or aggregate takes; refuses a cast that loses something."""
    widens = common_type([given.type, kind]) == kind
    if widens or (pa.types.is_floating(kind) and is_number(given.type)):
        return cast(given, kind)
    raise QueryError(
        f"the argument is {sql_name(given.type)}, not {sql_name(kind)}",
        hint=f"Bring it to the type with CAST({given.expression} AS {sql_name(kind)}).",
        place=given.place,
    )


def _wider_literal(given: Typed, kind: pa.DataType) -> Typed | None:
    """A whole number as a literal of a wider type, so that it is not cast again for every batch."""
    value = given.expression.value if isinstance(given.expression, Literal) else None
    if not isinstance(value, int) or not pa.types.is_integer(given.type) or kind not in (pa.int64(), pa.float64()):
        return None
    return literal(float(value) if pa.types.is_floating(kind) else value, kind, given.place)


def boolean(given: Typed, what: str) -> Typed:
    """A condition; refuses any other type."""
    if pa.types.is_boolean(given.type) or pa.types.is_null(given.type):
        return cast(given, pa.bool_())
    raise QueryError(
        f"{what} is {sql_name(given.type)}, not BOOLEAN",
        hint="Compare it with something, for example > 0.",
        place=given.place,
    )


def unify(values: Sequence[Typed], place: Place | None = None) -> list[Typed]:
    """The values brought to one type; text literals and nulls take the type of the others."""
    plain = [each for each in values if not _is_text_literal(each)]
    target = common_type([each.type for each in plain])
    if target is None or pa.types.is_null(target):
        target = common_type([each.type for each in values])
    if target is None:
        kinds = " and ".join(dict.fromkeys(sql_name(each.type) for each in values))
        raise QueryError(
            f"{kinds} have no common type", hint="Bring them to one type with CAST(... AS type).", place=place
        )
    return [literal_of(each, target) if _is_text_literal(each) else cast(each, target) for each in values]


def _is_text_literal(given: Typed) -> bool:
    return isinstance(given.expression, Literal) and pa.types.is_string(given.type)


def literal_of(given: Typed, target: pa.DataType) -> Typed:
    """A constant brought to a type; refuses text that is no such value."""
    found = cast(given, target)
    if found.is_constant and not found.value.is_valid:
        raise _no_such_value(given, target)
    return found


def _no_such_value(given: Typed, kind: pa.DataType) -> QueryError:
    name = sql_name(kind)
    hint = f"Write a value of type {name}, or bring the other side to text with CAST(... AS STRING)."
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        hint = "Times are written '2024-05-01 12:30:00', dates '2024-05-01'."
    return QueryError(f"{given.expression} is not a valid {name}", hint=hint, place=given.place)


def is_number(kind: pa.DataType) -> bool:
    """True if a type is a number."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def common_type(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type that all can be brought to without loss of meaning; None when there is none."""
    different = list(dict.fromkeys(kind for kind in kinds if not pa.types.is_null(kind)))
    if len(different) <= 1:
        return different[0] if different else pa.null() if kinds else None
    if all(pa.types.is_integer(kind) for kind in different):
        return max(different, key=_INTEGERS.index)
    if all(is_number(kind) for kind in different):
        return pa.float64()
    if all(pa.types.is_date(kind) or pa.types.is_timestamp(kind) for kind in different):
        return TIMESTAMP
    return None
