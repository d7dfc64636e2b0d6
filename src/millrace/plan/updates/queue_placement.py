"""Queues put into the trees of update queries (002 section 4.1).

Rules:
- Filters without user functions stand below the queue: an update that they drop never enters it. All else stands
  above, where it is done only for the rows that the queue releases.
- A union of streams is one queue with several inputs. Where an input calls a user function, each stream has a queue,
  and the union another one, which keeps a key from going back in time.
- A join of streams has a queue per input. Window aggregates at the top have a window queue; two in a chain have one
  whose windows hold all rows that a result of the upper one is made of, and no others: else a key could be committed to
  a window without a result.
- Whatever else an update query is made of stands below its queue, where all rows count: there joins go in order of time
  and all windows are computed, so that what enters the queue does not depend on the load.
- With an append queue every row counts: it stands in front of each stream, and the rest is an ordinary query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, cast

from millrace.kernel.columns.expressions import Call, Column, Expression
from millrace.kernel.progress.time_contract import ASIDE
from millrace.plan.nodes.aggregate_nodes import Aggregate, Window
from millrace.plan.nodes.conditions import all_of, conjuncts, substituted
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Keys, Node, walk
from millrace.plan.nodes.query_network import Query
from millrace.plan.nodes.relational_nodes import Filter, Project, Scan, Union, below_maps, scan_of, scans_of
from millrace.plan.nodes.update_nodes import (
    AnyQueue,
    AnyUpdateJoin,
    MarkedAggregate,
    OuterUpdateJoin,
    TimedUpdateJoin,
    UpdateJoin,
    UpdateQueue,
    WindowQueue,
)
from millrace.plan.updates.queue_configuration import is_append, options_at, settings_of
from millrace.plan.updates.refusals import NoUpdateSemantics, not_yet
from millrace.plan.updates.update_keys import first_of, key_equalities, key_names, reads_updates, result_key
from millrace.plan.updates.window_commitments import committed

Mode = Literal["plain", "append", "update"]


def mode_of(root: Node, options: Mapping[str, str]) -> Mode:
    """What the queues of a query do: there are none, all rows pass, or rows of a key update each other."""
    if is_append(options):
        return "append"
    return "update" if reads_updates(root) or "queue" in options else "plain"


def key_of(query: Query) -> tuple[str, ...] | None:
    """The columns of a query's results that tell its answers apart; None if they are no updates of each other."""
    return key_names(query.root) if mode_of(query.root, query.options) == "update" else None


def queue_policies(query: Query) -> dict[str, str]:
    """The policies of a query's queues that take rows of streams, by the name of the queue.

    They are called by its name, numbered from the second on.
    """
    found = [
        settings_of(options_at(queue, query.options)).policy
        for queue in queues_of(query.root, query.options)
        if not any(isinstance(each, AnyQueue) for one in queue.inputs for each in walk(one))
    ]
    return {query.name if not number else f"{query.name}#{number + 1}": each for number, each in enumerate(found)}


def queues_of(root: Node, options: Mapping[str, str]) -> list[AnyQueue]:
    """The queues of a query."""
    return [each for each in walk(_placed(root, "", options)) if isinstance(each, AnyQueue)]


def has_queue_per_stream(root: Node) -> bool:
    """True if each stream that a query reads has a queue of its own: it joins them as they come."""
    join = below_maps(root)
    return isinstance(join, Join) and all(
        _is_of_rows(each) and len({scan.stream.name for scan in scans_of(each)}) == 1 for each in join.inputs
    )


def check_updates(root: Node, options: Mapping[str, str]) -> None:
    """Refuse a query whose parts have no update semantics, or that its queue cannot carry out."""
    if mode_of(root, options) != "update":
        return
    key_names(root)
    windows = bool(committed(root))
    for each in walk(root):
        if isinstance(each, Union):
            _check_union(each, windows=windows)
    _placed(root, "", options)


def _check_union(node: Union, *, windows: bool) -> None:
    if windows and not _is_cheap(node):
        raise NoUpdateSemantics(
            "a user function below a union with windows is not supported yet",
            hint="Call it in the aggregate, or in a query around the union: then it is called only for rows that the "
            "queue releases.",
            node=node,
        )
    if _is_cheap(node) and sum(is_truth for _, is_truth in _flat(node)) > 1:
        raise NoUpdateSemantics("a union has two sources of truth", hint="Name one of them after TRUTH.", node=node)


def with_queues(root: Node, query: Query) -> Node:
    """The tree with the queues that its query asks for."""
    return _placed(root, query.name, query.options)


def _placed(root: Node, name: str, options: Mapping[str, str]) -> Node:
    mode = mode_of(root, options)
    if mode == "plain":
        return root
    windows = committed(root) if mode == "update" else ()
    placement = _QueuePlacement(name, windows, _window_of(windows, name, options), mode == "append")
    if mode == "append" and not _is_of_rows(root):
        return placement.each_stream(root)
    return placement.tree(root)


def _window_of(aggregates: Sequence[Aggregate], query: str, options: Mapping[str, str]) -> WindowQueue | None:
    """The queue of windows that these aggregates have, without what it reads; None if there are none."""
    if not aggregates:
        return None
    upper, *lower = (cast(Window, each.window) for each in aggregates)
    # The first lower window whose result an upper one holds ends one slide after its start.
    reach = sum(each.range - each.slide for each in lower)
    return WindowQueue(
        (),
        (),
        query,
        upper.range + reach,
        upper.slide,
        (upper.origin - reach) % upper.slide,
        options.get("update_window", "eager"),  # type: ignore[arg-type]  # the language has checked it
        options.get("close", "bound"),  # type: ignore[arg-type]
        int(options.get("tick", 1)),
    )


def _is_cheap(node: Node) -> bool:
    """True if nothing in a tree calls a user function."""
    return not any(expression.is_guarded for each in walk(node) for expression in each.expressions())


@dataclass(frozen=True)
class _QueuePlacement:
    """Puts queues into a tree; those of a query that is committed to windows are like `window`."""

    query: str
    committed: tuple[Aggregate, ...]
    window: WindowQueue | None
    append: bool

    def each_stream(self, node: Node) -> Node:
        """The tree with a queue in front of each stream."""
        if not node.is_prefix:
            return node.map_children(self.each_stream)
        return node if scan_of(node).outlet in ASIDE else self.tree(node)

    def tree(self, node: Node, below: Sequence[Expression] = ()) -> Node:
        """A tree with queues at its bottom; conditions on its rows that stand `below` go down as far as they can."""
        match node:
            case Filter():
                parts = conjuncts(node.predicate)
                dear = [each for each in parts if each.is_guarded]
                inner = self.tree(node.input, [*(each for each in parts if not each.is_guarded), *below])
                return _filtered(inner, dear)
            case Project():
                return self._project(node, below)
            case Union():
                return self._union(node, below)
            case Aggregate() if node in self.committed:
                return _filtered(self._aggregate(node), below)
            case Join() if self.window is None and all(map(_is_of_rows, node.inputs)):
                return _filtered(_update_join(node, tuple(map(self.tree, node.inputs)), timed=False), below)
            case Scan():
                return self._queue((_filtered(node, below),), node.stream.update_key)
        return self._queue((_filtered(_counted(node), below),), key_names(node))

    def _project(self, node: Project, below: Sequence[Expression]) -> Node:
        given = dict(node.columns)
        meant = [(each, substituted(each, given)) for each in below]
        inner = self.tree(node.input, [one for _, one in meant if not one.is_guarded])
        return _filtered(replace(node, input=inner), [each for each, one in meant if one.is_guarded])

    def _union(self, node: Union, below: Sequence[Expression]) -> Node:
        key = self._key(node)
        if key is None:
            return replace(node, inputs=tuple(self.tree(each, below) for each in node.inputs))
        if _is_cheap(node):
            flat = _flat(node)
            truth = next((place for place, (_, is_truth) in enumerate(flat) if is_truth), None)
            return self._queue(tuple(_filtered(_counted(each), below) for each, _ in flat), key, truth)
        return self._queue(tuple(self.tree(each, below) for each in node.inputs), key, node.truth)

    def _key(self, node: Union) -> tuple[str, ...] | None:
        """The update key of a union; None where an append queue has none."""
        try:
            return tuple(first_of(each, node.schema.names) for each in result_key(node).columns)
        except NoUpdateSemantics:
            if self.append:
                return None
            raise

    def _queue(self, inputs: tuple[Node, ...], key: tuple[str, ...] | None, truth: int | None = None) -> Node:
        if self.window is None:
            return UpdateQueue(inputs, key, self.query, truth)
        assert key is not None
        return replace(self.window, inputs=inputs, key=key, truth=truth)

    def _aggregate(self, node: Aggregate) -> MarkedAggregate:
        assert self.window is not None and isinstance(node.window, Window)
        span = self.window.range if node is self.committed[-1] else node.window.range
        return MarkedAggregate(replace(node, input=self.tree(node.input)), span)


def _is_of_rows(node: Node) -> bool:
    """True if the rows of a tree are those of streams, and so come without waiting for any other."""
    return all(isinstance(each, Scan | Filter | Project | Union) for each in walk(node))


def _counted(node: Node) -> Node:
    """A tree below a queue: all its rows count, so that what it gives does not depend on the load."""
    _refuse_counted(node)
    inner = node.map_children(_counted)
    if not isinstance(inner, Join) or not isinstance(node, Join) or not reads_updates(node):
        return inner
    return _update_join(node, inner.inputs, timed=True)


def _update_join(node: Join, inputs: tuple[Node, ...], *, timed: bool) -> AnyUpdateJoin:
    """The join of update streams that a join stands for, over its inputs with their queues."""
    outer = [place for place, side in enumerate(node.sides) if side.outer]
    if outer:
        return OuterUpdateJoin(inputs, *_matches(node), outer[0], timed)
    return (TimedUpdateJoin if timed else UpdateJoin)(inputs, *_matches(node))


def _refuse_counted(node: Node) -> None:
    """Refuse unions whose rows all count where one of two rows of equal key and time would have to be chosen."""
    if isinstance(node, Aggregate) and reads_updates(node) and any(isinstance(each, Union) for each in walk(node)):
        raise not_yet("this window over a union", node, "Write one [RANGE 1 MINUTE SLIDE 1 MINUTE] over the union")
    if isinstance(node, Union) and node.truth is not None:
        raise not_yet("TRUTH below a join with windows", node, "Leave it out")


def _matches(node: Join) -> tuple[tuple[Keys, ...], tuple[int | None, ...], Expression | None]:
    """What rows of an update join match by: the keys of each input, the limits of their times, and a condition."""
    rows, others = key_equalities(node)
    equal = [Call("=", (Column(first), Column(other))) for row in others for first, other in pairwise(row)]
    residual = all_of([*equal, *([] if node.residual is None else [node.residual])])
    keys = tuple(tuple(row[place] for row in rows) for place in range(len(node.inputs)))
    return keys, tuple(side.ahead for side in node.sides), residual


def _flat(node: Node) -> list[tuple[Node, bool]]:
    """The inputs of unions at the bottom of a tree, each under all that stands above it; True if it is the truth."""
    match node:
        case Union():
            inputs = [(place, one) for place, each in enumerate(node.inputs) for one in _flat(each)]
            return [(each, is_truth or place == node.truth) for place, (each, is_truth) in inputs]
        case Filter() | Project():
            return [(replace(node, input=each), is_truth) for each, is_truth in _flat(node.input)]
    return [(node, False)]


def _filtered(node: Node, conditions: Sequence[Expression]) -> Node:
    predicate = all_of(conditions)
    return node if predicate is None else Filter(node, predicate)
