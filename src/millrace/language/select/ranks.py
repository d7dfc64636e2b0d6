"""Ranks over the rows of a window: `row_number() OVER (PARTITION BY window_start, ... ORDER BY n DESC)`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import cast

import pyarrow as pa
from sqlglot import exp

from millrace.errors import NotYet, QueryError
from millrace.kernel.columns.expressions import Column, Expression
from millrace.language.expressions import typed
from millrace.language.expressions.bound_relation import BoundRelation
from millrace.language.expressions.calls import Functions, called_name
from millrace.language.expressions.expression_binder import ExpressionBinder
from millrace.language.expressions.sql_functions import RANKS
from millrace.language.expressions.typed import Typed
from millrace.language.grammar.statements import Select
from millrace.language.grammar.text.places import place_of
from millrace.language.select.group_keys import unused_names
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Project, Rank

Function = OneOf["row_number", "rank", "dense_rank"]
_BEFORE = "The row before of the same key is FROM s AS x ASOF JOIN s AS y ON y.ts < x.ts AND x.k = y.k."
_AFTER = (
    "Take the later row, and the row before it: FROM s AS y ASOF JOIN s AS x ON x.ts < y.ts AND x.k = y.k, where y is "
    "the row that follows x."
)
_PARTS = "Write row_number() OVER (PARTITION BY window_start ORDER BY n), which numbers the results of a window."
_INSTEAD = {"lag": _BEFORE, "lead": _AFTER, **dict.fromkeys(("ntile", "percent_rank", "cume_dist"), _PARTS)}
_EACH_ROW = (
    "An aggregate for each row, over the rows before it, is one over a window without SLIDE: FROM s [RANGE 5 MINUTES] "
    "or FROM s [ROWS 100 PARTITION BY k], with GROUP BY k."
)
_HINT = "Write row_number() OVER (PARTITION BY window_start, window_end ORDER BY n DESC)."


@dataclass(frozen=True)
class Ranking:
    """A rank as it was bound: its function, partition and order."""

    function: Function
    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool], ...]


class Ranks:
    """The rank of a select; `timed` are the expressions that say the rows' own time."""

    def __init__(self, timed: Collection[Expression], taken: Collection[str]) -> None:
        self.timed = timed
        self.name = next(unused_names("r", {each.lower() for each in taken}))
        self.ranking: Ranking | None = None

    def column(self, binder: ExpressionBinder, node: exp.Window) -> Typed:
        """The column of a rank that stands in an expression."""
        if called_name(node.this) not in RANKS:
            raise NotYet(
                "functions with OVER other than row_number, rank and dense_rank are not supported yet",
                hint=_INSTEAD.get(called_name(node.this), _EACH_ROW),
            )
        ranking = Ranking(
            cast(Function, called_name(node.this)),
            tuple(binder.bind(each).expression for each in node.args.get("partition_by") or ()),
            self._order(binder, node),
        )
        if not any(each in self.timed for each in ranking.partition):
            fact = "a rank without the window in PARTITION BY never ends on an unbounded stream"
            raise QueryError(fact, hint=self._among(node))
        if self.ranking not in (None, ranking):
            raise QueryError("a select has two ranks", hint="Write one of them in a query around the other.")
        self.ranking = ranking
        return typed.column(self.name, pa.int64())

    def _among(self, node: exp.Window) -> str:
        """What PARTITION BY should name: a column that says the rows' own time."""
        names = sorted(each.name for each in self.timed if isinstance(each, Column))
        if not names:
            return "Select window_start in the query of a window, and name it in PARTITION BY in a query around that."
        by = ", ".join(["window_start" if "window_start" in names else names[0], *_written(node, "partition_by")])
        order = ", ".join(_written(node.args.get("order"), "expressions")) or "..."
        return f"Write {called_name(node.this)}() OVER (PARTITION BY {by} ORDER BY {order}), the rank among these rows."

    def _order(self, binder: ExpressionBinder, node: exp.Window) -> tuple[tuple[Expression, bool], ...]:
        order = node.args.get("order")
        if order is None or node.args.get("spec") is not None or node.this.expressions:
            raise QueryError("a rank needs ORDER BY, and nothing after it", hint=_HINT)
        found = []
        for each in order.expressions:
            descending = bool(each.args.get("desc"))
            if each.args.get("nulls_first") not in (None, not descending):
                raise QueryError(
                    "nulls are ranked as the least value",
                    hint="Leave NULLS FIRST and NULLS LAST out, or rank by coalesce(column, value).",
                    place=place_of(each),
                )
            found.append((binder.bind(each.this).expression, descending))
        return tuple(found)

    def over(self, node: Node) -> Node:
        """The rows with their rank, if the select has one."""
        if self.ranking is None:
            return node
        wanted = [*self.ranking.partition, *(each for each, _ in self.ranking.order)]
        names = _names(wanted, list(node.schema.names))
        computed = [(name, each) for each, name in names.items() if not isinstance(each, Column)]
        if computed:
            kept = [(name, Column(name)) for name in node.schema.names]
            node = Project(node, (*kept, *computed))
        partition = tuple(names[each] for each in self.ranking.partition)
        order = tuple((names[each], descending) for each, descending in self.ranking.order)
        return Rank(node, self.ranking.function, partition, order, self.name)


def _written(node: exp.Expr | None, part: str) -> list[str]:
    """The items of a part of a node, as they are written."""
    items = node.args.get(part) or () if node is not None else ()
    places = [(place_of(each), " DESC" if each.args.get("desc") else "") for each in items]
    return [place.text + order for place, order in places if place is not None]


def by_partition(select: Select, given: BoundRelation, functions: Functions) -> BoundRelation:
    """The rows of a join with the time in PARTITION BY of a rank as their own."""
    if given.choices is None:
        return given
    clauses = [*(item.expression for item in select.items), *([] if select.qualify is None else [select.qualify])]
    overs = [over for clause in clauses for over in clause.find_all(exp.Window)]
    binder = ExpressionBinder(given.scope, functions)
    for node in (each for over in overs for each in over.args.get("partition_by") or ()):
        # A plain name may also be one of the select list, which stands for something else.
        if isinstance(node, exp.Column) and (node.table or given.scope.find(node.name) is not None):
            expression = binder.bind(node).expression
            time = given.choices.choice(expression)
            if time is not None and expression not in {Column(name) for name in given.times}:
                return given.by_time(time, expression)
    return given


def _names(expressions: list[Expression], taken: list[str]) -> dict[Expression, str]:
    """A column for each expression: itself, or a new one."""
    names: dict[Expression, str] = {}
    for each in expressions:
        if each not in names:
            used = {name.lower() for name in (*taken, *names.values())}
            names[each] = each.name if isinstance(each, Column) else next(unused_names("o", used))
    return names
