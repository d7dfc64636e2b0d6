"""Numbers of months leave a query as text: files and other systems have no such type."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from millrace.errors import QueryError
from millrace.kernel.columns.expressions import Cast, Column
from millrace.kernel.elements import MONTHS
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.plan.nodes.relational_nodes import Project


def months_as_text(relation: BoundRelation) -> BoundRelation:
    """The rows with months as Spark spells them; refuses months inside of other values."""
    schema = relation.node.schema
    for each in schema:
        if each.type != MONTHS and _holds_months(each.type):
            hint = "Bring them to text with CAST(... AS STRING)."
            raise QueryError(f'column "{each.name}" has months inside of another value', hint=hint)
    if MONTHS not in schema.types:
        return relation
    columns = [(each.name, Column(each.name), each.type) for each in schema]
    spelled = tuple((name, Cast(each, pa.string()) if kind == MONTHS else each) for name, each, kind in columns)
    return replace(relation, node=Project(relation.node, spelled))


def _holds_months(kind: pa.DataType) -> bool:
    if not pa.types.is_nested(kind):
        return bool(kind == MONTHS)
    return any(_holds_months(kind.field(place).type) for place in range(kind.num_fields))
