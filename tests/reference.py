"""A naive evaluation of finished inputs, row by row, written to be obviously right.

It shares with the product the plan's nodes and the scalar functions (checked against DuckDB elsewhere), and nothing
of the kernel: no batches, no panes, no state. What a stream's edge lets in is worked out from all rows before each
row (`reference_admission`), a window from all rows of its group (`reference_windows`), an aggregate from all rows of
its window (`reference_aggregates`), a join by nested loops (`reference_joins`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from millrace.kernel.progress.time_contract import LATE, SEQUENCE
from millrace.plan.nodes.aggregate_nodes import WINDOW_END, WINDOW_START, Aggregate
from millrace.plan.nodes.join_nodes import Following, Join, RowsJoin
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query
from millrace.plan.nodes.relational_nodes import (
    Distinct,
    Explode,
    Filter,
    Numbered,
    OrderByTime,
    Project,
    Rank,
    Scan,
    Since,
    Slack,
    Union,
)
from millrace.plan.updates.queue_placement import key_of
from tests.reference_admission import admitted
from tests.reference_aggregates import Between, aggregate
from tests.reference_joins import joined
from tests.reference_values import TIME, Row, micros, nulls_first, timestamp, value_of, values_of
from tests.reference_windows import Frame, frames

__all__ = ["admitted", "evaluate", "multiset", "same", "settled"]

Inputs = Mapping[str, Iterable[Row]]


def evaluate(query: Query, inputs: Inputs) -> list[Row]:
    """The result rows of a query over whole inputs."""
    rows = _rows(query.root, inputs)
    return [{name: value for name, value in row.items() if name != TIME} for row in rows]


def settled(query: Query, inputs: Inputs) -> list[Row]:
    """The last answer of each key of an update query, by their own time; of one time the last in order of inputs."""
    key = key_of(query)
    assert key is not None
    last = {
        tuple(row[name] for name in key): row for row in sorted(_rows(query.root, inputs), key=lambda row: row[TIME])
    }
    return [{name: value for name, value in row.items() if name != TIME} for row in last.values()]


def _rows(node: Node, inputs: Inputs) -> list[Row]:
    match node:
        case Scan():
            return _scanned(node, list(inputs[node.stream.name]))
        case Union():
            return [row for each in node.inputs for row in _rows(each, inputs)]
        case Join() | RowsJoin() | Following():
            return joined(node, [_rows(each, inputs) for each in node.inputs])
        case _:
            return _applied(node, _rows(node.input, inputs))


def _applied(node: Node, rows: list[Row]) -> list[Row]:
    """What a node with one input makes of its rows."""
    match node:
        case Filter(predicate=predicate):
            answers = values_of(predicate, rows, node.schema)
            return [row for row, answer in zip(rows, answers, strict=True) if answer is True]
        case Project():
            return _projected(node, rows)
        case Explode():
            return [each for row in rows for each in _exploded(node, row)]
        case Numbered():
            in_order = sorted(rows, key=lambda row: row[TIME])
            return [{**row, TIME: number} for number, row in enumerate(in_order)]
        case Aggregate():
            return _aggregated(node, rows)
        case Distinct():
            return list({tuple(row[name] for name in node.schema.names): row for row in reversed(rows)}.values())
        case Rank():
            return _ranked(node, rows)
        case OrderByTime():
            return sorted(rows, key=lambda row: row[TIME])
        case Since(time=time):
            return [row for row in rows if row[TIME] >= time]
        case Slack():
            # Tests give more slack than there is disorder: it decides only when results come.
            return rows
    raise AssertionError(node)


def _scanned(node: Scan, rows: list[Row]) -> list[Row]:
    """The rows let in, or turned away as late, under the progressing attribute that is read."""
    contract = node.stream.time
    for name, expression in contract.computed:
        values = values_of(expression, rows, node.stream.schema)
        rows = [{**row, name: value} for row, value in zip(rows, values, strict=True)]
    if contract.kind == "external":
        wanted = "late" if node.outlet == LATE else "admitted"
        verdicts = [verdict for verdict, _ in admitted(contract, rows, node.stream.schema)]
        rows = [row for row, verdict in zip(rows, verdicts, strict=True) if verdict == wanted]
    if node.outlet in (SEQUENCE, LATE):
        return [{**row, TIME: number} for number, row in enumerate(rows)]
    column = node.outlet or contract.column
    return [{**row, TIME: micros(row[column])} for row in rows]


def _projected(node: Project, rows: list[Row]) -> list[Row]:
    columns = {name: values_of(each, rows, node.input.schema) for name, each in node.columns}
    return [{**{name: columns[name][place] for name in columns}, TIME: row[TIME]} for place, row in enumerate(rows)]


def _exploded(node: Explode, row: Row) -> list[Row]:
    elements = list(enumerate(value_of(node.array, row, node.input.schema) or []))
    made = elements or ([(None, None)] if node.outer else [])
    kept = {name: row[name] for name in (*node.kept, TIME)}
    return [
        {**kept, node.element: element, **({} if node.position is None else {node.position: place})}
        for place, element in made
    ]


def _aggregated(node: Aggregate, rows: list[Row]) -> list[Row]:
    schema = node.input.schema
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(value_of(key, row, schema) for _, key in node.keys)].append(row)
    return [
        {
            **_bounds(node, frame),
            **dict(zip([name for name, _ in node.keys], keys, strict=True)),
            **{each.name: aggregate(each, frame.rows, schema) for each in node.aggregations},
            TIME: frame.time,
        }
        for keys, members in groups.items()
        for frame in frames(node.window, members, lambda row: _counts(node, row))
    ]


def _counts(node: Aggregate, row: Row) -> bool:
    return node.where is None or value_of(node.where, row, node.input.schema) is True


def _bounds(node: Aggregate, frame: Frame) -> Row:
    kind = node.window.bounds_type
    if kind is None:
        return {}
    both = {WINDOW_START: frame.start, WINDOW_END: frame.end}
    if pa.types.is_integer(kind):
        return both
    return {name: None if bound is None else timestamp(bound) for name, bound in both.items()}


def _ranked(node: Rank, rows: list[Row]) -> list[Row]:
    parts: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        parts[(row[TIME], *(row[name] for name in node.partition))].append(row)
    ranked = [row for part in parts.values() for row in _ranks(node, part)]
    return [row for row in ranked if node.limit is None or row[node.name] <= node.limit]


def _ranks(node: Rank, part: list[Row]) -> Iterable[Row]:
    """The rows of one partition with their ranks."""
    by = [name for name, _ in node.order]
    ties = [(name, False) for name in node.input.schema.names if name not in by]
    for name, descending in reversed([*node.order, *ties]):
        part = sorted(part, key=lambda row, name=name: nulls_first(row[name]), reverse=descending)  # type: ignore[misc]
    values = [tuple(row[name] for name in by) for row in part]
    for place, row in enumerate(part):
        first = values.index(values[place])
        ranks = {"row_number": place, "rank": first, "dense_rank": len(set(values[:first]))}
        yield {**row, node.name: ranks[node.function] + 1, TIME: row[TIME]}


def multiset(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Rows in a form in which two multisets of them can be compared; fractions to twelve digits."""
    return sorted((tuple(_comparable(value) for value in row.values()) for row in rows), key=repr)


def _comparable(value: Any) -> Any:
    match value:
        case float():
            return float(f"{value:.12g}")
        case list():
            return tuple(map(_comparable, value))
        case dict():
            return tuple((name, _comparable(each)) for name, each in value.items())
    return value


def same(found: Iterable[Row], expected: Iterable[Row]) -> bool:
    """Whether two multisets of rows are the same but for the last digits and for what is approximate.

    Rows are matched by what is exact in them, then by their fractions.
    """
    theirs, ours = list(found), list(expected)
    ranges = {name for row in ours for name, value in row.items() if isinstance(value, Between)}
    fractions = {name for row in [*ours, *theirs] for name, value in row.items() if isinstance(value, float)} - ranges
    for rows in (theirs, ours):
        rows.sort(key=lambda row: _known_by(row, ranges, fractions))
    return len(theirs) == len(ours) and all(map(_same_row, theirs, ours))


def _known_by(row: Row, ranges: set[str], fractions: set[str]) -> tuple[str, list[Any]]:
    exact = [(name, value) for name, value in row.items() if name not in ranges | fractions]
    rounded = [nulls_first(None if row[name] is None else float(f"{row[name]:.6g}")) for name in sorted(fractions)]
    return repr(exact), rounded


def _same_row(found: Row, expected: Row) -> bool:
    return list(found) == list(expected) and all(_same_value(found[name], expected[name]) for name in expected)


def _same_value(found: Any, expected: Any) -> bool:
    if isinstance(expected, Between):
        return expected.holds(found)
    if isinstance(expected, float) and isinstance(found, float):
        return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
    return bool(found == expected)
