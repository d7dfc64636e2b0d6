"""Function calls: a name and its arguments into a function of the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place, QueryError, did_you_mean, listed
from millrace.kernel.columns.date_formats import postgres_parts, spark_parts
from millrace.kernel.columns.expressions import Literal
from millrace.kernel.columns.sql_types import read_type
from millrace.kernel.columns.user_functions import UserCall, UserFunction
from millrace.language.expressions import typed
from millrace.language.expressions.json_calls import JSON_CALLS, json_call
from millrace.language.expressions.sql_functions import (
    AGGREGATE_NAMES,
    ANY_NUMBER,
    CAST_FUNCTIONS,
    INSTEAD,
    KNOWN,
    LATER_AGGREGATES,
    SCALARS,
    TRUNCATIONS,
)
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.places import place_of

if TYPE_CHECKING:
    from millrace.language.expressions.expression_binder import ExpressionBinder

Functions = Mapping[str, UserFunction]
"""The functions that users have defined, by name in lower case."""
NO_FUNCTIONS: Functions = {}

_OF_ONE_TYPE = {"array", "coalesce", "least", "greatest", "nullif"}
_PATTERN_PARTS = {
    "date_format": (spark_parts, "'yyyy-MM-dd HH:mm:ss'"),
    "from_unixtime": (spark_parts, "'yyyy-MM-dd HH:mm:ss'"),
    "to_char": (postgres_parts, "'YYYY-MM-DD HH24:MI:SS'"),
}


def called_name(node: exp.Expr) -> str:
    """The name of a function call in lower case; empty for any other node."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def bind_call(binder: ExpressionBinder, node: exp.Anonymous) -> Typed:
    """A call of a scalar function; refuses aggregates and unknown names."""
    name, given = called_name(node), node.expressions
    if name in AGGREGATE_NAMES or name in LATER_AGGREGATES:
        raise misplaced_aggregate(node)
    if name in ("if", "iff", "nvl2"):
        return _conditional(binder, name, given)
    if name in ("date_part", "datepart"):
        check_count(name, len(given), 2)
        return binder.extracted(given[0].name, binder.bind(given[1]))
    if name in CAST_FUNCTIONS:
        check_count(name, len(given), 1)
        return typed.cast(binder.bind(given[0]), read_type(CAST_FUNCTIONS[name]))
    if name in JSON_CALLS:
        return json_call(binder, name, given)
    if name in ("struct", "named_struct", "map"):
        return _made(binder, name, given)
    if name in binder.functions:
        return _user_call(binder, binder.functions[name], given)
    if name not in SCALARS:
        raise _unknown(name, binder.functions)
    check_count(name, len(given), SCALARS[name].least, SCALARS[name].most)
    return _scalar(SCALARS[name].function, [binder.bind(each) for each in given])


def misplaced_aggregate(node: exp.Expr) -> QueryError:
    """The refusal of an aggregate where none may stand."""
    return QueryError(
        f'the aggregate "{called_name(node)}" is not allowed here',
        hint="Aggregates are allowed in the select list and in HAVING, not inside one another.",
        place=place_of(node),
    )


def check_count(name: str, count: int, least: int, most: int | None = None, example: str = "") -> None:
    """Refuse a call with fewer arguments than `least`, or more than `most`, which is by default the same number."""
    most = least if most is None else most
    if least <= count <= most:
        return
    wanted = f"at least {least}" if most == ANY_NUMBER else f"{least} to {most}" if least < most else str(least)
    raise QueryError(
        f'"{name}" takes {wanted} argument{"" if wanted == "1" else "s"}, not {count}',
        hint=example or "Check the commas and parentheses of the call.",
    )


def _user_call(binder: ExpressionBinder, function: UserFunction, given: Sequence[exp.Expr]) -> Typed:
    """A call of a function of the user's own; it is computed for rows alone, not for constants."""
    check_count(function.name, len(given), len(function.arguments))
    pairs = zip(given, function.arguments, strict=True)
    arguments = tuple(typed.brought(binder.bind(each), kind).expression for each, kind in pairs)
    return Typed(UserCall(function, arguments), pa.array([], function.returns))


def _scalar(function: str, arguments: list[Typed]) -> Typed:
    if function == "date_trunc":
        arguments = [_unit(arguments[0]), arguments[1]]
    if function in _PATTERN_PARTS and len(arguments) == 2:
        _check_pattern(function, arguments[1])
    if function == "concat" and len(arguments) == 1:
        return typed.cast(arguments[0], pa.string())
    if function in _OF_ONE_TYPE:
        arguments = typed.unify(arguments)
    return typed.call(function, arguments)


def _made(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    """A struct or a map of values."""
    if name == "struct":
        names = [_field_name(each, place) for place, each in enumerate(given, 1)]
        plain = [each.this if isinstance(each, exp.Alias) else each for each in given]
        pairs = zip(names, plain, strict=True)
        arguments = [part for named, each in pairs for part in (typed.literal(named, pa.string()), binder.bind(each))]
    else:
        arguments = [binder.bind(each) for each in given]
    if not arguments or len(arguments) % 2:
        hint = {"struct": "Write struct(a, b AS name).", "map": "Write map('key', value, ...)."}
        raise QueryError(f'"{name}" takes pairs', hint=hint.get(name, "Write named_struct('name', value, ...)."))
    if name == "map":
        keys, values = typed.unify(arguments[::2]), typed.unify(arguments[1::2])
        return typed.call("map", [each for pair in zip(keys, values, strict=True) for each in pair])
    for each in arguments[::2]:
        if not isinstance(each.expression, Literal) or not isinstance(each.expression.value, str):
            raise QueryError(
                "the name of a field is a text", hint="Write named_struct('name', value).", place=each.place
            )
    return typed.call("named_struct", arguments)


def _field_name(node: exp.Expr, place: int) -> str:
    named = isinstance(node, exp.Alias | exp.Column | exp.Dot)
    return (node.alias if isinstance(node, exp.Alias) else node.name) if named else f"col{place}"


def _unit(given: Typed) -> Typed:
    value = given.expression.value if isinstance(given.expression, Literal) else None
    if not isinstance(value, str) or value.lower() not in TRUNCATIONS:
        raise QueryError(
            f"{given.expression} is not a unit of date_trunc",
            hint=f"The units are {listed(dict.fromkeys(TRUNCATIONS.values()))}, in quotes.",
            place=given.place,
        )
    return typed.literal(TRUNCATIONS[value.lower()], pa.string(), given.place)


def _check_pattern(function: str, given: Typed) -> None:
    value = given.expression.value if isinstance(given.expression, Literal) else None
    read, example = _PATTERN_PARTS[function]
    fact = f"{given.expression} is not a pattern of {function}"
    hint = f"Write for example {example}, and put text into quotes of its own."
    if not isinstance(value, str):
        raise QueryError(fact, hint=hint, place=given.place)
    try:
        read(value)
    except pa.ArrowInvalid as error:
        raise QueryError(f"{fact}: {error}", hint=hint, place=given.place) from error


def _conditional(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    check_count(name, len(given), 2 if name == "if" else 3, 3)
    if name == "nvl2":
        condition = typed.call("is_not_null", [binder.bind(given[0])])
    else:
        condition = binder.condition(given[0], "the condition of IF")
    values = [binder.bind(each) for each in given[1:]]
    if len(values) == 1:
        values.append(typed.literal(None, pa.null()))
    return binder.chosen([condition], values)


def refuse_unknown(nodes: Iterable[exp.Expr], functions: Functions) -> None:
    """Refuse calls of unknown functions, which may be meant as aggregates; functions with OVER are not checked."""
    for node in nodes:
        for each in node.walk(prune=lambda inner: isinstance(inner, exp.Window)):
            if isinstance(each, exp.Anonymous) and called_name(each) not in (*KNOWN, *functions):
                raise _unknown(called_name(each), functions, place_of(each), "AGGREGATE", "Class")


def _unknown(
    name: str, functions: Functions, place: Place | None = None, kind: str = "FUNCTION", last: str = "function"
) -> QueryError:
    known = (*(each.name for each in functions.values()), *KNOWN)
    listed_at = (
        f"{did_you_mean(name, known)}docs/sql.md lists them; one of your own is declared before it is called: "
        f"CREATE {kind} {name}(...) RETURNS ... LANGUAGE PYTHON AS 'module:{last}'."
    )
    return QueryError(f'function "{name}" is unknown', hint=INSTEAD.get(name, listed_at), place=place)
