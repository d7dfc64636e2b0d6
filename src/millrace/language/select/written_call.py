"""A call of an aggregate as it is written: what stands inside FILTER, IGNORE NULLS, WITHIN GROUP and DISTINCT."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from millrace.errors import QueryError
from millrace.language.expressions.calls import called_name
from millrace.language.expressions.sql_functions import AGGREGATE_NAMES

WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


@dataclass(frozen=True)
class WrittenCall:
    """A call without what stands around it; `where` are the conditions of FILTER and the like."""

    node: exp.Expr
    arguments: tuple[exp.Expr, ...]
    where: tuple[exp.Expr, ...] = ()
    distinct: bool = False
    orders: tuple[exp.Ordered, ...] = ()
    """What WITHIN GROUP orders by."""
    keeps_nulls: bool = False

    @property
    def name(self) -> str:
        return called_name(self.node)

    def where_known(self, *nodes: exp.Expr) -> WrittenCall:
        """The call over the rows where some expressions are not null."""
        known = (exp.Is(this=each.copy(), expression=exp.Null()).not_() for each in nodes)
        return replace(self, where=(*self.where, *known))


def written_call(node: exp.Expr) -> WrittenCall:
    """The call inside FILTER, IGNORE NULLS, WITHIN GROUP and DISTINCT."""
    match node:
        case exp.Filter():
            inner = written_call(node.this)
            return replace(inner, where=(*inner.where, node.expression.this))
        case exp.RespectNulls():
            return replace(written_call(node.this), keeps_nulls=True)
        case exp.IgnoreNulls():
            return ignoring_nulls(written_call(node.this))
        case exp.WithinGroup():
            return replace(written_call(node.this), orders=tuple(node.expression.expressions))
    given = tuple(node.expressions)
    if given and isinstance(given[0], exp.Distinct):
        return WrittenCall(node, tuple(given[0].expressions), distinct=True)
    return WrittenCall(node, given)


def ignoring_nulls(call: WrittenCall) -> WrittenCall:
    """`first(x) IGNORE NULLS` is first(x) over the rows where x is not null."""
    function = AGGREGATE_NAMES.get(call.name)
    if function not in ("first", "last", "collect_list", "collect_set"):
        raise QueryError(
            "IGNORE NULLS is only allowed with first, last, any_value and collect_list", hint="Leave it out."
        )
    return call if function.startswith("collect") else call.where_known(call.arguments[0])
