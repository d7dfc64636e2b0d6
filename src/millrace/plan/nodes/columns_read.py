"""Which columns of its inputs an operator reads to give some of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from millrace.kernel.columns.expressions import Expression
from millrace.plan.nodes.network import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    AnyJoin,
    Distinct,
    Filter,
    Following,
    Join,
    MarkedAggregate,
    Node,
    Project,
    Rank,
    RowsJoin,
    Scan,
    UpdateJoin,
    UpdateQueue,
    WindowQueue,
    inputs_of,
)
from millrace.plan.nodes.prefix import keeps_entry


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
            return [names_of(node)]
        case Rank():
            return [node.reads(wanted)]
        case MarkedAggregate():
            return [reads(node.aggregate.expressions())]
        case UpdateQueue() | WindowQueue():
            return [list(dict.fromkeys([*wanted, *(node.key or ())])) for _ in node.inputs]
        case Join() | RowsJoin() | Following() | UpdateJoin():
            return [_read_of_side(node, position, wanted) for position in range(len(node.inputs))]
        case _:
            return [list(wanted) for _ in inputs_of(node)]


def names_of(node: Node) -> list[str]:
    """The names of a node's columns; that is much less work than its schema."""
    match node:
        case Scan():
            return list(node.stream.schema.names)
        case Project():
            return [name for name, _ in node.columns]
        case Aggregate():
            bounds = [] if node.bounds_type is None else [WINDOW_START, WINDOW_END]
            return [*bounds, *(name for name, _ in node.keys), *(each.name for each in node.aggregations)]
        case Rank():
            return [*names_of(node.input), node.name]
        case MarkedAggregate():
            return names_of(node.aggregate)
        case Join() | RowsJoin() | Following() | UpdateJoin():
            return [name for each in node.inputs for name in names_of(each)]
        case _:
            return names_of(inputs_of(node)[0])


def columns_of(node: Node, wanted: Sequence[str], stream: str) -> Iterator[str]:
    """The columns of a stream that a tree reads to give the wanted ones."""
    if isinstance(node, Scan):
        yield from wanted if node.stream.name == stream else ()
    for each, read in zip(inputs_of(node), read_of_inputs(node, wanted), strict=True):
        yield from columns_of(each, read, stream)


def _read_of_side(node: AnyJoin | UpdateJoin, position: int, wanted: Sequence[str]) -> list[str]:
    """What a join reads of one input; all of it where rows of equal time are told apart by what is in them."""
    given = names_of(node.inputs[position])
    match node:
        case Join():
            side = node.sides[position]
            own = [*side.keys, *([side.until] if side.until is not None else [])]
            read = reads([node.residual] if node.residual is not None else [], [*wanted, *own])
        case UpdateJoin():
            read = reads([node.residual] if node.residual is not None else [], [*wanted, *node.keys[position]])
        case _ if not keeps_entry(node.inputs[position]):
            return list(given)
        case RowsJoin():
            own = [*node.sides[position].keys, *node.sides[position].partition]
            read = reads([node.residual] if node.residual is not None else [], [*wanted, *own])
        case Following():
            read = [*wanted, *node.keys[position]]
    return [name for name in given if name in read]
