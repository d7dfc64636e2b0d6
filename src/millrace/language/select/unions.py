"""Bag unions: columns by position, names of the first input, numbers brought to the wider type."""

from __future__ import annotations

import pyarrow as pa

from millrace.errors import Place, QueryError
from millrace.kernel.columns.expressions import Cast, Column, Expression
from millrace.kernel.columns.sql_types import sql_name
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.typed import common_type, is_number
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Project, Union


def union(inputs: list[BoundRelation], place: Place | None, truth: int | None = None) -> BoundRelation:
    """All rows of all inputs; the one input itself when there is no other. `truth` is the input that wins."""
    if len(inputs) == 1:
        return inputs[0]
    first = inputs[0]
    for other in inputs[1:]:
        _check_count(first, other, place)
    kinds = [_kind_at(position, inputs, place) for position in range(len(first.schema))]
    schema = pa.schema(list(zip(first.schema.names, kinds, strict=True)))
    _check_units(inputs, place)
    node = Union(tuple(_brought_to(each, schema) for each in inputs), truth)
    times, untimed = _times(inputs)
    hidden = frozenset.intersection(*(each.hidden_times for each in inputs)) | _nearly_times(inputs)
    label = " UNION ".join(each.label for each in inputs)
    return BoundRelation(node, schema, label, times, hidden, untimed, unit=first.unit)


def _check_count(first: BoundRelation, other: BoundRelation, place: Place | None) -> None:
    if len(first.schema) != len(other.schema):
        raise QueryError(
            f'"{first.label}" has {len(first.schema)} columns and "{other.label}" has {len(other.schema)}',
            hint="A union needs the same columns in the same order: select them in a subquery.",
            place=place,
        )


def _check_units(inputs: list[BoundRelation], place: Place | None) -> None:
    """Refuse a union of rows that progress by number and rows that progress by time."""
    if len({each.unit for each in inputs}) > 1:
        rows = any(each.unit == "rows" for each in inputs)
        what = "results of ROWS windows" if rows else "rows that progress by a number"
        raise QueryError(
            f"a union cannot mix {what} with rows that have a time",
            hint="Use time windows in all inputs, or write one query for each.",
            place=place,
        )


def _kind_at(position: int, inputs: list[BoundRelation], place: Place | None) -> pa.DataType:
    fields = [each.schema.field(position) for each in inputs]
    for other, relation in zip(fields[1:], inputs[1:], strict=True):
        if other.type != fields[0].type and not (is_number(other.type) and is_number(fields[0].type)):
            raise QueryError(
                f'column "{fields[0].name}" of "{inputs[0].label}" is {sql_name(fields[0].type)}, '
                f'but column "{other.name}" of "{relation.label}" is {sql_name(other.type)}',
                hint="A union pairs columns by position: bring them to one order and type in a subquery.",
                place=place,
            )
    kind = common_type([each.type for each in fields])
    assert kind is not None
    return kind


def _brought_to(relation: BoundRelation, schema: pa.Schema) -> Node:
    """The input's node, with a projection when its names or types differ."""
    if relation.schema.equals(schema):
        return relation.node
    columns: list[tuple[str, Expression]] = []
    for wanted, given in zip(schema, relation.schema, strict=True):
        column = Column(given.name)
        columns.append((wanted.name, column if given.type == wanted.type else Cast(column, wanted.type)))
    return Project(relation.node, tuple(columns))


def _times(inputs: list[BoundRelation]) -> tuple[dict[str, int], dict[str, str]]:
    """The columns that hold the time in every input in the same way, and for the others an input where they do not."""
    times: dict[str, int] = {}
    untimed: dict[str, str] = {}
    for position, name in enumerate(inputs[0].schema.names):
        added = [each.times.get(each.schema.names[position]) for each in inputs]
        odd = next((each for each, more in zip(inputs, added, strict=True) if more is None or more != added[0]), None)
        if odd is not None:
            untimed[name] = odd.label
        elif added[0] is not None:
            times[name] = added[0]
    return times, untimed


def _nearly_times(inputs: list[BoundRelation]) -> frozenset[str]:
    """The columns that hold the time in every input, though not in the same way: for example in one as it is, and in
    another as the end of a window.

    Rows can be put in order by it: their own times are at most a microsecond apart from it.
    """
    near = (0, 1)
    positions = range(len(inputs[0].schema))
    return frozenset(
        inputs[0].schema.names[position]
        for position in positions
        if all(each.times.get(each.schema.names[position]) in near for each in inputs)
    )
