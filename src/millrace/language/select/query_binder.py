"""Queries into trees of nodes: Scan -> Filter -> Aggregate -> Filter -> Rank -> Project, and Distinct above them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place, QueryError, UnboundedState, listed
from millrace.kernel.columns.expressions import Column, Expression
from millrace.language.expressions.bound_relation import BoundRelation, filtered
from millrace.language.expressions.calls import Functions, refuse_unknown
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.grammar.statements import Body, FromItem, Name, Select
from millrace.language.grammar.text.places import place_of
from millrace.language.joins.join_binder import bind_joins
from millrace.language.joins.sequences import of_system_time
from millrace.language.joins.table_joins import TableJoins
from millrace.language.joins.written_tables import WrittenTable, parted, without_tables
from millrace.language.select.aggregate_calls import UserAggregates, first_aggregate
from millrace.language.select.distinct_rows import as_groups, distinct
from millrace.language.select.exploded_rows import above_join, exploded, known_below, with_generators
from millrace.language.select.group_keys import GroupKeys, grouped_by_all
from millrace.language.select.items import Named, Output, is_star, named, output, renamed, starred
from millrace.language.select.node_places import NodePlaces
from millrace.language.select.order_by import ordered
from millrace.language.select.ranks import Ranks, by_partition
from millrace.language.select.refused_selects import (
    refuse_above_rows,
    refuse_having,
    refuse_in_where,
    refuse_window,
    unknown_input,
)
from millrace.language.select.select_binder import AggregateBinder, SelectBinder, timed_results
from millrace.language.select.unions import union
from millrace.language.windows.window_clauses import (
    Windows,
    is_window_struct,
    unbounded,
)
from millrace.language.windows.windowed_rows import WindowedRows, by_groups
from millrace.plan.nodes.conditions import all_of
from millrace.plan.nodes.endpoints import Stream, Table
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Project, Scan
from millrace.plan.updates.update_keys import reads_updates


@dataclass(frozen=True)
class QueryBinder:
    """Binds queries over the declared streams, with the functions and aggregates that users have defined.

    `named` are views, and queries that others may read, by name in lower case; `queries` are names of all queries, for
    a better error; `aside` are late and quarantined rows by the name under which they can be read. `reading` are the
    views that are being bound. `limited` is true if the query has a limit of state, `updates` if rows of update streams
    replace each other in it, `parts` if it is a part of a query. `places` are those of all bound nodes. `tables` are
    those that streams may be joined with.
    """

    streams: Mapping[str, Stream]
    queries: frozenset[str] = frozenset()
    aside: Mapping[str, Scan] = field(default_factory=dict)
    functions: Functions = field(default_factory=dict)
    aggregates: UserAggregates = field(default_factory=dict)
    limited: bool = False
    updates: bool = True
    parts: bool = False
    places: NodePlaces = field(default_factory=NodePlaces)
    named: dict[str, Body] = field(default_factory=dict)
    reading: tuple[str, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)

    def body(self, body: Body, *, inside: bool = False) -> BoundRelation:
        """The rows of selects under UNION, in the order asked for."""
        inputs = [
            self.body(each, inside=True) if isinstance(each, Body) else self._select(each) for each in body.selects
        ]
        relation = self._placed(union(inputs, body.place), body.place)
        if body.columns:
            relation = self._placed(renamed(relation, body.columns), body.place)
        if not body.order:
            return relation
        if inside:
            raise QueryError(
                "ORDER BY is not allowed in a subquery",
                hint="Order applies to a whole query: put ORDER BY at its end.",
                place=place_of(body.order[0].expression),
            )
        return self._placed(ordered(body.order, relation, self.functions), place_of(body.order[0].expression))

    def _placed(self, relation: BoundRelation, place: Place | None) -> BoundRelation:
        """The relation, with all that is new in it at a place."""
        self.places.note(relation.node, place)
        return relation

    # FROM

    def _from(self, item: FromItem) -> BoundRelation:
        inputs = [
            self.relation(each, item.common) if isinstance(each, Name) else self.body(each, inside=True)
            for each in item.sources
        ]
        names = [each.text.lower() if isinstance(each, Name) else None for each in item.sources]
        truth = None if item.truth is None else names.index(item.truth.text.lower())
        relation = self._placed(union(inputs, item.place, truth), item.place)
        return relation if item.alias is None else replace(relation, qualifier=item.alias.text)

    def relation(self, name: Name, common: tuple[str, ...] = ()) -> BoundRelation:
        """The rows under a name: of a stream, of what it set aside, of a view or of a query; none of the `common`."""
        aside = self.aside.get(name.text.lower())
        if aside is not None:
            found = BoundRelation(aside, aside.schema, aside.name, qualifier=aside.name)
            return self._placed(found, name.place)
        stream = self.streams.get(name.text.lower())
        if stream is None and name.text.lower() in self.named:
            return self._named(name)
        if stream is None:
            tables = [each.name for each in self.tables.values()]
            names = [each.name for each in self.streams.values()] + [*self.aside, *self.named, *tables]
            raise unknown_input(name, self.queries, [*common, *names])
        times = {stream.time.column: 0} if stream.time.column else {}
        unit = stream.time.unit
        found = BoundRelation(Scan(stream), stream.schema, stream.name, times, unit=unit, qualifier=stream.name)
        return self._placed(found, name.place)

    def _named(self, name: Name) -> BoundRelation:
        """The rows of a view or a query: what it computes, as if it were written here; equal parts run once."""
        key = name.text.lower()
        if key in self.reading:
            raise QueryError(
                f'"{name.text}" reads itself',
                hint="A view or query reads others that do not read it.",
                place=name.place,
            )
        inner = replace(self, reading=(*self.reading, key))
        try:
            relation = inner.body(replace(self.named[key], order=()), inside=True)
        except UnboundedState as error:
            # The query that is read may have a limit of its own.
            raise UnboundedState(f'{error.fact}, in "{name.text}"', hint=error.hint, place=name.place) from None
        return replace(relation, qualifier=name.text, label=name.text)

    # SELECT

    def _read(
        self, select: Select, written: tuple[WrittenTable, ...], windows: Windows
    ) -> tuple[BoundRelation, Expression | None]:
        """What a select reads, with its tables, and the condition that WHERE puts on it."""
        inputs = [self._from(item) for item in (select.source, *(each.item for each in select.joins))]
        timed = [of_system_time(each, given) for each, given in zip(select.joins, inputs[1:], strict=True)]
        select, counts = replace(select, joins=tuple(timed)), bool(windows.partition())
        streams, above = parted(select, written, self.tables, all_above=bool(written) and counts)
        given, where = self._read_streams(streams, inputs)
        if not written and not above:
            return given, where
        for node in above:
            refuse_above_rows(node, self.aggregates)
        given = given if where is None else given.where(where)
        joined = TableJoins(given, self.functions, self.tables, above).joined(written)
        return self._placed(joined[0], written[0].clause.place if written else select.place), joined[1]

    def _read_streams(self, select: Select, inputs: list[BoundRelation]) -> tuple[BoundRelation, Expression | None]:
        """The streams that a select reads, and the condition that WHERE puts on them."""
        if not select.joins:
            (given,) = inputs
            for clause in select.explodes:
                given = self._placed(exploded(given, clause, self.functions), clause.place)
            if select.where is None:
                return given, None
            refuse_in_where(select, self.aggregates, inputs if not select.explodes else [given])
            binder = ExpressionBinder(given.scope, self.functions)
            return given, binder.condition(select.where, "the condition of WHERE").expression
        # With a stream of updates among them it is an update query, or refused as what it is.
        unbounded = self.updates and any(reads_updates(each.node) for each in inputs)
        if not select.explodes:
            refuse_in_where(select, self.aggregates, inputs)
        elif select.where is not None:
            refuse_above_rows(select.where, self.aggregates)
        below = known_below(select, inputs) if select.explodes else select
        found = bind_joins(below, self.functions, inputs, self.limited, unbounded)
        given, above = self._placed(found.relation, select.joins[0].place), found.above
        if select.explodes:
            given, read = above_join(given, select, self.functions)
            above = all_of(each for each in (above, read) if each is not None)
            self._placed(given, select.explodes[0].place)
        return given, above

    def _select(self, select: Select) -> BoundRelation:
        select, written = without_tables(grouped_by_all(select, self.aggregates), self.tables)
        windows = Windows(select, self.limited)
        given, where = self._read(select, written, windows)
        if where is not None and not windows.partition():
            # PARTITION BY counts rows before WHERE chooses among them.
            given, where = given.where(where), None
        select, given = with_generators(select, given, self.functions)
        select = as_groups(select, given, windows, self.functions, self.aggregates)
        aggregate = first_aggregate(select, self.aggregates)
        refuse_having(select, aggregate)
        anchor = next((node for node in (aggregate, *select.groups, select.having) if node is not None), None)
        if anchor is not None:
            if aggregate is None:
                # A call of an unknown function may be meant as an aggregate.
                refuse_unknown([each.expression for each in select.items], self.functions, ("window", "session_window"))
            found = self._aggregated(select, windows, self._windowed(select, windows, given, anchor), where)
        else:
            refuse_window(select, windows, self.functions)
            found = self._projected(select, given)
        self._placed(found, select.place)
        if select.distinct is None:
            return found
        return self._placed(distinct(found, select.distinct.place), select.distinct.place)

    def _projected(self, select: Select, given: BoundRelation) -> BoundRelation:
        given = by_partition(select, given, self.functions)
        timed: dict[Expression, int | None] = {Column(name): more for name, more in given.times.items()}
        timed.update({Column(name): None for name in given.instants})
        binder = SelectBinder(given.scope, self.functions, Ranks(timed, given.schema.names), select)
        outputs: list[Output] = []
        for position, item in enumerate(select.items, 1):
            if is_star(item.expression):
                outputs += starred(item, given)
            else:
                outputs.append(output(item, binder.bind(item.expression), position, given.scope))
        columns = named(outputs)
        if given.choices is not None:
            # Rows of a join have the latest time of their parts, unless something above asks for another.
            timed.update({each.expression: 0 for _, each in columns if given.choices.choice(each.expression) == "max"})
        node = _qualified(given.node, binder, self._qualify(select, binder))
        hidden = {*given.times, *given.hidden_times}
        found = self._result(given, node, columns, timed, hidden, binder.ranks)
        if given.choices is None or binder.ranks.ranking is not None:
            return found
        pairs = [(name, bound.expression) for name, bound in columns]
        return replace(found, choices=given.choices.through(pairs), below=given if given.joined else None)

    # Aggregates

    def _windowed(
        self, select: Select, windows: Windows, given: BoundRelation, anchor: exp.Expr
    ) -> tuple[WindowedRows, GroupKeys]:
        """The window of an aggregate with its groups; refuses an aggregate without one."""
        laid = windows.laid(given)
        groups = GroupKeys(given, select, self.functions, self.aggregates, writes=laid is not None)
        windowed = by_groups(groups.found, given) if laid is None else WindowedRows(*laid)
        if windowed is None:
            raise unbounded(select.source, given, place_of(anchor))
        groups.partitioned(windowed, next((each.partition for each in windows.all()), ()))
        return windowed, groups

    def _aggregated(
        self,
        select: Select,
        windows: Windows,
        grouped: tuple[WindowedRows, GroupKeys],
        where: Expression | None,
    ) -> BoundRelation:
        windowed, groups = grouped
        keys = groups.keys(windowed)
        binder = AggregateBinder(select, windowed, keys, self.functions, self.aggregates)
        columns = self._aggregated_columns(select, windowed, binder)
        having = None if select.having is None else binder.having(select.having)
        qualify = self._qualify(select, binder)
        node: Node = binder.aggregate(where)
        self.places.note(node, windows.all()[0].place if windows.all() else select.place)
        if select.groups:
            self.places.note(node, place_of(select.groups[0]), part="groups")
        if having is not None:
            node = filtered(node, having.expression, None)
        node = _qualified(node, binder, qualify)
        timed = timed_results(windowed, keys)
        hidden = {each.name for each in timed if isinstance(each, Column)}
        return self._result(windowed.relation, node, columns, timed, hidden, binder.ranks)

    def _aggregated_columns(self, select: Select, windowed: WindowedRows, binder: AggregateBinder) -> Named:
        """The select list, as it is written; `window` alone stands for both bounds."""
        outputs: list[Output] = []
        for position, item in enumerate(select.items, 1):
            if is_star(item.expression):
                raise QueryError(
                    "* cannot be selected beside an aggregate",
                    hint=f"Name the columns: {listed(windowed.relation.schema.names)}.",
                    place=item.place,
                )
            if windowed.written and is_window_struct(item.expression, binder.scope):
                outputs += [Output(name, bound) for name, bound in binder.bounds(item.place)]
                continue
            outputs.append(output(item, binder.bind(item.expression), position, binder.scope))
        return named(outputs)

    # Ranks and results

    def _qualify(self, select: Select, binder: SelectBinder) -> Expression | None:
        if select.qualify is None:
            return None
        found = binder.qualify(select.qualify)
        if binder.ranks.ranking is None:
            raise QueryError(
                "QUALIFY needs a rank, and the select has none",
                hint="Use WHERE or HAVING, or add row_number() OVER (PARTITION BY window_start ORDER BY ...).",
                place=found.place,
            )
        return found.expression

    def _result(
        self,
        given: BoundRelation,
        node: Node,
        columns: Named,
        timed: Mapping[Expression, int | None],
        hidden: set[str],
        ranks: Ranks,
    ) -> BoundRelation:
        """The relation of a select list over a node; no projection when it changes nothing."""
        schema = pa.schema([(name, bound.type) for name, bound in columns])
        pairs = tuple((name, bound.expression) for name, bound in columns)
        unchanged = node is given.node and pairs == tuple((name, Column(name)) for name in given.schema.names)
        root = node if unchanged else Project(node, pairs)
        known = {name: timed[each] for name, each in pairs if each in timed}
        ranked = given.rank if ranks.ranking is None else ranks.name
        return BoundRelation(
            root,
            schema,
            given.label,
            {name: more for name, more in known.items() if more is not None},
            frozenset(hidden - set(schema.names)),
            instants=frozenset(name for name, more in known.items() if more is None),
            unit=given.unit,
            rank=next((name for name, each in pairs if ranked is not None and each == Column(ranked)), None),
        )


def _qualified(node: Node, binder: SelectBinder, qualify: Expression | None) -> Node:
    """The rows with the rank that the select asks for, and those that QUALIFY keeps."""
    node = binder.ranks.over(node)
    return node if qualify is None else filtered(node, qualify, binder.ranks.name)
