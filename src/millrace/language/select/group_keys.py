"""The group keys of a select, found by column, expression, ordinal or alias."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from itertools import count

from sqlglot import exp

from millrace.errors import QueryError, listed
from millrace.kernel.columns.expressions import Column, Expression
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.calls import Functions
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.statements import Name, Select
from millrace.language.grammar.text.places import place_of
from millrace.language.select.aggregate_calls import UserAggregates, aggregates_in
from millrace.language.windows.window_clauses import is_window_struct, window_column
from millrace.language.windows.windowed_rows import WindowedRows
from millrace.plan.nodes.aggregate_nodes import WINDOW_END, WINDOW_START, PartitionedRows

Key = tuple[str, Typed]


class GroupKeys(ExpressionBinder):
    """Binds what a select groups by; bounds of a window that it `writes` itself are no groups."""

    def __init__(
        self, relation: BoundRelation, select: Select, functions: Functions, aggregates: UserAggregates, *, writes: bool
    ) -> None:
        super().__init__(relation.scope, functions)
        self.select = select
        self.aggregates = aggregates
        self.writes = writes
        self.found: list[Typed] = []
        self._seen: set[Expression] = set()
        self._aliases = {each.alias.text.lower(): each.expression for each in reversed(select.items) if each.alias}
        for node in select.groups:
            self._add(self._meant(node))

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """The expression behind an ordinal or an alias of the select list."""
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._at(node)
        if isinstance(node, exp.Column) and not node.table and self.scope.find(node.name) is None:
            return self._aliases.get(node.name.lower(), node)
        return node

    def _at(self, node: exp.Expr) -> exp.Expr:
        count = len(self.select.items)
        if not node.name.isdigit() or not 1 <= int(node.name) <= count:
            raise QueryError(
                f"the select list has no column {node.name}",
                hint=f"An ordinal goes from 1 to {count}.",
                place=place_of(node),
            )
        return self.select.items[int(node.name) - 1].expression

    def _add(self, node: exp.Expr) -> None:
        if self._is_own_window(node):
            return
        for over in node.find_all(exp.Window):
            self.over(over)
        for aggregate in aggregates_in(node, self.aggregates):
            raise QueryError(
                "an aggregate is not allowed in GROUP BY",
                hint="Group by columns; aggregates are selected.",
                place=place_of(aggregate),
            )
        bound = self.bind(node)
        if bound.expression not in self._seen:
            self._seen.add(bound.expression)
            self.found.append(bound)

    def _is_own_window(self, node: exp.Expr) -> bool:
        """True if a node names the window of the select, and not a column of what it reads."""
        if window_column(node, self.scope) is None:
            return self.writes and is_window_struct(node, self.scope)
        return self.writes or not isinstance(node, exp.Column) or self.scope.meant(node) is None

    def keys(self, windowed: WindowedRows) -> list[Key]:
        """The keys under the names that they have in the aggregate; the group that the window stands for is none."""
        named: list[Key] = []
        taken = set() if windowed.bounds_type is None else {WINDOW_START, WINDOW_END}
        columns = {name.lower() for name in self.scope.schema.names}
        others = (name for name in unused_names("k", columns) if name not in taken)
        for bound in self.found:
            if windowed.group is None or bound.expression != windowed.group.expression:
                own = bound.expression.name if isinstance(bound.expression, Column) else None
                name = next(others) if own is None or own.lower() in taken else own
                taken.add(name.lower())
                named.append((name, bound))
        return named

    # PARTITION BY

    def partitioned(self, windowed: WindowedRows, partition: tuple[Name, ...]) -> None:
        """Check PARTITION BY against the groups; without GROUP BY its columns are the groups."""
        wanted = [self.scope.column(exp.column(each.text), each.place) for each in partition]
        if isinstance(windowed.window, PartitionedRows) and not self.found:
            self.found = wanted
        have = {each.expression for each in self.found}
        same = have == {each.expression for each in wanted}
        missing = next((each for each in wanted if each.expression not in have), None)
        if same or not partition or (missing is None and not isinstance(windowed.window, PartitionedRows)):
            return
        names = listed(each.text for each in partition)
        place = partition[0].place if missing is None else missing.place
        raise QueryError("GROUP BY and PARTITION BY differ", hint=f"Write GROUP BY {names}.", place=place)


def grouped_by_all(select: Select, aggregates: UserAggregates) -> Select:
    """GROUP BY ALL written out: by each column of the select list that has neither an aggregate nor a rank."""
    if not select.by_all:
        return select
    nodes = [each.expression for each in select.items if each.expression.find(exp.Column)]
    plain = [each for each in nodes if not each.find(exp.Star, exp.Window) and not any(aggregates_in(each, aggregates))]
    return replace(select, groups=tuple(plain), by_all=False)


def unused_names(prefix: str, taken: Container[str]) -> Iterator[str]:
    """Names that are not taken yet, each once."""
    return (name for number in count() if (name := f"{prefix}{number}") not in taken)
