"""Which columns of its inputs an operator reads to give some of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millrace.kernel.expressions import Expression
from millrace.plan.levels import is_prefix
from millrace.plan.nodes import (
    Aggregate,
    AnyJoin,
    Distinct,
    Filter,
    Following,
    Join,
    Node,
    Project,
    Rank,
    RowsJoin,
    Scan,
    inputs_of,
)


def reads(expressions: Iterable[Expression], also: Iterable[str] = ()) -> list[str]:
    """The columns that expressions read, and others, each once."""
    return list(dict.fromkeys([*also, *(name for each in expressions for name in each.columns())]))


def read_of_inputs(node: Node, wanted: Sequence[str]) -> list[list[str]]:
    """For each input of a node the columns that it reads to give the wanted ones."""
    match node:
        case Scan():
            return []
        case Filter():
            return [reads([node.predicate], wanted)]
        case Project():
            return [reads(each for name, each in node.columns if name in wanted)]
        case Aggregate():
            return [reads(node.expressions())]
        case Distinct():
            return [list(node.schema.names)]
        case Rank():
            return [node.reads(wanted)]
        case Join() | RowsJoin() | Following():
            return [_read_of_side(node, position, wanted) for position in range(len(node.inputs))]
        case _:
            return [list(wanted) for _ in inputs_of(node)]


def _read_of_side(node: AnyJoin, position: int, wanted: Sequence[str]) -> list[str]:
    """What a join reads of one input; all of it where rows of equal time are told apart by what is in them."""
    given = node.inputs[position].schema.names
    match node:
        case Join():
            side = node.sides[position]
            own = [*side.keys, *([side.until] if side.until is not None else [])]
            read = reads([node.residual] if node.residual is not None else [], [*wanted, *own])
        case _ if not is_prefix(node.inputs[position]):
            return list(given)
        case RowsJoin():
            own = [*node.sides[position].keys, *node.sides[position].partition]
            read = reads([node.residual] if node.residual is not None else [], [*wanted, *own])
        case Following():
            read = [*wanted, *node.keys[position]]
    return [name for name in given if name in read]
