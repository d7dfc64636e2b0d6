"""The same rows under another progressing attribute: a further time column, or the number of each row."""

from __future__ import annotations

from dataclasses import replace

from millrace.kernel.columns.expressions import Column
from millrace.kernel.progress.time_contract import SEQUENCE
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import Explode, Filter, Numbered, Project, Scan, Union
from millrace.plan.nodes.table_nodes import TableJoin


def progressing_by(node: Node, column: str) -> Node | None:
    """The rows with a declared time column as their own time; None where some stream below does not declare it.

    A column that a projection has dropped can still be what the rows progress by.
    """
    match node:
        case Scan():
            return _scan_by(node, column)
        case Filter() | Explode() | TableJoin():
            below = progressing_by(node.input, column)
            return None if below is None else replace(node, input=below)
        case Project():
            meant = dict(node.columns).get(column, Column(column))
            below = progressing_by(node.input, meant.name) if isinstance(meant, Column) else None
            return None if below is None else replace(node, input=below)
        case Union():
            inputs = [progressing_by(each, column) for each in node.inputs]
            found = tuple(each for each in inputs if each is not None)
            return replace(node, inputs=found) if len(found) == len(inputs) else None
        case _:
            return None


def _scan_by(scan: Scan, column: str) -> Scan | None:
    time, name = scan.stream.time, column.lower()
    if scan.outlet:
        return None
    if time.column is not None and time.column.lower() == name:
        return scan
    found = next((each for each, _ in time.also if each.lower() == name), None)
    return None if found is None else replace(scan, outlet=found)


def numbered(node: Node) -> Node | None:
    """The rows with their number on entry as their own time; None where rows have none.

    A stream numbers its rows before any filter, a union by time, input and order in the input.
    """
    match node:
        case Scan(outlet=""):
            return replace(node, outlet=SEQUENCE)
        case Filter() | Project() | TableJoin():
            below = numbered(node.input)
            return None if below is None else replace(node, input=below)
        case Union():
            # The results of a window have no order among each other.
            return None if any(isinstance(each, Aggregate) for each in walk(node)) else Numbered(node)
        case _:
            return None
