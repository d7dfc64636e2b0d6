"""Queries into trees of nodes: Scan -> Filter -> Aggregate -> Filter -> Project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from millrace.errors import Place, QueryError
from millrace.kernel.expressions import Column, Expression
from millrace.language import typed
from millrace.language.aggregation import (
    AggregateBinder,
    Groups,
    aggregates_in,
    first_aggregate,
    refuse_nested,
    refuse_over,
    refuse_star,
)
from millrace.language.calls import called_name
from millrace.language.expressions import ExpressionBinder
from millrace.language.functions import AGGREGATE_NAMES
from millrace.language.places import Source, listed, near
from millrace.language.scopes import Relation
from millrace.language.statements import Body, FromItem, Name, OrderItem, Select, SelectItem
from millrace.language.typed import TIMESTAMP, Typed
from millrace.language.unions import renamed, union
from millrace.language.windows import Windows, refuse_window_without_aggregate, window_column
from millrace.plan.nodes import WINDOW_END, WINDOW_START, Filter, Node, OrderByTime, Project, Scan, Stream

Named = list[tuple[str, Typed]]


@dataclass(frozen=True)
class Binder:
    """Binds queries over the declared streams; `queries` are names that someone may take for streams."""

    source: Source
    streams: Mapping[str, Stream]
    queries: frozenset[str] = frozenset()

    def body(self, body: Body, *, inside: bool = False) -> Relation:
        """The rows of selects under UNION, in the order asked for."""
        inputs = [
            self.body(each, inside=True) if isinstance(each, Body) else self._select(each) for each in body.selects
        ]
        relation = union(inputs, body.place)
        if not body.order:
            return relation
        if inside:
            raise QueryError(
                "ORDER BY stands in a subquery",
                hint="Order holds for a whole query: put ORDER BY at its end.",
                place=self.source.of_node(body.order[0].expression),
            )
        self._check_order(body.order, relation)
        return replace(relation, node=OrderByTime(relation.node))

    def _check_order(self, order: tuple[OrderItem, ...], relation: Relation) -> None:
        node = order[0].expression
        times = relation.times | relation.hidden_times
        named = isinstance(node, exp.Column) and node.name.lower() in {each.lower() for each in times}
        if len(order) == 1 and named and not order[0].descending:
            return
        wrong = order[1].expression if len(order) > 1 and named and not order[0].descending else node
        raise QueryError(
            "a stream without end can be ordered by its time alone, from early to late",
            hint=f"Write ORDER BY {sorted(times)[0]}."
            if times
            else "Leave ORDER BY out: this stream has no time column.",
            place=self.source.of_node(wrong),
        )

    # FROM

    def _from(self, item: FromItem) -> Relation:
        inputs = [
            self._stream(each) if isinstance(each, Name) else self.body(each, inside=True) for each in item.sources
        ]
        relation = union(inputs, item.place)
        return renamed(relation, item.alias.text if item.alias else None)

    def _stream(self, name: Name) -> Relation:
        stream = self.streams.get(name.text.lower())
        if stream is None:
            raise self._unknown_stream(name)
        times = frozenset({stream.time.column} if stream.time.column else ())
        return Relation(Scan(stream), stream.schema, stream.name, times, qualifier=stream.name)

    def _unknown_stream(self, name: Name) -> QueryError:
        if name.text.lower() in self.queries:
            return QueryError(
                f'"{name.text}" is a query, not a stream',
                hint="Write it as a subquery: FROM (SELECT ...).",
                place=name.place,
            )
        names = [stream.name for stream in self.streams.values()]
        known = f"The streams are {listed(names)}." if names else "Declare it with CREATE STREAM."
        return QueryError(
            f'stream "{name.text}" does not exist', hint=f"{near(name.text, names)}{known}", place=name.place
        )

    # SELECT

    def _select(self, select: Select) -> Relation:
        refuse_over(select, self.source)
        given = self._from(select.source)
        if select.where is not None:
            given = self._filtered(given, select.where)
        aggregate = first_aggregate(select)
        if aggregate is None and not select.groups and select.having is None:
            refuse_window_without_aggregate(Windows(select, self.source))
            return self._projected(select, given)
        anchor = next(node for node in (aggregate, *select.groups, select.having) if node is not None)
        return self._aggregated(select, given, self.source.of_node(anchor))

    def _filtered(self, relation: Relation, node: exp.Expr) -> Relation:
        for aggregate in aggregates_in(node):
            raise QueryError(
                "an aggregate stands in WHERE",
                hint="WHERE chooses rows before they are aggregated; use HAVING.",
                place=self.source.of_node(aggregate),
            )
        predicate = ExpressionBinder(self.source, relation.scope).condition(node, "the condition of WHERE")
        return replace(relation, node=Filter(relation.node, predicate.expression))

    def _projected(self, select: Select, given: Relation) -> Relation:
        binder = ExpressionBinder(self.source, given.scope)
        columns: Named = []
        for position, item in enumerate(select.items, 1):
            if is_star(item.expression):
                columns += self._star(item, given)
            else:
                bound = binder.bind(item.expression)
                columns.append((output_name(item, bound, position), bound))
        _check_names(columns)
        times = frozenset(name for name, bound in columns if _reads(bound.expression, given.times))
        hidden = (given.times | given.hidden_times) - {name for name, _ in columns}
        return self._result(given, given.node, columns, times, hidden)

    def _star(self, item: SelectItem, given: Relation) -> Named:
        node = item.expression
        if item.alias is not None or (isinstance(node, exp.Star) and any(node.args.values())):
            raise QueryError(
                "* takes neither a name nor EXCEPT", hint="Name the columns that you want.", place=item.place
            )
        if isinstance(node, exp.Column):
            given.scope.check_qualifier(node, item.place)
        return [(each.name, typed.column(each.name, each.type, item.place)) for each in given.schema]

    def _aggregated(self, select: Select, given: Relation, place: Place) -> Relation:
        refuse_nested(given, place)
        window = Windows(select, self.source).bound(given, place)
        binder = AggregateBinder(self.source, given, Groups(self.source, given, select))
        columns = self._aggregated_columns(select, given, binder)
        binder.aliases = {item.alias.text.lower(): item.expression for item in select.items if item.alias is not None}
        having = None if select.having is None else binder.condition(select.having, "the condition of HAVING")
        node: Node = binder.aggregate(given, window)
        if having is not None:
            node = Filter(node, having.expression)
        bounds = frozenset({WINDOW_START, WINDOW_END})
        times = frozenset(name for name, bound in columns if _reads(bound.expression, bounds))
        hidden = bounds - {name for name, _ in columns}
        return replace(self._result(given, node, columns, times, hidden), aggregated=True)

    def _aggregated_columns(self, select: Select, given: Relation, binder: AggregateBinder) -> Named:
        """The select list; the bounds of the window come first unless it names one of them itself."""
        columns: Named = []
        for position, item in enumerate(select.items, 1):
            if is_star(item.expression):
                raise refuse_star(item.place, list(given.schema.names))
            if _is_window_struct(item.expression, given):
                columns += _bounds(item.place)
                continue
            bound = binder.bind(item.expression)
            columns.append((output_name(item, bound, position), bound))
        if not any(_reads(bound.expression, frozenset({WINDOW_START, WINDOW_END})) for _, bound in columns):
            columns = _bounds(select.place) + columns
        _check_names(columns)
        return columns

    def _result(
        self, given: Relation, node: Node, columns: Named, times: frozenset[str], hidden: frozenset[str]
    ) -> Relation:
        """The relation of a select list over a node; no projection when it changes nothing."""
        schema = pa.schema([(name, bound.type) for name, bound in columns])
        named = tuple((name, bound.expression) for name, bound in columns)
        unchanged = node is given.node and named == tuple((name, Column(name)) for name in given.schema.names)
        root = node if unchanged else Project(node, named)
        return Relation(root, schema, given.label, times, hidden, aggregated=given.aggregated)


def is_star(node: exp.Expr) -> bool:
    """Whether a node is `*` or `name.*`."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def _is_window_struct(node: exp.Expr, given: Relation) -> bool:
    """`window` alone, as Spark selects both bounds at once."""
    if called_name(node) == "window":
        return True
    return (
        isinstance(node, exp.Column)
        and not node.table
        and node.name.lower() == "window"
        and given.scope.find("window") is None
    )


def _bounds(place: Place) -> Named:
    return [(name, typed.column(name, TIMESTAMP, place)) for name in (WINDOW_START, WINDOW_END)]


def _reads(expression: Expression, names: frozenset[str]) -> bool:
    return isinstance(expression, Column) and expression.name in names


def output_name(item: SelectItem, bound: Typed, position: int) -> str:
    """The name of a result column: its alias, its column, `count`, `sum_len`, or its position."""
    if item.alias is not None:
        return item.alias.text
    node = item.expression
    if (bounds := window_column(node)) is not None and isinstance(bound.expression, Column):
        return bounds
    if isinstance(node, exp.Column) and isinstance(bound.expression, Column):
        return bound.expression.name
    name = AGGREGATE_NAMES.get(called_name(node))
    if name is not None and len(node.expressions) == 1:
        argument = node.expressions[0]
        if name == "count" and not isinstance(argument, exp.Column):
            return "count"
        if isinstance(argument, exp.Column):
            return f"{name}_{argument.name}"
    return f"c{position}"


def _check_names(columns: Named) -> None:
    seen: set[str] = set()
    for name, bound in columns:
        if name.lower() in seen:
            raise QueryError(
                f'two columns are named "{name}"', hint="Give one of them another name with AS.", place=bound.place
            )
        if name.lower().startswith("__"):
            raise QueryError(
                f'the name "{name}" is reserved',
                hint="Names with two underscores in front are ours.",
                place=bound.place,
            )
        if pa.types.is_null(bound.type):
            raise QueryError(f'column "{name}" has no type', hint="Write CAST(NULL AS type).", place=bound.place)
        seen.add(name.lower())
