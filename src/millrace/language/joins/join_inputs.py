"""The inputs of a join: what each reads, its name, its window, and the columns that it brings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa

from millrace.errors import Place, QueryError, UnboundedState
from millrace.kernel.columns.expressions import Call, Column, Expression
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.progressing import as_time
from millrace.language.expressions.scopes import Scope
from millrace.language.grammar.statements import FromItem, Name, WindowClause
from millrace.language.joins.join_scopes import JoinScope, Merged, inner
from millrace.language.joins.spans import Times
from millrace.language.windows.clock_clauses import refuse_clock
from millrace.language.windows.extents import extent
from millrace.language.windows.outlets import progressing_by
from millrace.language.windows.window_clauses import by_attribute
from millrace.plan.nodes.aggregate_nodes import Aggregate, AnyWindow
from millrace.plan.nodes.conditions import all_of, later, substituted
from millrace.plan.nodes.relational_nodes import Distinct, Filter, Project, Rank

_AGGREGATE_HINT = (
    "A join keeps rows for [RANGE 5 MINUTES] or [ROWS 100]; the window of an aggregate stands after it: "
    "count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE]."
)

_TABLE_HINT = (
    "Rows of one minute meet with ON date_trunc('minute', a.ts) = date_trunc('minute', b.ts); to join results of "
    "windows, aggregate in a subquery for each input."
)


@dataclass(frozen=True)
class JoinInput:
    """One input of a join: its rows, the time that its window names, and how long or how many rows the join keeps."""

    qualifier: str
    relation: BoundRelation
    place: Place | None
    range: int | None = None
    rows: int | None = None
    partition: tuple[Name, ...] = ()
    window: Place | None = None

    @property
    def scope(self) -> Scope:
        return Scope(self.relation.schema, self.qualifier, unselected=self.relation.hidden_times)

    @property
    def fields(self) -> list[pa.Field]:
        """Its columns under their names in the join."""
        return [pa.field(inner(self.qualifier, each.name), each.type) for each in self.relation.schema]

    @property
    def time(self) -> Expression | None:
        """Its own time, if a column holds it."""
        found = self._time
        if found is None:
            return None
        column, kind = Column(inner(self.qualifier, found[0])), self.relation.schema.field(found[0]).type
        return later(as_time(column, kind), -found[1])

    @property
    def time_name(self) -> str | None:
        """The column that holds its own time, under its name in the join."""
        return None if self._time is None else inner(self.qualifier, self._time[0])

    @property
    def _time(self) -> tuple[str, int] | None:
        """The column that is nearest to its own time, and how much it adds to it."""
        return min(self.relation.times.items(), key=lambda item: (abs(item[1]), item[0]), default=None)

    def instant(self, name: str) -> tuple[AnyWindow, Expression] | None:
        """The windows whose results a column identifies, and by which expression; rows with one value have one time."""
        column = name.removeprefix(f"{self.qualifier}.")
        if column not in self.relation.instants:
            return None
        node, expression = self.relation.node, cast(Expression, Column(column))
        while not isinstance(node, Aggregate):
            if isinstance(node, Project):
                expression = substituted(expression, dict(node.columns))
            if not isinstance(node, Project | Filter | Rank | Distinct):
                return None
            node = node.input
        return node.window, expression

    def own(self, expression: Expression) -> Expression:
        """An expression of the join over the input's own names."""
        names = {inner(self.qualifier, name): Column(name) for name in self.relation.schema.names}
        return substituted(expression, names)

    def node(self, conditions: Sequence[Expression], computed: Mapping[str, Expression]) -> Project:
        """Its rows that satisfy conditions, with its columns under their names in the join, and computed ones."""
        below = self.relation.node
        predicate = all_of(self.own(each) for each in conditions)
        if predicate is not None:
            below = self.relation.where(predicate).node
        plain = [(inner(self.qualifier, name), Column(name)) for name in self.relation.schema.names]
        return Project(below, (*plain, *((name, self.own(each)) for name, each in computed.items())))


def as_input(relation: BoundRelation, item: FromItem, window: WindowClause | None) -> JoinInput:
    """An input of a join; `window` applies to all inputs that have none of their own."""
    place = item.alias.place if item.alias else item.place
    if relation.qualifier is None:
        raise QueryError("an input of a join has no name", hint="Give it one with AS.", place=place)
    if "." in relation.qualifier:
        raise QueryError(f'"{relation.qualifier}" has a dot', hint="Give it another name with AS.", place=place)
    if relation.unit == "rows":
        raise QueryError(
            f'the rows of "{relation.qualifier}" have no time, because they are results of a ROWS window',
            hint="Join streams, or results of time windows.",
            place=place,
        )
    clause = item.window or window
    if clause is None:
        return JoinInput(relation.qualifier, relation, place)
    _check_window(clause)
    refuse_clock(clause)
    if clause.attribute is not None:
        relation = by_attribute(clause, relation)
    # With a length of zero a row matches those that are there already.
    by_rows = clause.kind == "rows"
    size = extent(clause.size, clause.kind.upper(), "rows" if by_rows else relation.unit, least=1 if by_rows else 0)
    found = JoinInput(relation.qualifier or "", relation, place, window=clause.place)
    if by_rows:
        return replace(found, rows=size, partition=clause.partition)
    return replace(found, range=size)


def _check_window(clause: WindowClause) -> None:
    if clause.slide is not None:
        called = clause.place is not None and clause.place.text.upper().startswith(("TUMBLE", "HOP"))
        fact = (
            "TUMBLE and HOP are windows of aggregates, not of joins"
            if called
            else "a window of a join cannot have SLIDE"
        )
        raise QueryError(fact, hint=_TABLE_HINT if called else _AGGREGATE_HINT, place=clause.place)
    if clause.kind == "session":
        raise QueryError("a join cannot have a SESSION window", hint=_AGGREGATE_HINT, place=clause.place)
    if clause.kind == "unlimited":
        raise UnboundedState(
            "a join with an UNLIMITED window would keep rows for ever",
            hint="Write [RANGE 5 MINUTES], or ASOF JOIN for the last row before each.",
            place=clause.place,
        )
    if clause.kind == "rows" and clause.attribute is not None:
        raise QueryError(
            "WA cannot be combined with ROWS",
            hint="Rows are counted in order of their time.",
            place=clause.attribute.place,
        )
    if clause.kind == "range" and clause.partition:
        raise QueryError(
            "PARTITION BY is only allowed with ROWS", hint="Join on equal columns instead.", place=clause.place
        )


def settled(given: JoinInput, expressions: Iterable[Expression]) -> JoinInput:
    """An input that is itself a join, with the time that conditions compare as its own."""
    choices = given.relation.choices
    if choices is None or given.relation.times:
        return given
    names = compared_columns(given, expressions)
    times = [choices.choice(Column(name)) for name in names if name in choices.columns]
    time = next((each for each in times if each is not None), None)
    return given if time is None else replace(given, relation=given.relation.by_time(time))


def compared_columns(given: JoinInput, expressions: Iterable[Expression]) -> list[str]:
    """The columns of an input that expressions name, by its own names for them, each once."""
    own = {inner(given.qualifier, name): name for name in given.relation.schema.names}
    return list(dict.fromkeys(own[name] for each in expressions for name in each.columns() if name in own))


def by_further_time(given: JoinInput, expressions: Sequence[Expression]) -> JoinInput:
    """An input with a further time column (ALSO BY) as its time, if conditions compare that one and no other."""
    times = time_columns(given, compared_columns(given, expressions))
    if len(times) != 1 or times[0] in given.relation.times:
        return given
    node = progressing_by(given.relation.node, times[0])
    assert node is not None
    return replace(given, relation=replace(given.relation, node=node, times={times[0]: 0}, instants=frozenset()))


def time_columns(given: JoinInput, names: Sequence[str]) -> list[str]:
    """The columns of an input that can be its time."""
    known = given.relation
    return [each for each in names if each in known.times or progressing_by(known.node, each) is not None]


def check_input_names(inputs: Sequence[JoinInput]) -> None:
    """Refuse two inputs of one name."""
    names = [each.qualifier.lower() for each in inputs]
    for position, each in enumerate(inputs):
        if names[position] in names[:position]:
            free = next(name for name in (*"xyzuvw", f"{each.qualifier}2") if name not in names)
            raise QueryError(
                f'two inputs are named "{each.qualifier}"',
                hint=f"Give one of them another name with AS: {each.relation.label} AS {free}.",
                place=each.place,
            )
        if each.relation.unit != inputs[0].relation.unit:
            raise QueryError(
                f'"{each.qualifier}" and "{inputs[0].qualifier}" do not progress in the same unit',
                hint="Rows with a TIMESTAMP or DATE are joined with such rows, rows with a BIGINT with such rows.",
                place=each.place,
            )


def scope_of(inputs: Sequence[JoinInput], merged: tuple[Merged, ...] = ()) -> JoinScope:
    """The names of all inputs."""
    schema = pa.schema([field for each in inputs for field in each.fields])
    return JoinScope(schema, None, {each.qualifier: each.scope for each in inputs}, merged)


def times_of(inputs: Sequence[JoinInput]) -> Times:
    """The columns that hold times, under their names in the join."""
    return {
        inner(each.qualifier, name): (position, more)
        for position, each in enumerate(inputs)
        for name, more in each.relation.times.items()
    }


def owners_of(inputs: Sequence[JoinInput]) -> dict[str, int]:
    """The inputs by the names that their columns have in the join."""
    return {field.name: position for position, each in enumerate(inputs) for field in each.fields}


def key_value(expression: Expression, kind: pa.DataType) -> Expression:
    """An expression as a key; fractions have one zero and one NaN."""
    return Call("canonical", (expression,)) if pa.types.is_floating(kind) else expression
