"""Rows per element of an array or map: LATERAL VIEW, UNNEST, and explode in a select list."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place, QueryError, listed
from millrace.kernel.columns.expressions import Column, Expression
from millrace.kernel.columns.sql_types import sql_name
from millrace.language.expressions import typed
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.calls import Functions, called_name
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.places import place_of, placed_as
from millrace.language.grammar.statements import GENERATORS, ExplodeClause, Name, Select, SelectItem
from millrace.plan.nodes.relational_nodes import Explode, Project

_ELEMENT, _POSITION = "__element", "__position"


def exploded(relation: BoundRelation, clause: ExplodeClause, functions: Functions) -> BoundRelation:
    """The rows of a relation, each once per element, with the columns of the elements."""
    if relation.joined is not None:
        raise refused_over_join(clause.place)
    given = ExpressionBinder(relation.scope, functions).bind(clause.argument)
    array = _array(given)
    element = typed.column(_ELEMENT, array.type.value_type, clause.place)
    outputs = _named(clause, _outputs(clause, element, is_map=array is not given), relation.schema)
    kept = tuple(relation.schema.names)
    needs_place = clause.position or clause.ordinality
    node = Explode(relation.node, array.expression, _ELEMENT, _POSITION if needs_place else None, clause.outer, kept)
    columns: list[tuple[str, Expression]] = [(name, Column(name)) for name in kept]
    columns += [(name, each.expression) for name, each in outputs]
    schema = pa.schema([*relation.schema, *((name, each.type) for name, each in outputs)])
    laterals = (*relation.laterals, *([] if clause.table is None else [clause.table.text]))
    return replace(relation, node=Project(node, tuple(columns)), schema=schema, laterals=laterals, rank=None)


def refused_over_join(place: Place | None) -> QueryError:
    """The refusal to explode rows of a join in the select that joins them."""
    return QueryError(
        "rows of a join cannot be exploded here",
        hint="Put the join into a subquery: FROM (SELECT ... FROM a JOIN b ...) AS j LATERAL VIEW explode(j.x) t AS e.",
        place=place,
    )


def _array(given: Typed) -> Typed:
    """What is exploded: an array, or the entries of a map."""
    if pa.types.is_map(given.type):
        return typed.call("entries", [given], given.place)
    if pa.types.is_list(given.type):
        return given
    raise QueryError(
        f'"{given.expression}" is {sql_name(given.type)}, and cannot be exploded',
        hint="Explode an ARRAY or a MAP.",
        place=given.place,
    )


def _outputs(clause: ExplodeClause, element: Typed, *, is_map: bool) -> list[tuple[str, Typed]]:
    """The columns that an element gives, under the names that they have if none are written."""
    place = typed.column(_POSITION, pa.int32(), clause.place)
    if clause.generator.startswith("inline") and not pa.types.is_struct(element.type):
        raise QueryError("inline takes an array of structs", hint="Use explode.", place=clause.place)
    if is_map or (clause.fields and pa.types.is_struct(element.type)):
        found = [(each.name, typed.field(element, each.name)) for each in element.type]
    else:
        found = [("col", element)]
    found = [("pos", place), *found] if clause.position else found
    if not clause.ordinality:
        return found
    one = typed.literal(1, pa.int64())
    return [*found, ("ordinality", typed.call("+", [typed.cast(place, pa.int64()), one]))]


def _named(clause: ExplodeClause, outputs: list[tuple[str, Typed]], schema: pa.Schema) -> list[tuple[str, Typed]]:
    if clause.columns and len(clause.columns) != len(outputs):
        raise QueryError(
            f"{len(clause.columns)} names are given for {len(outputs)} columns",
            hint=f"The columns are {listed(name for name, _ in outputs)}.",
            place=clause.columns[0].place,
        )
    names = [each.text for each in clause.columns] or [name for name, _ in outputs]
    taken = {each.lower() for each in schema.names}
    for name in names:
        if name.lower() in taken:
            raise QueryError(
                f'there is a column "{name}" already', hint="Give the element another name with AS.", place=clause.place
            )
        taken.add(name.lower())
    return [(name, each) for name, (_, each) in zip(names, outputs, strict=True)]


def with_generators(select: Select, given: BoundRelation, functions: Functions) -> tuple[Select, BoundRelation]:
    """A select list in which explode and the like stand, as columns of exploded rows."""
    select = replace(select, items=tuple(each for item in select.items for each in _tuple(item)))
    calls = [item for item in select.items if called_name(item.expression) in GENERATORS]
    if not calls:
        return select, given
    if len(calls) > 1:
        raise QueryError("a select list explodes once", hint="Use LATERAL VIEW for the other.", place=calls[1].place)
    item = calls[0]
    (argument,) = item.expression.expressions if len(item.expression.expressions) == 1 else (None,)
    if argument is None:
        raise QueryError("explode takes one array or map", hint="Write explode(column).", place=item.place)
    names = () if item.alias is None else (item.alias,)
    clause = ExplodeClause(called_name(item.expression), argument, columns=names, place=item.place)
    found = exploded(given, clause, functions)
    made = [placed_as(exp.column(name), item.expression) for name in found.schema.names[len(given.schema.names) :]]
    items = [each for one in select.items for each in ([SelectItem(node) for node in made] if one is item else [one])]
    return replace(select, items=_with_stars(items, given)), found


def _tuple(item: SelectItem) -> list[SelectItem]:
    """`json_tuple(text, 'a', 'b')` as a column per field, c0, c1 and so on; any other item as it is."""
    call = item.expression
    if called_name(call) != "json_tuple" or len(call.expressions) < 2:
        return [item]
    text, *fields = call.expressions
    paths = [exp.Literal.string(f"$['{each.name}']") for each in fields]
    parts = [exp.Anonymous(this="get_json_object", expressions=[text.copy(), path]) for path in paths]
    return [SelectItem(placed_as(each, call), Name(f"c{place}")) for place, each in enumerate(parts)]


def _with_stars(items: list[SelectItem], given: BoundRelation) -> tuple[SelectItem, ...]:
    """The items with `*` as the columns that there were before rows were exploded."""
    found: list[SelectItem] = []
    for item in items:
        node = item.expression
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            found += [SelectItem(placed_as(each, node)) for each in given.scope.written(node, place_of(node))]
        else:
            found.append(item)
    return tuple(found)
