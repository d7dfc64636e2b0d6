"""Which operator of the kernel carries out a node of a plan, under the options of its query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from millrace.kernel import operators as kernel
from millrace.kernel.aggregates.panes.window_geometry import Calendar, Divided, Frames, Instants
from millrace.kernel.aggregates.partials import Aggregation, Partials
from millrace.kernel.columns.expressions import Column, Expression
from millrace.plan.nodes.aggregate_nodes import (
    Aggregate,
    AnyWindow,
    CalendarWindow,
    DividedWindow,
    PairWindow,
    PartitionedRows,
    SessionWindow,
    TrailingWindow,
    Window,
)
from millrace.plan.nodes.content_names import meaning
from millrace.plan.nodes.join_nodes import AnyJoin, Following, Join, RowsJoin
from millrace.plan.nodes.node import Node, walk
from millrace.plan.nodes.relational_nodes import (
    Distinct,
    Filter,
    Numbered,
    OrderByTime,
    Project,
    Rank,
    RollUp,
    Scan,
    Since,
    Slack,
    Union,
)
from millrace.plan.nodes.update_nodes import MarkedAggregate, UpdateJoin, UpdateQueue, WindowQueue
from millrace.plan.physical.group_promises import groups_of
from millrace.plan.physical.pane_choice import by_window, chosen
from millrace.plan.updates.queue_options import settings_of as settings_of

Options = Mapping[str, str]
Method = Literal["sync_filter", "filter_order", "adaptive"]

ALPHA = 0.3
"""From which load on an adaptive join joins rows as they come, where a query does not say."""

_MEANING: Mapping[type, tuple[str, ...]] = {
    Aggregate: ("panes", "state_limit"),
    Following: ("state_limit",),
    RowsJoin: ("state_limit",),
    Join: ("alpha",),
}
"""The options, beside the order, that change what an operator is."""


def content_of(node: Node, options: Options, method: Method | None = None) -> object:
    """What an operator's meaning depends on."""
    if node.is_prefix:
        return meaning(node)
    further: list[object] = [options.get(each) for each in _MEANING.get(type(node), ())]
    if isinstance(node, Aggregate) and by_window(node.window):
        # The rate of a stream decides too, and is not among what it means.
        further.append(chosen(node, options).buffered)
    return meaning(node), is_in_order(options), further if method is None else [*further, method]


def is_in_order(options: Options) -> bool:
    """Whether a query is carried out by the plan that keeps everything in order, for comparison."""
    return options.get("order") == "in"


def has_state(node: Node, options: Options) -> bool:
    """Whether the operator of a node remembers rows; some nodes have no operator of their own."""
    match node:
        case Scan() | Filter() | Project() | Since() | RollUp():
            return False
        case Union():
            return is_in_order(options)
        case OrderByTime():
            return not _is_latent(node) and method_of(node, options) is None
        case _:
            return True


def operator_of(node: Node, options: Options, method: Method | None = None) -> kernel.Operator:
    """A new operator for a node; a join by `method` gives its rows in order of time."""
    match node:
        case Filter():
            return kernel.Filter(node.predicate)
        case Project():
            return kernel.Project(node.columns)
        case Union():
            return kernel.Merge() if is_in_order(options) else kernel.Union()
        case OrderByTime():
            return kernel.Union() if _is_latent(node) else kernel.Merge()
        case Numbered():
            return kernel.Number()
        case Aggregate():
            return _aggregate(node, options)
        case Distinct():
            return kernel.Distinct(tuple(node.schema.names))
        case Rank():
            return kernel.Rank(node.function, node.partition, node.order, node.name, node.limit)
        case Since():
            return kernel.Since(node.time)
        case RollUp():
            return kernel.RollUp()
        case Slack():
            return kernel.Slack(node.slack)
        case Join() | RowsJoin() | Following():
            return _join(node, options, method)
        case UpdateQueue() | WindowQueue() | MarkedAggregate() | UpdateJoin():
            return _updating(node, options)
        case _:
            raise AssertionError(f"no operator carries out {type(node).__name__}")


def method_of(node: Node, options: Options) -> Method | None:
    """How the join right below an order by time, if there is one, gives its rows in order; None: they are sorted.

    Filters and projections between leave the order as it is. Rows in order of another time than the latest of their
    parts, and rows that matched nothing, are sorted after the join.
    """
    asked = options.get("join", "adaptive")
    below = ordered_join(node)
    if below is None or asked == "oop" or is_in_order(options):
        return None
    return asked  # type: ignore[return-value]  # the language has checked it


def ordered_join(node: Node) -> Join | None:
    """The join whose own order an order by time asks for."""
    if not isinstance(node, OrderByTime):
        return None
    below = node.input
    while isinstance(below, Filter | Project):
        below = below.input
    if not isinstance(below, Join) or below.time != "max" or any(side.outer for side in below.sides):
        return None
    return below


# Joins


def _join(node: AnyJoin, options: Options, method: Method | None) -> kernel.Operator:
    schemas = [each.schema for each in node.inputs]
    by_entry = [each.keeps_entry for each in node.inputs]
    limit = _state_limit(options)
    match node:
        case Join() if method is not None:
            alpha = float(options.get("alpha", ALPHA))
            return kernel.OrderedJoin(schemas, node.sides, node.residual, method=method, alpha=alpha)
        case Join():
            return kernel.Join(schemas, node.sides, node.residual, node.time, joint=node.joint)
        case RowsJoin():
            both = by_entry[0], by_entry[1]
            return kernel.RowsJoin(schemas, node.sides, node.residual, by_entry=both, state_limit=limit)
        case Following(mode="recent"):
            return kernel.Recent(
                schemas,
                node.keys,
                node.within,
                strict=node.strict,
                outer=node.outer,
                by_entry=by_entry[1],
                state_limit=limit,
            )
        case Following():
            return kernel.Chronicle(
                schemas,
                node.keys,
                node.within,
                outer=node.outer,
                by_entry=(by_entry[0], by_entry[1]),
                state_limit=limit,
            )
    raise AssertionError(node)


def _state_limit(options: Options) -> int | None:
    return int(options["state_limit"]) if "state_limit" in options else None


# Updates


def _updating(node: UpdateQueue | WindowQueue | MarkedAggregate | UpdateJoin, options: Options) -> kernel.Operator:
    match node:
        case UpdateQueue():
            return kernel.UpdateQueue(node.key or (), settings_of(options), len(node.inputs), node.truth)
        case WindowQueue():
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
        case MarkedAggregate():
            return kernel.MarkedAggregate(partials_of(node.aggregate), node.span)
        case UpdateJoin():
            return kernel.UpdateJoin([each.schema for each in node.inputs], node.keys, node.within, node.residual)


# Aggregates


def _aggregate(node: Aggregate, options: Options) -> kernel.Operator:
    partials, limit = partials_of(node), _state_limit(options)
    match node.window:
        case SessionWindow(gap):
            return kernel.SessionAggregate(partials, gap, groups=groups_of(node))
        case TrailingWindow(reach, unit):
            return kernel.TrailingAggregate(partials, reach, counts_rows=unit == "rows", state_limit=limit)
        case PartitionedRows(rows, slide):
            where = None if node.where is None else _name(node.where)
            return kernel.PartitionedRowsAggregate(partials, rows, slide, where=where, state_limit=limit)
        case PairWindow(first, second):
            return kernel.PairAggregate(partials, first, second)
        case window:
            return kernel.WindowAggregate(
                partials,
                in_order=is_in_order(options),
                buffered=chosen(node, options).buffered,
                groups=groups_of(node),
                counts_rows=isinstance(window, Window) and window.unit == "rows",
            )


def partials_of(node: Aggregate) -> Partials:
    """How an aggregate reduces rows by frame and key."""
    aggregations = [
        Aggregation(
            each.name,
            each.function,
            tuple(map(_name, each.arguments)),
            None if each.where is None else _name(each.where),
            each.parameters,
        )
        for each in node.aggregations
    ]
    return Partials(_frames(node.window), [name for name, _ in node.keys], aggregations)


def _frames(window: AnyWindow) -> Frames:
    match window:
        case CalendarWindow():
            return Calendar({"month": 1, "quarter": 3, "year": 12}[window.every])
        case DividedWindow():
            return Divided(window.tick, window.count)
        case Window():
            return Frames(window.range, window.slide, window.origin)
        case _:
            # Windows that follow single groups make their own frames.
            return Instants()


def _name(expression: Expression) -> str:
    assert isinstance(expression, Column), "keys and arguments have been prepared"
    return expression.name


def _is_latent(node: Node) -> bool:
    """Whether nothing below has a time to be ordered by: then rows come as they come."""
    below = list(walk(node))
    scans = [each for each in below if isinstance(each, Scan)]
    return not any(isinstance(each, Aggregate) for each in below) and all(
        scan.stream.time.kind == "latent" for scan in scans
    )
