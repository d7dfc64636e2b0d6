"""Conditions over rows, taken apart and put together: what rules, joins and queues do with expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millrace.kernel.columns.expressions import Call, Column, Expression, Literal
from millrace.kernel.elements import INTERVAL


def conjuncts(condition: Expression) -> list[Expression]:
    """The conditions that a condition connects with AND."""
    if isinstance(condition, Call) and condition.function == "and":
        return [part for each in condition.arguments for part in conjuncts(each)]
    return [condition]


def all_of(conditions: Iterable[Expression]) -> Expression | None:
    """All conditions as one; None where there are none."""
    found = list(conditions)
    return Call("and", tuple(found)) if len(found) > 1 else next(iter(found), None)


def substituted(expression: Expression, given: Mapping[str, Expression]) -> Expression:
    """An expression with the values that columns stand for in the place of their names."""
    if isinstance(expression, Column):
        return given.get(expression.name, expression)
    return expression.with_children([substituted(each, given) for each in expression.children()])


def later(time: Expression, micros: int) -> Expression:
    """A TIMESTAMP moved later by a length of time."""
    if micros == 0:
        return time
    return Call("+" if micros > 0 else "-", (time, Literal(abs(micros), INTERVAL)))
