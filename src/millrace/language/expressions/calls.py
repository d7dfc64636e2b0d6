"""Function calls: a name and its arguments into a function of the kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place, QueryError, did_you_mean
from millrace.kernel.columns.sql_types import sql_name
from millrace.kernel.columns.user_functions import UserCall, UserFunction
from millrace.language.expressions import typed
from millrace.language.expressions.functions import FUNCTIONS
from millrace.language.expressions.functions.argument_types import arguments_of
from millrace.language.expressions.functions.declaration import ANY_NUMBER, Function
from millrace.language.expressions.special_calls import SPECIAL_CALLS
from millrace.language.expressions.sql_functions import AGGREGATE_NAMES, GENERATORS, INSTEAD, KNOWN, RANKS
from millrace.language.expressions.time_calls import checked
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.script_parser import parse_expression
from millrace.language.grammar.text.places import place_of, unplaced

if TYPE_CHECKING:
    from millrace.language.expressions.expression_binder import ExpressionBinder

Functions = Mapping[str, UserFunction]
"""The functions that users have defined, by name in lower case."""
NO_FUNCTIONS: Functions = {}
_RANK = "Write {}() OVER (PARTITION BY window_start ORDER BY n DESC), over the results of a window."


def called_name(node: exp.Expr) -> str:
    """The name of a function call in lower case; empty for any other node."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def bind_call(binder: ExpressionBinder, node: exp.Anonymous) -> Typed:
    """A call of a scalar function; refuses aggregates and unknown names."""
    name, given = called_name(node), node.expressions
    if name in AGGREGATE_NAMES:
        raise misplaced_aggregate(node)
    if name in binder.functions:
        return _user_call(binder, binder.functions[name], given)
    if name not in FUNCTIONS:
        raise _unknown(name, binder.functions)
    function = FUNCTIONS[name]
    check_count(name, len(given), function.least, function.most, function.form)
    if function.name in SPECIAL_CALLS:
        return SPECIAL_CALLS[function.name](binder, function.name, given)
    arguments = arguments_of(function, [binder.bind(each) for each in given])
    if function.means:
        return _meant(binder, function, arguments)
    return typed.call(function.function, checked(function.function, arguments), form=function.form)


def _meant(binder: ExpressionBinder, function: Function, arguments: Sequence[Typed]) -> Typed:
    """The expression that a call stands for."""
    names = [each.name for each in function.parameters]
    return binder.with_variables(_body(function.means, tuple(names)), dict(zip(names, arguments, strict=False)))


@lru_cache(maxsize=256)
def _body(text: str, names: tuple[str, ...]) -> exp.Expr:
    """An expression over variables, as it is written after `->`."""
    return unplaced(parse_expression(f"f(({', '.join(names)}) -> {text})").expressions[0].this)


def misplaced_aggregate(node: exp.Expr) -> QueryError:
    """The refusal of an aggregate where none may stand."""
    return QueryError(
        f'the aggregate "{called_name(node)}" is not allowed here',
        hint="Aggregates are allowed in the select list and in HAVING, not inside one another: for the aggregate of an "
        "aggregate write a query around it, FROM (SELECT count(*) AS n FROM s [RANGE ...]) [RANGE ...].",
        place=place_of(node),
    )


def check_count(name: str, count: int, least: int, most: int | None = None, example: str = "") -> None:
    """Refuse a call with fewer arguments than `least`, or more than `most`, which is by default the same number."""
    most = least if most is None else most
    if least <= count <= most:
        return
    wanted = f"at least {least}" if most == ANY_NUMBER else f"{least} to {most}" if least < most else str(least)
    raise QueryError(
        f'"{name}" takes {wanted} argument{"" if wanted.endswith(" 1") or wanted == "1" else "s"}, not {count}',
        hint=example or "Check the commas and parentheses of the call.",
    )


def _user_call(binder: ExpressionBinder, function: UserFunction, given: Sequence[exp.Expr]) -> Typed:
    """A call of a function of the user's own; it is computed for rows alone, not for constants."""
    kinds = ", ".join(map(sql_name, function.arguments))
    check_count(
        function.name, len(given), len(function.arguments), example=f"It is declared as {function.name}({kinds})."
    )
    pairs = zip(given, function.arguments, strict=True)
    arguments = tuple(typed.brought(binder.bind(each), kind).expression for each, kind in pairs)
    return Typed(UserCall(function, arguments), pa.array([], function.returns))


def refuse_unknown(nodes: Iterable[exp.Expr], functions: Functions, aggregates: Collection[str] = ()) -> None:
    """Refuse calls of unknown functions, which may be meant as aggregates; functions with OVER are not checked."""
    for node in nodes:
        for each in node.walk(prune=lambda inner: isinstance(inner, exp.Window)):
            if isinstance(each, exp.Anonymous) and called_name(each) not in (*KNOWN, *functions, *aggregates):
                raise _unknown(called_name(each), functions, place_of(each), "AGGREGATE", "Class")


def _unknown(
    name: str, functions: Functions, place: Place | None = None, kind: str = "FUNCTION", last: str = "function"
) -> QueryError:
    if name in GENERATORS:
        return QueryError(f'"{name}" is no part of an expression', hint=INSTEAD[name], place=place)
    if name in RANKS:
        return QueryError(f'"{name}" stands without OVER', hint=_RANK.format(name), place=place)
    known = (*(each.name for each in functions.values()), *KNOWN)
    listed_at = (
        f"{did_you_mean(name, known, near=0.75)}docs/functions.md lists them; one of your own is declared before it is "
        f"called: CREATE {kind} {name}(...) RETURNS ... LANGUAGE PYTHON AS 'module:{last}'."
    )
    return QueryError(f'function "{name}" is unknown', hint=INSTEAD.get(name, listed_at), place=place)
