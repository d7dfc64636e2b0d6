"""Function calls: a name and its arguments into a function of the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place, QueryError, did_you_mean, listed
from millrace.kernel.columns.date_formats import postgres_parts, spark_parts
from millrace.kernel.columns.expressions import SQL_TYPES, Literal
from millrace.kernel.columns.user_functions import UserCall, UserFunction
from millrace.language.expressions import typed
from millrace.language.expressions.sql_functions import (
    AGGREGATE_NAMES,
    ANY_NUMBER,
    CAST_FUNCTIONS,
    KNOWN,
    LATER_AGGREGATES,
    SCALARS,
    TRUNCATIONS,
    Scalar,
)
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.places import place_of

if TYPE_CHECKING:
    from millrace.language.expressions.expression_binder import ExpressionBinder

Functions = Mapping[str, UserFunction]
"""The functions that users have defined, by name in lower case."""
NO_FUNCTIONS: Functions = {}

_OF_ONE_TYPE = {"coalesce", "least", "greatest", "nullif"}
_PATTERN_PARTS = {
    "date_format": (spark_parts, "'yyyy-MM-dd HH:mm:ss'"),
    "from_unixtime": (spark_parts, "'yyyy-MM-dd HH:mm:ss'"),
    "to_char": (postgres_parts, "'YYYY-MM-DD HH24:MI:SS'"),
}


def called_name(node: exp.Expr) -> str:
    """The name of a function call in lower case; nothing for any other node."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def bind_call(binder: ExpressionBinder, node: exp.Anonymous) -> Typed:
    """A call of a scalar function; refuses aggregates and unknown names."""
    name, place = called_name(node), place_of(node)
    if name in AGGREGATE_NAMES or name in LATER_AGGREGATES:
        raise QueryError(
            f'the aggregate "{name}" cannot stand here',
            hint="Aggregates stand in the select list and in HAVING, not inside one another.",
            place=place,
        )
    if name in ("if", "iff", "nvl2"):
        return _conditional(binder, name, node, place)
    if name in ("date_part", "datepart"):
        _check_count(name, Scalar(name, 2, 2), len(node.expressions), place)
        return binder.extracted(node.expressions[0].name, binder.bind(node.expressions[1]), place)
    if name in CAST_FUNCTIONS:
        _check_count(name, Scalar(name, 1, 1), len(node.expressions), place)
        return typed.cast(binder.bind(node.expressions[0]), SQL_TYPES[CAST_FUNCTIONS[name]])
    if name in binder.functions:
        return _user(binder, binder.functions[name], node, place)
    if name not in SCALARS:
        raise _unknown(name, binder.functions, place)
    _check_count(name, SCALARS[name], len(node.expressions), place)
    return _scalar(SCALARS[name].function, [binder.bind(each) for each in node.expressions], place)


def _user(binder: ExpressionBinder, function: UserFunction, node: exp.Anonymous, place: Place | None) -> Typed:
    """A call of a function of the user's own; it is computed for rows alone, not for constants."""
    count = len(function.arguments)
    _check_count(function.name, Scalar(function.name, count, count), len(node.expressions), place)
    given = [
        typed.brought(binder.bind(each), kind) for each, kind in zip(node.expressions, function.arguments, strict=True)
    ]
    return Typed(UserCall(function, tuple(each.expression for each in given)), pa.array([], function.returns), place)


def _scalar(function: str, arguments: list[Typed], place: Place | None) -> Typed:
    if function == "date_trunc":
        arguments = [_unit(arguments[0]), arguments[1]]
    if function in _PATTERN_PARTS and len(arguments) == 2:
        _check_pattern(function, arguments[1])
    if function == "concat" and len(arguments) == 1:
        return typed.cast(arguments[0], pa.string())
    if function in _OF_ONE_TYPE:
        arguments = typed.unify(arguments, place)
    return typed.call(function, arguments, place)


def _unit(given: Typed) -> Typed:
    value = given.expression.value if isinstance(given.expression, Literal) else None
    if not isinstance(value, str) or value.lower() not in TRUNCATIONS:
        raise QueryError(
            f"{given.expression} is no unit of date_trunc",
            hint=f"The units are {listed(dict.fromkeys(TRUNCATIONS.values()))}, in quotes.",
            place=given.place,
        )
    return typed.literal(TRUNCATIONS[value.lower()], pa.string(), given.place)


def _check_pattern(function: str, given: Typed) -> None:
    value = given.expression.value if isinstance(given.expression, Literal) else None
    read, example = _PATTERN_PARTS[function]
    hint = f"Write for example {example}, and put text into quotes of its own."
    if not isinstance(value, str):
        raise QueryError(f"{given.expression} is no pattern of {function}", hint=hint, place=given.place)
    try:
        read(value)
    except pa.ArrowInvalid as error:
        fact = f"{given.expression} is no pattern of {function}: {error}"
        raise QueryError(fact, hint=hint, place=given.place) from error


def _conditional(binder: ExpressionBinder, name: str, node: exp.Anonymous, place: Place | None) -> Typed:
    _check_count(name, Scalar(name, 2 if name == "if" else 3, 3), len(node.expressions), place)
    if name == "nvl2":
        condition = typed.call("is_not_null", [binder.bind(node.expressions[0])], place)
    else:
        condition = binder.condition(node.expressions[0], "the condition of IF")
    values = [binder.bind(each) for each in node.expressions[1:]]
    if len(values) == 1:
        values.append(typed.literal(None, pa.null(), place))
    return binder.chosen([condition], values, place)


def _check_count(name: str, scalar: Scalar, count: int, place: Place | None) -> None:
    if scalar.least <= count <= scalar.most:
        return
    if scalar.most == ANY_NUMBER:
        wanted = f"at least {scalar.least}"
    else:
        wanted = str(scalar.least) if scalar.least == scalar.most else f"{scalar.least} to {scalar.most}"
    raise QueryError(
        f'"{name}" takes {wanted} argument{"" if wanted == "1" else "s"}, not {count}',
        hint="Check the commas and parentheses of the call.",
        place=place,
    )


def refuse_unknown(nodes: Iterable[exp.Expr], functions: Functions) -> None:
    """Refuse a call of a function that there is not; what stands with OVER is left to others."""
    for node in nodes:
        for each in node.walk(prune=lambda inner: isinstance(inner, exp.Window)):
            if isinstance(each, exp.Anonymous) and called_name(each) not in (*KNOWN, *functions):
                raise _unknown(called_name(each), functions, place_of(each))


def _unknown(name: str, functions: Functions, place: Place | None) -> QueryError:
    known = (*(each.name for each in functions.values()), *KNOWN)
    return QueryError(
        f'function "{name}" is unknown',
        hint=f"{did_you_mean(name, known)}docs/sql.md lists them; one of your own is declared before it is called: "
        f"CREATE FUNCTION {name}(...) RETURNS ... LANGUAGE PYTHON AS 'module:function'.",
        place=place,
    )
