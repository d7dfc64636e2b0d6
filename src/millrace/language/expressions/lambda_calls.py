"""Calls with an expression of their own, `x -> x + 1`: a variable has the type of the elements that it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError
from millrace.kernel.columns.lambdas import LAMBDA_FUNCTIONS, LambdaCall, Variable
from millrace.kernel.columns.sql_types import sql_name
from millrace.language.expressions import typed
from millrace.language.expressions.functions import FUNCTIONS
from millrace.language.expressions.functions.argument_types import arguments_of
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.text.places import place_of

if TYPE_CHECKING:
    from millrace.language.expressions.expression_binder import ExpressionBinder

LAMBDA_CALLS = tuple(LAMBDA_FUNCTIONS)
_CONDITIONS = ("filter", "exists", "forall", "map_filter")


def lambda_call(binder: ExpressionBinder, name: str, given: Sequence[exp.Expr]) -> Typed:
    """A call of a function with an expression of its own."""
    plain = [each for each in given if not isinstance(each, exp.Lambda)]
    lambdas = [each for each in given if isinstance(each, exp.Lambda)]
    wanted = bool(lambdas) or name == "array_sort"
    counts = len(plain) == (2 if name in ("aggregate", "zip_with") else 1) and len(lambdas) <= 1 + (name == "aggregate")
    if not wanted or list(given) != [*plain, *lambdas] or not counts:
        hint = f"Write {FUNCTIONS[name].example}."
        raise QueryError(f'"{name}" takes an expression of elements', hint=hint, place=place_of(given[-1]))
    arguments = arguments_of(FUNCTIONS[name], [binder.bind(each) for each in plain])
    if not lambdas:
        return typed.call("array_sort", arguments)
    if name == "aggregate":
        return _aggregate(binder, arguments, lambdas)
    body, names = _body(binder, lambdas[0], _variable_types(name, arguments))
    if name in _CONDITIONS:
        body = typed.boolean(body, f"the condition of {name}")
    return _called(name, arguments, names, body)


def _variable_types(name: str, arguments: Sequence[Typed]) -> list[pa.DataType]:
    """The types of the variables that an expression may have."""
    first = arguments[0].type
    if pa.types.is_map(first):
        return [first.key_type, first.item_type]
    if name in ("exists", "forall"):
        return [first.value_type]
    if name in ("zip_with", "array_sort"):
        return [first.value_type, arguments[-1].type.value_type]
    return [first.value_type, pa.int32()]


def _body(binder: ExpressionBinder, node: exp.Expr, kinds: Sequence[pa.DataType]) -> tuple[Typed, tuple[str, ...]]:
    """The expression of a lambda, and the names of its variables in the kernel."""
    written = [each.name for each in node.expressions]
    if not 1 <= len(written) <= len(kinds) or len(set(written)) < len(written):
        fact = f"an expression of elements has {len(written)} variables here, not {' or '.join(_counts(kinds))}"
        raise QueryError(fact, hint="Write x -> expression, or (x, y) -> expression.")
    names = tuple(f"{name}#{len(binder.variables)}" for name in written)
    given = zip(written, names, kinds, strict=False)
    variables = {name: Typed(Variable(inner), pa.array([], kind)) for name, inner, kind in given}
    return binder.with_variables(node.this, {**binder.variables, **variables}), names


def _counts(kinds: Sequence[pa.DataType]) -> list[str]:
    return [str(count) for count in range(1, len(kinds) + 1)]


def _called(name: str, arguments: Sequence[Typed], names: tuple[str, ...], body: Typed) -> Typed:
    empty = pa.array([], body.type)
    values = (pa.array([], each.type) for each in arguments)
    try:
        value = LAMBDA_FUNCTIONS[name](lambda *_: empty, *values)
    except pa.ArrowException as error:
        kinds = ", ".join(sql_name(each.type) for each in arguments)
        hint = f"Write {FUNCTIONS[name].example}."
        raise QueryError(f'"{name}" cannot be computed for {kinds}: {error}', hint=hint) from error
    expression = LambdaCall(name, tuple(each.expression for each in arguments), names, body.expression)
    return Typed(expression, value)


def _aggregate(binder: ExpressionBinder, arguments: list[Typed], lambdas: Sequence[exp.Expr]) -> Typed:
    """The start is brought to the type of what an element more makes of it."""
    array, start = arguments
    body, names = _body(binder, lambdas[0], [start.type, array.type.value_type])
    if body.type != start.type:
        start = typed.unify([start, body])[0]
        body, names = _body(binder, lambdas[0], [start.type, array.type.value_type])
        body = typed.cast(body, start.type)
    found = _called("aggregate", [array, start], names, body)
    if len(lambdas) == 1:
        return found
    (name,) = (each.name for each in lambdas[1].expressions[:1])
    return binder.with_variables(lambdas[1].this, {**binder.variables, name: found})
