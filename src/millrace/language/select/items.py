"""The columns of a select list: their names, and what `*` stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError, listed
from millrace.kernel.columns.expressions import Column
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.calls import called_name
from millrace.language.expressions.scopes import Scope
from millrace.language.expressions.sql_functions import AGGREGATE_NAMES, RANKS
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.statements import Name, SelectItem
from millrace.language.select.aggregate_calls import is_aggregate
from millrace.language.select.written_call import written_call
from millrace.language.windows.window_clauses import window_column

Named = list[tuple[str, Typed]]


def is_star(node: exp.Expr) -> bool:
    """True if a node is `*` or `name.*`."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


@dataclass(frozen=True)
class Output:
    """A column of a select list: its name, and another for where columns of several inputs have that name.

    `once` says that it is the one column that USING has made of several, which keeps the name.
    """

    name: str
    value: Typed
    otherwise: str | None = None
    once: bool = False


def starred(item: SelectItem, given: BoundRelation) -> list[Output]:
    """All columns, or all of an input."""
    node = item.expression
    star = node.this if isinstance(node, exp.Column) else node
    if item.alias is not None or star.args.get("replace") or star.args.get("rename"):
        raise QueryError(
            "* takes neither a name nor REPLACE or RENAME", hint="Name the columns that you want.", place=item.place
        )
    return [_output(name, value, given.scope) for name, value in given.scope.starred(node, item.place)]


def _output(name: str, value: Typed, scope: Scope) -> Output:
    shown, otherwise = scope.shown(name)
    return Output(shown, value, otherwise, once=otherwise is None)


def output(item: SelectItem, bound: Typed, position: int, scope: Scope) -> Output:
    """A result column under its alias, or as its column, `count`, `sum_len`, or its position says."""
    if item.alias is not None:
        return Output(item.alias.text, bound)
    node = item.expression
    if isinstance(node, exp.Column):
        bounds = window_column(node, Scope(pa.schema([])))
        if bounds is None and (once := scope.merged_name(node)) is not None:
            return Output(once, bound, once=True)
        if scope.split(node)[1]:
            return Output(node.name, bound)
        if bounds is not None or not isinstance(bound.expression, Column):
            return Output(bounds or node.name, bound)
        return _output(scope.meant(node) or bound.expression.name, bound, scope)
    if isinstance(node, exp.Window) and called_name(node.this) in RANKS:
        return Output(called_name(node.this), bound)
    return Output(_aggregate_name(node) or f"c{position}", bound)


def named(outputs: Sequence[Output]) -> Named:
    """The columns under their names: `input_column` for those that have the same name in several inputs."""
    inputs: dict[str, set[str]] = {}
    for each in outputs:
        if each.otherwise is not None or each.once:
            inputs.setdefault(each.name.lower(), set()).add(each.otherwise or each.name)
    several = {name for name, found in inputs.items() if len(found) > 1}
    columns = [
        (each.otherwise if each.otherwise is not None and each.name.lower() in several else each.name, each.value)
        for each in outputs
    ]
    check_column_names(columns)
    return columns


def _aggregate_name(node: exp.Expr) -> str | None:
    """`count`, or the aggregate with its column: sum_len, count_distinct_len."""
    if not is_aggregate(node, {}):
        return None
    call = written_call(node)
    name = "avg" if call.name == "mean" else call.name
    if len(call.arguments) != 1 or name not in AGGREGATE_NAMES:
        return None
    argument = call.arguments[0]
    if not isinstance(argument, exp.Column):
        return name if name in ("count", "count_if") and not call.distinct else None
    return f"{name}_distinct_{argument.name}" if call.distinct else f"{name}_{argument.name}"


def check_column_names(columns: Named) -> None:
    """Refuse names that occur twice or are reserved, and columns without a type."""
    seen: set[str] = set()
    for name, bound in columns:
        if name.lower() in seen:
            raise QueryError(
                f'two columns are named "{name}"', hint="Give one of them another name with AS.", place=bound.place
            )
        if name.lower().startswith("__"):
            raise QueryError(
                f'the name "{name}" is reserved',
                hint="Names that begin with two underscores are reserved for Millrace.",
                place=bound.place,
            )
        if pa.types.is_null(bound.type):
            raise QueryError(f'column "{name}" has no type', hint="Write CAST(NULL AS type).", place=bound.place)
        seen.add(name.lower())


def renamed(relation: BoundRelation, columns: tuple[Name, ...]) -> BoundRelation:
    """The rows under the names that WITH, a view or a subquery gives to the columns."""
    names = relation.schema.names
    if len(columns) != len(names):
        raise QueryError(
            f"{len(columns)} names are given for {len(names)} columns",
            hint=f"The columns are {listed(names)}: name all of them.",
            place=columns[-1].place,
        )
    for position, name in enumerate(columns):
        if name.text.lower() in (each.text.lower() for each in columns[:position]):
            raise QueryError(f'two columns are named "{name.text}"', hint="Choose another name.", place=name.place)
    return relation.renamed([each.text for each in columns])
