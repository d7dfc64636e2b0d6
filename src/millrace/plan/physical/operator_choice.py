"""Which operator of the kernel carries out a node of a plan, under the options of its query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pyarrow as pa

from millrace.kernel import operator_index as kernel
from millrace.kernel.aggregates.low_level.flush_policy import FlushPolicy
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.columns.expressions import Column, Expression
from millrace.kernel.progress.order import Order, TrailingRows
from millrace.plan.nodes import aggregate_nodes as windows
from millrace.plan.nodes import join_nodes as joins
from millrace.plan.nodes import relational_nodes as relational
from millrace.plan.nodes import update_nodes as updates
from millrace.plan.nodes.content_names import meaning
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.table_nodes import TableJoin
from millrace.plan.physical.group_promises import groups_of
from millrace.plan.physical.levels import Exchange
from millrace.plan.physical.pane_choice import FLUSH, low_level, pane_choice
from millrace.plan.updates.queue_configuration import settings_of

Options = Mapping[str, str]
Method = Literal["sync_filter", "filter_order", "adaptive"]

ALPHA = 0.05
"""The load from which on an adaptive join joins rows as they arrive, where a query does not say."""


def content_of(node: Node, options: Options, method: Method | None = None) -> object:
    """All that an operator's answer depends on; its name is made of it."""
    if node.is_prefix:
        return meaning(node)
    further: list[object] = [options.get(each) for each in node.depends_on]
    if isinstance(node, windows.Aggregate) and node.window.is_same_for_groups:
        # The rate of a stream decides too, and is not among what it means.
        further.append(pane_choice(node, options).buffered)
    if isinstance(node, joins.Join) and "smooth" in options:
        further.append(options["smooth"])
    return meaning(node), is_in_order(options), further if method is None else [*further, method]


def is_in_order(options: Options) -> bool:
    """True if a query is carried out by the plan that keeps everything in order, for comparison."""
    return options.get("order") == "in"


def has_state(node: Node, options: Options) -> bool:
    """True if the operator of a node remembers rows; some nodes have no operator of their own."""
    if relational.is_latent(node) or node.is_row_wise:
        return False
    if isinstance(node, relational.Union):
        return is_in_order(options)
    return node.keeps_rows and method_of(node, options) is None


def operator_of(node: Node, options: Options, method: Method | None = None) -> kernel.Operator:
    """A new operator for a node; a join by `method` gives its rows in order of time."""
    match node:
        case relational.Filter():
            return kernel.Filter(node.predicate)
        case relational.Project():
            return kernel.Project(node.columns)
        case relational.Explode():
            return kernel.Explode(node.array, node.element, node.position, node.kept, outer=node.outer)
        case TableJoin():
            sources = [each.source for each in relational.scans_of(node)]
            return kernel.TableJoin(
                node.table.name, sources, node.kind, node.keys, node.columns, node.condition, node.where
            )
        case relational.Union():
            merges = is_in_order(options) and not relational.is_latent(node)
            return kernel.Merge() if merges else kernel.Union()
        case relational.OrderByTime():
            further = node.further if isinstance(node, relational.OrderByColumns) else ()
            return kernel.Union() if relational.is_latent(node) else kernel.Merge(further)
        case relational.Numbered():
            return kernel.Number()
        case relational.Distinct():
            return kernel.Distinct(tuple(node.column_names()))
        case relational.Rank():
            return kernel.Rank(node.function, node.partition, node.order, node.name, node.limit)
        case relational.Since():
            return kernel.Since(node.time)
        case relational.RollUp():
            return kernel.RollUp()
        case relational.Released():
            return kernel.Released(by_number=node.schema.field("released_bound").type == pa.int64())
        case relational.RowSlack():
            return kernel.Slack(TrailingRows(node.rows))
        case relational.Slack():
            return kernel.Slack(Order(node.slack))
        case windows.Aggregate():
            return _aggregate(node, options)
        case joins.AnyJoin():
            return _join(node, options, method)
        case updates.UpdateQueue():
            return kernel.UpdateQueue(node.key or (), settings_of(options), len(node.inputs), node.truth)
        case updates.WindowQueue():
            return kernel.WindowQueue(
                node.key,
                node.range,
                node.slide,
                settings_of(options),
                origin=node.origin,
                update_window=node.update_window,
                close=node.close,
                tick=node.tick,
                inputs=len(node.inputs),
                truth=node.truth,
            )
        case updates.MarkedAggregate():
            return kernel.MarkedAggregate(partials_of(node.aggregate), node.span)
    raise AssertionError(node)


def method_of(node: Node, options: Options) -> Method | None:
    """How the join below an order by time gives its rows in order; None if there is no such join, or rows are sorted.

    Filters and projections between leave the order as it is. Rows in order of another time than the latest of their
    parts, and rows that matched nothing, are sorted after the join.
    """
    asked = options.get("join", "adaptive")
    if not isinstance(node, relational.OrderByTime) or asked == "oop" or is_in_order(options):
        return None
    if isinstance(node, relational.OrderByColumns):
        return None
    below = relational.below_maps(node.input)
    if not isinstance(below, joins.Join) or below.time != "max" or any(side.outer for side in below.sides):
        return None
    return asked  # type: ignore[return-value]  # the language has checked it


# Joins


def _join(node: joins.AnyJoin, options: Options, method: Method | None) -> kernel.Operator:
    schemas = [each.schema for each in node.inputs]
    limit = _state_limit(options)
    match node:
        case joins.Join() if method is not None:
            alpha = float(options.get("alpha", ALPHA))
            return kernel.OrderedJoin(schemas, node.sides, node.residual, method=method, alpha=alpha)
        case joins.Join():
            delay = int(options.get("smooth", 0)) if any(side.outer for side in node.sides) else 0
            return kernel.Join(schemas, node.sides, node.residual, node.time, joint=node.joint, delay=delay)
        case updates.OuterUpdateJoin():
            kind = kernel.TimedUpdateJoin if node.timed else kernel.UpdateJoin
            return kind(schemas, node.keys, node.within, node.residual, node.kept)
        case updates.TimedUpdateJoin():
            return kernel.TimedUpdateJoin(schemas, node.keys, node.within, node.residual)
        case updates.UpdateJoin():
            return kernel.UpdateJoin(schemas, node.keys, node.within, node.residual)
    first, second = (each.keeps_entry for each in node.inputs)
    match node:
        case joins.RowsJoin():
            return kernel.RowsJoin(schemas, node.sides, node.residual, by_entry=(first, second), state_limit=limit)
        case joins.Following(mode="recent", keys=keys, within=within, strict=strict, outer=outer):
            return kernel.AsofJoin(
                schemas, keys, within, strict=strict, outer=outer, by_entry=second, state_limit=limit
            )
        case joins.Following(keys=keys, within=within, outer=outer):
            return kernel.Chronicle(schemas, keys, within, outer=outer, by_entry=(first, second), state_limit=limit)
    raise AssertionError(node)


def _state_limit(options: Options) -> int | None:
    return int(options["state_limit"]) if "state_limit" in options else None


# Aggregates


def _aggregate(node: windows.Aggregate, options: Options) -> kernel.Operator:
    partials, limit, choice = partials_of(node), _state_limit(options), pane_choice(node, options)
    numbers = node.window.bounds_type == pa.int64()
    match node.window:
        case windows.SessionWindow(gap) as sessions:
            groups, merges = groups_of(node), sessions.merges_at_gap
            return kernel.SessionAggregate(partials, gap, groups=groups, merges_at_gap=merges, has_numbers=numbers)
        case windows.TrailingWindow(reach, unit):
            by_rows = unit == "rows"
            return kernel.TrailingAggregate(
                partials, reach, counts_rows=by_rows, has_numbers=numbers, state_limit=limit
            )
        case windows.PartitionedRows(rows, slide):
            where = None if node.where is None else _name(node.where)
            return kernel.PartitionedRowsAggregate(partials, rows, slide, where=where, state_limit=limit)
        case windows.PairWindow(first, second):
            return kernel.PairAggregate(partials, first, second)
        case _:
            return kernel.WindowAggregate(
                partials,
                in_order=is_in_order(options),
                buffered=choice.buffered,
                adapts=choice.adapts,
                groups=groups_of(node),
                has_numbers=numbers,
            )


def partials_of(node: windows.Aggregate) -> Partials:
    """How an aggregate reduces rows by window and key."""
    calls = [
        FunctionCall(
            each.name,
            each.function,
            tuple(map(_name, each.arguments)),
            None if each.where is None else _name(each.where),
            each.parameters,
        )
        for each in node.aggregations
    ]
    return Partials(node.window.geometry, [name for name, _ in node.keys], calls)


def low_aggregate(node: windows.Aggregate, options: Options) -> kernel.LowAggregate | None:
    """The bounded table below an aggregate, if the query asks for one."""
    asked = low_level(node, options)
    return None if asked is None else kernel.LowAggregate(partials_of(node), asked[0], FlushPolicy.parse(asked[1]))


def pre_aggregate(exchange: Exchange) -> kernel.PreAggregate | kernel.LowAggregate:
    """The aggregate below an exchange: partials of one task, by a bounded table if the query asks for one."""
    assert exchange.aggregate is not None
    partials = partials_of(exchange.aggregate)
    if exchange.low_level_groups is None:
        return kernel.PreAggregate(partials)
    return kernel.LowAggregate(partials, exchange.low_level_groups, FlushPolicy.parse(FLUSH))


def _name(expression: Expression) -> str:
    assert isinstance(expression, Column), "keys and arguments have been prepared"
    return expression.name
