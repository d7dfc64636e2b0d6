"""Call a user function, and from_json, once per row, however often a query writes the call.

Rules:
- A call that filters and projections above each other need several times is computed in a projection below the first
  of them, and read as a column from then on.
- Only a call that is computed for all rows anyway is moved there: one that stands in a branch of CASE alone is not, for
  it may fail on rows that are not meant for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import count

from millrace.kernel.columns.expressions import Call, Column, Expression
from millrace.kernel.columns.lambdas import is_free
from millrace.kernel.columns.nested.json_functions import COUNTED
from millrace.kernel.columns.short_circuit import computed_everywhere
from millrace.kernel.columns.user_functions import UserCall
from millrace.plan.nodes.conditions import substituted
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Filter, Project

Calls = Mapping[Expression, str]
"""Calls, each with the column that holds its value."""


def user_calls_once(node: Node) -> Node:
    """The tree with calls that are written several times computed once."""
    found, _ = _shared(node, frozenset())
    names = node.column_names()
    return found if found.column_names() == names else Project(found, tuple((name, Column(name)) for name in names))


def _shared(node: Node, wanted: AbstractSet[Expression]) -> tuple[Node, Calls]:
    """A node, and the calls among those wanted above that its columns hold, some of them columns of their own."""
    match node:
        case Filter():
            below, known = _shared(node.input, wanted | set(_calls([node.predicate])))
            below, known, (predicate,) = _computed(below, known, [node.predicate], wanted)
            return Filter(below, predicate), known
        case Project():
            given = dict(node.columns)
            below, known = _shared(node.input, set(_calls(given.values())))
            below, _, values = _computed(below, known, list(given.values()), frozenset())
            held = {each: name for name, each in given.items()}
            inside = {call: substituted(call, given) for call in wanted}
            return (
                Project(below, tuple(zip(given, values, strict=True))),
                {call: held[each] for call, each in inside.items() if each in held},
            )
        case _:
            return node.map_children(user_calls_once), {}


def _computed(
    below: Node, known: Calls, expressions: Sequence[Expression], wanted: AbstractSet[Expression]
) -> tuple[Node, Calls, list[Expression]]:
    """A node with the calls that expressions make several times as columns, and the expressions over it."""
    if not any(each.is_guarded for each in expressions):
        return below, known, list(expressions)
    columns = dict(known)
    over = [_over(each, columns) for each in expressions]
    made: list[tuple[str, Expression]] = []
    while (call := _next(over, made, wanted)) is not None:
        name = _unused({*below.column_names(), *columns.values()})
        columns[call] = name
        over = [_over(each, {call: name}) for each in over]
        made = [*((other, _over(each, {call: name})) for other, each in made), (name, call)]
    # What was found last stands inside what was found before.
    for name, each in reversed(made):
        below = Project(below, (*((column, Column(column)) for column in below.column_names()), (name, each)))
    return below, columns, over


def _unused(names: AbstractSet[str]) -> str:
    return next(name for number in count() if (name := f"__u{number}") not in names)


def _next(
    expressions: Sequence[Expression], made: Sequence[tuple[str, Expression]], wanted: AbstractSet[Expression]
) -> Expression | None:
    """The outermost call that is needed more than once, if there is one."""
    inside = [argument for _, each in made for argument in each.children()]
    counts = Counter(_calls([*expressions, *inside]))
    everywhere = {call for each in (*expressions, *inside) for call in _everywhere(each)}
    several = [call for call in counts if call in everywhere and (counts[call] > 1 or call in wanted)]
    return max(several, key=lambda each: len(list(each.parts())), default=None)


def _calls(expressions: Iterable[Expression]) -> Iterator[Expression]:
    return (part for each in expressions for part in each.parts() if _is_counted(part))


def _is_counted(part: Expression) -> bool:
    is_call = isinstance(part, UserCall) or (isinstance(part, Call) and part.function in COUNTED)
    return is_call and is_free(part)


def _everywhere(expression: Expression) -> Iterator[Expression]:
    """The calls inside an expression that are computed for all rows."""
    if _is_counted(expression):
        yield expression
    inner = expression.children()
    if isinstance(expression, Call) and expression.is_guarded:
        inner = tuple(computed_everywhere(expression.function, inner))
    for each in inner:
        yield from _everywhere(each)


def _over(expression: Expression, columns: Calls) -> Expression:
    """An expression with calls read from columns that hold them."""
    if expression in columns:
        return Column(columns[expression])
    return expression.with_children([_over(each, columns) for each in expression.children()])
