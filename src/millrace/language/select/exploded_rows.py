"""Rows per element of an array or map: LATERAL VIEW, UNNEST, and explode in a select list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError, listed
from millrace.kernel.columns.expressions import Column, Expression
from millrace.kernel.columns.sql_types import sql_name
from millrace.language.expressions import typed
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.calls import Functions, called_name
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.scopes import Scope
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.statements import GENERATORS, JSON_TUPLE, ExplodeClause, Name, Select, SelectItem
from millrace.language.grammar.text.places import place_of, placed_as
from millrace.language.joins.join_scopes import JoinScope, inner
from millrace.plan.nodes.conditions import all_of
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Explode, Project

_ELEMENT, _POSITION = "__element", "__position"
_MADE = "__made_"
"""Before the name of a column that explode in a select list makes, where the rows have a column of that name."""


def exploded(
    relation: BoundRelation, clause: ExplodeClause, functions: Functions, *, in_list: bool = False
) -> BoundRelation:
    """The rows of a relation, each once per element, with the columns of the elements.

    Of explode in a select list nothing but the list reads them, so they may have names that the rows have, too.
    """
    binder = ExpressionBinder(relation.scope, functions)
    if clause.generator == JSON_TUPLE:
        parts = [(f"c{place}", binder.bind(each)) for place, each in enumerate(_fields(clause.argument))]
        return _with_columns(relation, relation.node, clause, _named(clause, parts))
    given = binder.bind(clause.argument)
    array = _array(given)
    element = typed.column(_ELEMENT, array.type.value_type, clause.place)
    outputs = _named(clause, _outputs(clause, element, is_map=array is not given))
    if in_list and not isinstance(relation.joined, JoinScope):
        known = {each.lower() for each in relation.schema.names}
        outputs = [(f"{_MADE}{name}" if name.lower() in known else name, each) for name, each in outputs]
    place, kept = _POSITION if clause.position or clause.ordinality else None, tuple(relation.schema.names)
    node = Explode(relation.node, array.expression, _ELEMENT, place, clause.outer, kept)
    return _with_columns(relation, node, clause, outputs)


def _with_columns(
    relation: BoundRelation, node: Node, clause: ExplodeClause, outputs: list[tuple[str, Typed]]
) -> BoundRelation:
    """A relation with further columns, over the rows of a node; to those of a join they are a further input."""
    scope, laterals, table = relation.joined, relation.laterals, None if clause.table is None else clause.table.text
    given = pa.schema([(name, each.type) for name, each in outputs])
    if isinstance(scope, JoinScope):
        table = table or next(each for each in map("rows{}".format, count(1)) if scope.of(each) is None)
        if scope.of(table) is not None:
            raise QueryError(f'there are two inputs "{table}"', hint="Choose another name.", place=clause.place)
        outputs = [(inner(table, name), each) for name, each in outputs]
    else:
        _refuse_twice(clause, [*relation.schema.names, *given.names])
        laterals = {**laterals, (table or ""): (*laterals.get(table or "", ()), *given.names)}
    columns = [
        *((name, Column(name)) for name in relation.schema.names),
        *((name, one.expression) for name, one in outputs),
    ]
    schema = pa.schema([*relation.schema, *((name, each.type) for name, each in outputs)])
    if isinstance(scope, JoinScope):
        assert table is not None
        scope = replace(scope, schema=schema, inputs={**scope.inputs, table: Scope(given, table)})
    return replace(
        relation, node=Project(node, tuple(columns)), schema=schema, laterals=laterals, rank=None, joined=scope
    )


def _refuse_twice(clause: ExplodeClause, names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        if name.lower() in (each.lower() for each in names[:place]):
            raise QueryError(
                f'there is a column "{name.removeprefix(_MADE)}" already',
                hint="Give the element another name with AS.",
                place=clause.place,
            )


def above_join(
    relation: BoundRelation, select: Select, functions: Functions
) -> tuple[BoundRelation, Expression | None]:
    """Joined rows, exploded as the select says, and the conditions of its WHERE that read elements."""
    below = relation.scope
    for clause in select.explodes:
        relation = exploded(relation, clause, functions)
    binder = ExpressionBinder(relation.scope, functions)
    # All are bound, so that a name which is a column of an input and of an element is refused.
    bound = [(each, binder.condition(each, "the condition of WHERE")) for each in _conditions(select.where)]
    return relation, all_of(one.expression for each, one in bound if not _is_known(each, below))


def known_below(select: Select, inputs: Sequence[BoundRelation]) -> Select:
    """A select over a join with the conditions of its WHERE that read no element."""
    names = {each.qualifier: Scope(each.schema, each.qualifier) for each in inputs if each.qualifier is not None}
    scope = JoinScope(pa.schema([]), None, names)
    kept = [each for each in _conditions(select.where) if _is_known(each, scope)]
    return replace(select, where=exp.and_(*kept, copy=False) if len(kept) > 1 else next(iter(kept), None))


def _conditions(where: exp.Expr | None) -> list[exp.Expr]:
    return [] if where is None else list(where.flatten()) if isinstance(where, exp.And) else [where]


def _is_known(condition: exp.Expr, scope: Scope) -> bool:
    """True if all columns of a condition are those of a scope."""
    return all(scope.knows(scope.split(each)[0]) for each in condition.find_all(exp.Column))


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


def _named(clause: ExplodeClause, outputs: list[tuple[str, Typed]]) -> list[tuple[str, Typed]]:
    if clause.columns and len(clause.columns) != len(outputs):
        raise QueryError(
            f"{len(clause.columns)} names are given for {len(outputs)} columns",
            hint=f"The columns are {listed(name for name, _ in outputs)}.",
            place=clause.columns[0].place,
        )
    names = [each.text for each in clause.columns] or [name for name, _ in outputs]
    return [(name, each) for name, (_, each) in zip(names, outputs, strict=True)]


def with_generators(select: Select, given: BoundRelation, functions: Functions) -> tuple[Select, BoundRelation]:
    """A select list in which explode and the like stand, as columns of exploded rows."""
    select = replace(select, items=tuple(each for item in select.items for each in _columns(item, given)))
    calls = [item for item in select.items if called_name(item.expression) in GENERATORS]
    for item in select.items:
        if item.names and item not in calls:
            fact = "several names are given to one column"
            raise QueryError(fact, hint="Write AS name; several are for explode and the like.", place=item.place)
    if not calls:
        return select, given
    if len(calls) > 1:
        raise QueryError("a select list explodes once", hint="Use LATERAL VIEW for the other.", place=calls[1].place)
    item = calls[0]
    (argument,) = item.expression.expressions if len(item.expression.expressions) == 1 else (None,)
    if argument is None:
        raise QueryError("explode takes one array or map", hint="Write explode(column).", place=item.place)
    names = item.names or (() if item.alias is None else (item.alias,))
    clause = ExplodeClause(called_name(item.expression), argument, columns=names, place=item.place)
    found = exploded(given, clause, functions, in_list=True)
    new = found.schema.names[len(given.schema.names) :]
    parts = [name.rpartition(".") if found.joined else ("", "", name) for name in new]
    made = [
        SelectItem(
            placed_as(exp.column(name, table or None), item.expression),
            Name(name.removeprefix(_MADE), place=item.place) if name.startswith(_MADE) else None,
        )
        for table, _, name in parts
    ]
    items = [each for one in select.items for each in (made if one is item else [one])]
    return replace(select, items=_with_stars(items, given)), found


def _columns(item: SelectItem, given: BoundRelation) -> list[SelectItem]:
    """`json_tuple(text, 'a', 'b')` and `.*` of a struct as a column per field; any other item as it is."""
    node = item.expression
    if called_name(node) == JSON_TUPLE:
        fields = _fields(node)
        names = item.names or tuple(Name(f"c{place}") for place in range(len(fields)))
        if len(names) != len(fields):
            fact = f"{len(names)} names are given for {len(fields)} columns"
            raise QueryError(fact, hint="Give a name per field.", place=item.place)
        return [SelectItem(each, name) for each, name in zip(fields, names, strict=True)]
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Star) or node.this.args.get("except_"):
        return [item]
    *tables, struct = (part.name for part in node.parts[:-1])
    column = exp.column(struct, table=tables[0] if tables else None)
    if len(tables) > 1 or not given.scope.knows(column):
        return [item]
    kind = given.scope.column(column, item.place).type
    inside = [each.name for each in kind] if pa.types.is_struct(kind) else []
    first = tables[0] if tables else None
    return [SelectItem(placed_as(exp.column(name, struct, first), node)) for name in inside] or [item]


def _fields(call: exp.Expr) -> list[exp.Expr]:
    """The parts of a text of JSON that a call of json_tuple names."""
    text, *fields = call.expressions or [None]
    if not fields or not all(isinstance(each, exp.Literal) and each.is_string for each in fields):
        raise QueryError(
            "json_tuple takes a text and the names of fields",
            hint="Write json_tuple(column, 'a', 'b').",
            place=place_of(call),
        )
    quotes = ['"' if "'" in each.name else "'" for each in fields]
    paths = [exp.Literal.string(f"$[{quote}{each.name}{quote}]") for each, quote in zip(fields, quotes, strict=True)]
    return [placed_as(exp.Anonymous(this="get_json_object", expressions=[text.copy(), path]), call) for path in paths]


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
