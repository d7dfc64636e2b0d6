"""By which columns the rows of a tree must be, or are, spread over buckets."""

from __future__ import annotations

from millrace.kernel.columns.expressions import Column
from millrace.plan.nodes.network import (
    Aggregate,
    AnyQueue,
    Distinct,
    Filter,
    Following,
    Join,
    MarkedAggregate,
    Node,
    Numbered,
    OrderByTime,
    Project,
    Rank,
    RowsJoin,
    Union,
    UpdateJoin,
    UpdateQueue,
    WindowQueue,
    inputs_of,
)

Keys = tuple[str, ...]


def is_over_queue(node: Node) -> bool:
    """Whether a tree is a queue under filters and projections alone."""
    return is_over_queue(node.input) if isinstance(node, Filter | Project) else isinstance(node, AnyQueue)


def read_as(node: Filter | Project, keys: Keys | None) -> Keys | None:
    """What a map's input calls columns that it gives; None if one of them is computed."""
    if keys is None or isinstance(node, Filter):
        return keys
    read = {name: each.name for name, each in node.columns if isinstance(each, Column)}
    return tuple(read[name] for name in keys) if all(name in read for name in keys) else None


def keys_of(node: Node, position: int = 0) -> Keys | None:
    """The columns of an input of which an operator needs equal values to meet; None where it has no keys."""
    match node:
        case Join():
            return node.sides[position].keys
        case Following() | UpdateJoin():
            return node.keys[position]
        case UpdateQueue() | WindowQueue():
            return node.key
        case RowsJoin():
            # Rows are counted by partition, so those of a partition must be together as well.
            counted = [each for each in node.sides if each.rows is not None]
            places = range(len(node.sides[0].keys))
            shared = [place for place in places if all(each.keys[place] in each.partition for each in counted)]
            return tuple(node.sides[position].keys[place] for place in shared)
        case Aggregate():
            return tuple(name for name, _ in node.keys)
        case Distinct():
            return tuple(node.schema.names)
        case Rank():
            return node.partition
        case OrderByTime() | Numbered():
            return ()
        case _:
            return None


def _renamed(node: Node, spread: Keys) -> Keys | None:
    """The columns by which rows are spread, under the names that a node gives them; None if one is lost."""
    match node:
        case Project(columns=columns) | MarkedAggregate(aggregate=Aggregate(keys=columns)):
            given = {each.name: name for name, each in columns if isinstance(each, Column)}
        case _:
            return spread
    found = tuple(given[name] for name in spread if name in given)
    return found if len(found) == len(spread) else None


def all_renamed(node: Node, spread: tuple[Keys, ...]) -> tuple[Keys, ...]:
    """The same for several ways to say it, without those that are lost."""
    return tuple(found for each in spread if (found := _renamed(node, each)) is not None)


def read_by(node: Node) -> tuple[Node, ...]:
    """What an operator reads: an ordered union is one operator, not a union and a sort; a numbered one too."""
    if isinstance(node, OrderByTime | Numbered) and isinstance(node.input, Union):
        return node.input.inputs
    return inputs_of(node)
