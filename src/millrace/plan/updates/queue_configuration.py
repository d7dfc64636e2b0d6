"""What a query tells its queues: their settings, and how often their keys are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from millrace.kernel.columns.expressions import Column, Expression
from millrace.kernel.updates.queue_settings import LOSSLESS, Access, QueueSettings
from millrace.plan.nodes.conditions import substituted
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query
from millrace.plan.nodes.relational_nodes import Project, scans_of
from millrace.plan.nodes.update_nodes import AnyQueue, UpdateJoin, UpdateQueue
from millrace.plan.updates.update_keys import held_by

PER_QUEUE = ("queue", "keep", "memory", "budget")
"""The options that the queues of a query may have each for itself."""
POLICY = "inplace"
"""The policy of queues where neither query nor stream says one."""


def is_append(options: Mapping[str, str]) -> bool:
    """True if a query is an ordinary one behind append queues."""
    return options.get("queue") in LOSSLESS


def settings_of(options: Mapping[str, str], access: tuple[Access, ...] = ()) -> QueueSettings:
    """The settings of queues of a query with these options.

    >>> settings_of({"queue": "append_shed", "keep": "0.5", "budget": "500 rows"}).budget_rows
    500
    """
    budget, _, unit = options.get("budget", "").partition(" ")
    return QueueSettings(
        policy=options.get("queue", POLICY),
        keep=float(options["keep"]) if "keep" in options else None,
        memory=options.get("memory", "released"),
        budget_rows=int(budget) if unit == "rows" else None,
        budget_time=int(budget) if budget and not unit else None,
        access=access,
    )


def options_at(queue: AnyQueue, options: Mapping[str, str]) -> Mapping[str, str]:
    """The options of one queue of a query: where the query does not say them, those of the stream that it reads."""
    streams = {scan.stream.name: scan.stream for each in queue.inputs for scan in scans_of(each)}
    if len(streams) != 1 or not isinstance(queue, UpdateQueue):
        return options
    (stream,) = streams.values()
    found = {**{key: stream.options[key] for key in PER_QUEUE if key in stream.options}, **options}
    if found.get("queue") != "append_shed":
        found.pop("keep", None)
    return found


def access_at(path: str, query: Query, root: Node) -> tuple[Access, ...]:
    """How often the keys of a queue at a place in a query's tree are read, under the names that its rows have there."""
    if not query.access:
        return ()
    names: Mapping[str, str] = {name: name for name in query.root.schema.names}
    node = root
    for position in path.removeprefix(query.name).split(".")[1:]:
        names = _below(node, int(position), names)
        node = node.children()[int(position)]
    given: dict[str, Expression] = {name: Column(own) for name, own in names.items()}
    return tuple(
        each if each.when is None else replace(each, when=substituted(each.when, given)) for each in query.access
    )


def _below(node: Node, position: int, names: Mapping[str, str]) -> dict[str, str]:
    """By the names above a node: what one of its inputs calls the columns that it passes on as they are."""
    match node:
        case Project(columns=columns):
            schema = node.input.schema
            held = {name: column for name, each in columns if (column := held_by(each, schema)) is not None}
        case UpdateJoin():
            held = {name: name for name in node.inputs[position].schema.names}
            for other in node.keys:
                held |= dict(zip(other, node.keys[position], strict=True))
        case _:
            return dict(names)
    return {name: held[own] for name, own in names.items() if own in held}
