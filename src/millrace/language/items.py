"""The columns of a select list: their names, and what `*` stands for."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError
from millrace.kernel.expressions import Column
from millrace.language import typed
from millrace.language.aggregate_calls import is_aggregate, written_call
from millrace.language.calls import called_name
from millrace.language.functions import AGGREGATE_NAMES
from millrace.language.ranks import FUNCTIONS
from millrace.language.scopes import Relation, Scope
from millrace.language.statements import SelectItem
from millrace.language.typed import Typed
from millrace.language.windows import window_column

Named = list[tuple[str, Typed]]


def is_star(node: exp.Expr) -> bool:
    """Whether a node is `*` or `name.*`."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def starred(item: SelectItem, given: Relation) -> Named:
    """All columns."""
    node = item.expression
    if item.alias is not None or (isinstance(node, exp.Star) and any(node.args.values())):
        raise QueryError("* takes neither a name nor EXCEPT", hint="Name the columns that you want.", place=item.place)
    if isinstance(node, exp.Column):
        given.scope.check_qualifier(node, item.place)
    return [(each.name, typed.column(each.name, each.type, item.place)) for each in given.schema]


def output_name(item: SelectItem, bound: Typed, position: int) -> str:
    """The name of a result column: its alias, its column, `count`, `sum_len`, or its position."""
    if item.alias is not None:
        return item.alias.text
    node = item.expression
    if isinstance(node, exp.Column):
        bounds = window_column(node, Scope(pa.schema([])))
        return bounds or (bound.expression.name if isinstance(bound.expression, Column) else node.name)
    if isinstance(node, exp.Window) and called_name(node.this) in FUNCTIONS:
        return called_name(node.this)
    return _aggregate_name(node, item) or f"c{position}"


def _aggregate_name(node: exp.Expr, item: SelectItem) -> str | None:
    """`count`, or the aggregate with its column: sum_len, count_distinct_len."""
    if not is_aggregate(node, {}):
        return None
    call = written_call(node, item.place)
    name = "avg" if call.name == "mean" else call.name
    if len(call.arguments) != 1 or name not in AGGREGATE_NAMES:
        return None
    argument = call.arguments[0]
    if not isinstance(argument, exp.Column):
        return name if name in ("count", "count_if") and not call.distinct else None
    return f"{name}_distinct_{argument.name}" if call.distinct else f"{name}_{argument.name}"


def check_names(columns: Named) -> None:
    """Refuse names that are there twice or are ours, and columns without a type."""
    seen: set[str] = set()
    for name, bound in columns:
        if name.lower() in seen:
            raise QueryError(
                f'two columns are named "{name}"', hint="Give one of them another name with AS.", place=bound.place
            )
        if name.lower().startswith("__"):
            raise QueryError(
                f'the name "{name}" is reserved',
                hint="Names with two underscores in front are ours.",
                place=bound.place,
            )
        if pa.types.is_null(bound.type):
            raise QueryError(f'column "{name}" has no type', hint="Write CAST(NULL AS type).", place=bound.place)
        seen.add(name.lower())
