"""Joins with tables, bound.

Rules:
- Tables are joined after the streams of a select, in the order of the text. A join of streams therefore cannot read
  columns of a table; a subquery can.
- An equality of a table's column and a value of the row finds the rows; conditions beside it may be any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from millrace.errors import QueryError
from millrace.kernel.columns.expressions import Call, Cast, Column, Expression
from millrace.kernel.joins.tables.table_join import TableJoinKind
from millrace.language.expressions import typed
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.scopes import Scope
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.statements import JoinClause, Name
from millrace.language.grammar.text.places import place_of
from millrace.language.joins.join_conditions import written_conjuncts
from millrace.language.joins.join_scopes import JoinScope, Merged, inner
from millrace.language.joins.written_tables import Membership, Tables, WrittenTable, membership
from millrace.plan.nodes.conditions import all_of, conjuncts, substituted
from millrace.plan.nodes.endpoints import Table
from millrace.plan.nodes.relational_nodes import Project
from millrace.plan.nodes.table_nodes import TableJoin


@dataclass
class TableJoins:
    """Joins a relation with tables, one after another."""

    relation: BoundRelation
    functions: Functions
    tables: Tables
    where: list[exp.Expr]
    """The conditions of WHERE that have not found their place yet."""

    def joined(self, written: Sequence[WrittenTable]) -> tuple[BoundRelation, Expression | None]:
        """The relation with all tables, and what of WHERE has still to be checked above it."""
        if self.relation.unit == "rows":
            raise QueryError(
                "results of a ROWS window cannot be joined with a table",
                hint="They have no time. Join the table in the subquery, below the window.",
                place=written[0].clause.place if written else place_of(self.where[0]),
            )
        if written:
            self.relation = _qualified(self.relation, written[0])
        for each in written:
            self._join(each)
        rest: list[exp.Expr] = []
        for number, node in enumerate(self.where):
            member = membership(node, self.tables)
            if member is None:
                rest.append(node)
            else:
                self._choose(member, number)
        binder = ExpressionBinder(self.relation.scope, self.functions)
        bound = [binder.condition(node, "the condition of WHERE").expression for node in rest]
        return self.relation, all_of(bound)

    def _join(self, written: WrittenTable) -> None:
        before = self.relation.scope
        assert isinstance(before, JoinScope)
        table, qualifier = written.table, written.qualifier
        if before.of(qualifier) is not None:
            raise QueryError(
                f'two inputs are named "{qualifier}"',
                hint=f"Give the table another name with AS: {table.name} AS t.",
                place=written.clause.item.place,
            )
        self._check_as_of(written, before)
        equal = [_using(name, before, written) for name in _using_names(written, before)]
        fields = [pa.field(inner(qualifier, each.name), each.type) for each in table.schema]
        replaced = frozenset(column for _, each in equal for column in each.columns)
        merged = tuple(each for each in before.merged if not each.columns <= replaced)
        scope = JoinScope(
            pa.schema([*before.schema, *fields]),
            None,
            {**before.inputs, qualifier: written.scope},
            (*merged, *(each for _, each in equal)),
        )
        conditions = [each.expression for each, _ in equal] + self._conditions(written, scope)
        names = {inner(qualifier, column): column for column in table.schema.names}
        kind: TableJoinKind = "left" if written.clause.kind == "left" else "inner"
        node = _table_join(self.relation, table, kind, conditions, names, written.clause)
        label = f"{self.relation.label} JOIN {table.name}"
        self.relation = replace(
            self.relation, node=node, schema=scope.schema, joined=scope, label=label, qualifier=None, rank=None
        )

    def _check_as_of(self, written: WrittenTable, before: JoinScope) -> None:
        """Refuse FOR SYSTEM_TIME AS OF another time than that of the rows, whose version is met in any case."""
        asked = written.clause.item.as_of
        if asked is None:
            return
        bound = ExpressionBinder(before, self.functions).bind(asked).expression
        if not isinstance(bound, Column) or self.relation.times.get(bound.name) != 0:
            raise QueryError(
                f'"{bound}" is not the time of the rows that meet table "{written.table.name}"',
                hint="A row meets the table as it is at its own time: leave FOR SYSTEM_TIME out.",
                place=place_of(asked),
            )

    def _conditions(self, written: WrittenTable, scope: JoinScope) -> list[Expression]:
        """The conditions of ON; of a join without any, those of WHERE that can be told already."""
        binder = ExpressionBinder(scope, self.functions)
        clause = written.clause
        if clause.on is not None:
            bound = [binder.condition(each, "the condition of ON") for each in written_conjuncts(clause.on)]
            return [part for each in bound for part in conjuncts(each.expression)]
        if clause.using or clause.natural:
            return []
        taken = [node for node in self.where if all(map(scope.knows, node.find_all(exp.Column)))]
        taken = [node for node in taken if membership(node, self.tables) is None]
        self.where = [node for node in self.where if node not in taken]
        bound = [binder.condition(each, "the condition of WHERE") for each in taken]
        return [part for each in bound for part in conjuncts(each.expression)]

    def _choose(self, member: Membership, number: int) -> None:
        """Only rows whose value is, or is not, in a column of a table."""
        table, qualifier = member.table, f"__in{number}"
        scope = Scope(table.schema, member.qualifier)
        column = scope.column(member.column, place_of(member.column))
        assert isinstance(column.expression, Column)
        name = inner(qualifier, column.expression.name)
        value = ExpressionBinder(self.relation.scope, self.functions).bind(member.value)
        sides = typed.unify([value, typed.column(name, column.type, column.place)], place_of(member.value))
        conditions = [typed.call("=", sides, place_of(member.value)).expression]
        names = {inner(qualifier, each): each for each in table.schema.names}
        if member.where is not None:
            bound = ExpressionBinder(scope, self.functions).condition(member.where, "the condition of WHERE")
            conditions.append(substituted(bound.expression, {column: Column(name) for name, column in names.items()}))
        kind: TableJoinKind = "anti" if member.negated else "semi"
        node = _table_join(self.relation, table, kind, conditions, names, None, place_of(member.value))
        self.relation = replace(self.relation, node=node, rank=None)


def _table_join(
    relation: BoundRelation,
    table: Table,
    kind: TableJoinKind,
    conditions: Sequence[Expression],
    names: Mapping[str, str],
    clause: JoinClause | None,
    place: object = None,
) -> TableJoin:
    """The node of a join; conditions over the table alone choose among its rows, once per version."""
    schema = pa.schema(
        [*relation.schema, *(pa.field(name, table.schema.field(column).type) for name, column in names.items())]
    )
    own = [each for each in conditions if (read := set(each.columns())) and read <= names.keys()]
    pairs = [each for each in conditions if each not in own]
    keys = tuple(key for each in pairs if (key := _key(each, names, schema)) is not None)
    condition = all_of(pairs)
    if not keys or condition is None:
        raise QueryError(
            f'nothing says which rows of table "{table.name}" a row matches',
            hint=f"Write ON with an equality, such as s.key = {table.name}.{table.key[0] if table.key else 'key'}; "
            "conditions beside it may be any.",
            place=None if clause is None else clause.place,
        )
    where = all_of(substituted(each, {name: Column(column) for name, column in names.items()}) for each in own)
    return TableJoin(relation.node, table, kind, keys, tuple(names.items()), condition, where)


def _key(condition: Expression, names: Mapping[str, str], schema: pa.Schema) -> tuple[Expression, str] | None:
    """A value of the row and the column of the table that must be equal, if a condition says that."""
    if not isinstance(condition, Call) or condition.function != "=":
        return None
    for value, other in (condition.arguments, condition.arguments[::-1]):
        column = _plain(other, schema)
        if column is not None and column in names and not names.keys() & set(value.columns()):
            return value, names[column]
    return None


def _plain(expression: Expression, schema: pa.Schema) -> str | None:
    """The column that an expression is; a whole number of a wider type has the same hash."""
    match expression:
        case Column(name):
            return None if pa.types.is_nested(schema.field(name).type) else name
        case Cast(Column(name), kind) if pa.types.is_integer(kind) and pa.types.is_integer(schema.field(name).type):
            return name
    return None


def _using_names(written: WrittenTable, before: JoinScope) -> tuple[Name, ...]:
    clause = written.clause
    if not clause.natural:
        return clause.using
    both = [name for name in written.table.schema.names if before.find(name) is not None]
    return tuple(Name(name, place=clause.place) for name in both)


def _using(name: Name, before: JoinScope, written: WrittenTable) -> tuple[Typed, Merged]:
    """The equality of a column of USING, and the one column that stands for both."""
    column = written.scope.find(name.text)
    if column is None:
        raise written.scope.unknown(name.text, name.place)
    left = before.column(exp.column(name.text), name.place)
    right = typed.column(inner(written.qualifier, column), written.table.schema.field(column).type, name.place)
    first, second = typed.unify([left, right], name.place)
    columns = frozenset((*before.candidates(name.text), inner(written.qualifier, column)))
    merged = Merged(before.shown_alone(left) or column, first.expression, first.type, columns)
    return typed.call("=", [first, second], name.place), merged


def _qualified(relation: BoundRelation, first: WrittenTable) -> BoundRelation:
    """Rows with the name of their input before their columns, as a join has them."""
    if isinstance(relation.joined, JoinScope):
        return relation
    name = relation.qualifier
    if name is None:
        raise QueryError("an input of a join has no name", hint="Give it one with AS.", place=first.clause.place)
    named = {column: inner(name, column) for column in relation.schema.names}
    schema = pa.schema([pa.field(named[each.name], each.type) for each in relation.schema])
    return replace(
        relation,
        node=Project(relation.node, tuple((named[column], Column(column)) for column in relation.schema.names)),
        schema=schema,
        times={named[column]: more for column, more in relation.times.items()},
        untimed={named.get(column, column): owner for column, owner in relation.untimed.items()},
        instants=frozenset(named[column] for column in relation.instants),
        joined=JoinScope(schema, None, {name: Scope(relation.schema, name, laterals=relation.laterals)}),
        choices=None,
        below=None,
        rank=None,
    )
