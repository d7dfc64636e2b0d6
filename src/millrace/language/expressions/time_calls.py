"""Calls of functions of times with a unit, a pattern or a field, which are constants, checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError, listed
from millrace.kernel.columns.date_formats import postgres_parts, spark_parts
from millrace.kernel.columns.expressions import Literal
from millrace.kernel.columns.functions.calendar_functions import MONTHS, UNITS
from millrace.kernel.columns.functions.time_patterns import check_pattern
from millrace.kernel.columns.sql_types import read_type
from millrace.language.expressions import typed
from millrace.language.expressions.functions import FUNCTIONS
from millrace.language.expressions.functions.argument_types import arguments_of
from millrace.language.expressions.sql_functions import TRUNCATIONS
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.text.places import place_of

if TYPE_CHECKING:
    from millrace.language.expressions.expression_binder import ExpressionBinder

_PATTERN_PARTS = {
    "date_format": (spark_parts, "'yyyy-MM-dd HH:mm:ss'"),
    "from_unixtime": (spark_parts, "'yyyy-MM-dd HH:mm:ss'"),
    "to_char": (postgres_parts, "'YYYY-MM-DD HH24:MI:SS'"),
}
_READERS = {"to_date": "parse_date", "to_timestamp": "parse_timestamp", "unix_timestamp": "parse_unix_seconds"}
_PARTS = {**dict.fromkeys((*UNITS, *MONTHS)), "dayofyear": "day"}


def checked(function: str, arguments: list[Typed]) -> list[Typed]:
    """The arguments of a function of the kernel; refuses a unit or a pattern that it does not know."""
    if function == "date_trunc":
        return [_truncation(arguments[0]), arguments[1]]
    if function in _PATTERN_PARTS and len(arguments) == 2:
        read, example = _PATTERN_PARTS[function]
        _check(function, arguments[1], read, example)
    return arguments


def _constant(given: Typed) -> str | None:
    value = given.expression.value if isinstance(given.expression, Literal) else None
    return value if isinstance(value, str) else None


def _truncation(given: Typed) -> Typed:
    value = _constant(given)
    if value is None or value.lower() not in TRUNCATIONS:
        raise QueryError(
            f"{given.expression} is not a unit of date_trunc",
            hint=f"The units are {listed(dict.fromkeys(TRUNCATIONS.values()))}, in quotes.",
            place=given.place,
        )
    return typed.literal(TRUNCATIONS[value.lower()], pa.string(), given.place)


def _check(function: str, given: Typed, read: Callable[[str], object], example: str) -> None:
    value = _constant(given)
    fact = f"{given.expression} is not a pattern of {function}"
    hint = f"Write for example {example}, and put text into quotes of its own."
    if value is None:
        raise QueryError(fact, hint=hint, place=given.place)
    try:
        read(value)
    except pa.ArrowInvalid as error:
        raise QueryError(f"{fact}: {error}", hint=hint, place=given.place) from error


def _read(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    """`to_date`, `to_timestamp` and `unix_timestamp`, with or without a pattern."""
    value = binder.bind(given[0])
    if len(given) == 1 or not pa.types.is_string(value.type):
        kind = read_type(name.removeprefix("to_")) if name != "unix_timestamp" else None
        if kind is not None:
            takes = FUNCTIONS["last_day" if name == "to_date" else name]
            return typed.cast(arguments_of(takes, [value])[0], kind)
        return typed.call("unix_seconds", arguments_of(FUNCTIONS["unix_seconds"], [value]))
    pattern = binder.bind(given[1])
    _check(name, pattern, check_pattern, "'yyyy-MM-dd HH:mm:ss'")
    return typed.call(_READERS[name], [value, pattern])


def _unit(node: exp.Expr, name: str) -> Typed:
    word = (node.name if isinstance(node, exp.Column | exp.Literal | exp.Var) else "").lower()
    unit = next((each for each in (word, word.removesuffix("s")) if each in _PARTS), None)
    if unit is None:
        known = listed((*UNITS, *MONTHS))
        raise QueryError(f'"{word}" is not a unit of {name}', hint=f"The units are {known}.", place=place_of(node))
    return typed.literal(_PARTS[unit] or unit, pa.string())


def _with_unit(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    """`timestampadd` and `timestampdiff`."""
    arguments = arguments_of(FUNCTIONS[name], [_unit(given[0], name), *(binder.bind(each) for each in given[1:])])
    return typed.call(name, arguments)


def _days(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    """`date_add` and `datediff`, of days, or of three arguments with a unit."""
    if len(given) == 3:
        return _with_unit(binder, {"date_add": "timestampadd"}.get(name, "timestampdiff"), given)
    function = FUNCTIONS[name]
    return typed.call(function.function, arguments_of(function, [binder.bind(each) for each in given]))


def _zones(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    bound = [binder.bind(each) for each in given]
    source = [typed.literal("UTC", pa.string())] if len(bound) == 2 else []
    return typed.call(name, arguments_of(FUNCTIONS[name], [*source, *bound]))


def _date_part(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    return binder.extracted(given[0].name, binder.bind(given[1]))


TIME_CALLS = {
    "date_part": _date_part,
    "timestampadd": _with_unit,
    "timestampdiff": _with_unit,
    "date_add": _days,
    "datediff": _days,
    "convert_timezone": _zones,
    **dict.fromkeys(_READERS, _read),
}
"""Calls by the name of their function."""
