"""Where a plan is cut for Spark: into a low level per stream, and high levels that follow each other.

Rules:
- The low level of a stream is the stateless prefix above its scan. Between it and the high level that reads it stands
  an exchange, a virtual break node: rows go to the bucket of their keys, bounds to every bucket.
- An operator with keys needs rows of equal keys to meet. If what it reads is spread by some of its keys, or is in one
  bucket, it stays on that level; if not, the rows cross to the next level, spread by its keys. What it reads of several
  inputs must be spread alike, by all its keys; each input of a join has names of its own for them.
- A query ordered by time meets in one bucket; one without keyed operators may be spread in any way.
- Rows of equal update key meet in their queue, so it stands above the exchange. Fewer columns of the key, in any order,
  are enough for it, so an operator above decides; a queue that appends requires nothing itself. So maps and joins
  above queues need no second level; an aggregate groups by the update key, so it has rows together already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from millrace.kernel.updates.queue_settings import LOSSLESS
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.content_names import content_name, meaning
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.node import Keys, Node
from millrace.plan.nodes.relational_nodes import (
    Filter,
    OrderByTime,
    Project,
    RollUp,
    RowSlack,
    Union,
    below_maps,
    scan_of,
)
from millrace.plan.nodes.update_nodes import AnyQueue
from millrace.plan.physical.pane_choice import takes_partials

SCHEDULING = ("strategy", "share", "breaks", "ets_arcs", "queue", "keep", "memory", "page", "budget", "released")
"""The options that change how a query is run, and not which of its parts is which."""


@dataclass(frozen=True)
class Exchange:
    """Where the prefix of a stream meets the rest of a query, on a high level.

    `keys` are the columns whose equal values must meet; () sends all to one bucket, None leaves the choice open.
    """

    port: str
    stream: Stream
    prefix: Node
    keys: Keys | None
    aggregate: Aggregate | None = None
    """The aggregate above, if nothing but an order-agnostic union stands between: then partials are exchanged."""
    level: int = 1
    low_level_groups: int | None = None
    """How many groups the low level may hold at once, if that is limited."""

    @property
    def outlet(self) -> str:
        """Which attribute of the stream the rows come by."""
        return scan_of(self.prefix).outlet

    @property
    def attribute(self) -> str:
        """The same, "" wherever it is the stream's own time."""
        scan = scan_of(self.prefix)
        return scan.outlet if scan.has_other_time else ""


@dataclass(frozen=True)
class Crossing:
    """Where rows leave the high level `start` for a later one."""

    port: str
    input: Node
    keys: Keys | None
    start: int
    level: int


Cut = Exchange | Crossing


@dataclass(frozen=True)
class _Placement:
    """On which level the rows of a tree are, and by which of its columns they are spread; () if that is not known.

    There are several ways to say it where columns are equal, as the keys of a join are.
    """

    level: int
    spread: tuple[Keys, ...]


@dataclass(frozen=True)
class _Requirement:
    """How an operator needs its rows: those of equal keys together (None: in any way).

    `single` keeps all that it is made of in one bucket; `alike` asks for a spread by exactly these keys, because those
    of other inputs are spread so.
    """

    keys: Keys | None
    single: bool = False
    alike: bool = False

    def is_met(self, placed: _Placement) -> bool:
        """True if rows are where they should be already."""
        if self.keys is None:
            return True
        return any(each == self.keys if self.alike else set(each) <= set(self.keys) for each in placed.spread)


@dataclass(frozen=True)
class _End:
    """A tree that must be spread as required; `exchanges_partials` if only order-agnostic unions stand above it."""

    node: Node
    path: str
    required: _Requirement
    exchanges_partials: bool


@dataclass
class Cuts:
    """The cuts of one query's tree, by place in it."""

    options: Mapping[str, str]
    cuts: dict[str, Cut] = field(default_factory=dict)
    _placed: dict[str, _Placement] = field(default_factory=dict)

    def root(self, node: Node, path: str) -> int:
        """Cut a whole tree; the level on which it ends."""
        if node.is_prefix:
            self._bring(_End(node, path, _Requirement(None), False), 1)
            return 1
        return self._place(node, path, single=False).level

    def _place(self, node: Node, path: str, *, single: bool) -> _Placement:
        """Where the rows of a tree with state are; `single` keeps all of it in one bucket."""
        if path not in self._placed:
            self._placed[path] = self._computed_placement(node, path, single=single)
        return self._placed[path]

    def _computed_placement(self, node: Node, path: str, *, single: bool) -> _Placement:
        operands = [(each, f"{path}.{position}") for position, each in enumerate(node.operands())]
        keys = [node.spread_keys(position) for position in range(len(operands))]
        if None in keys and not _is_transparent(node) and not isinstance(node, AnyQueue):
            placed = self._place(*operands[0], single=single)
            return _Placement(placed.level, _renamed(node, placed.spread))
        counts_rows = any(isinstance(each, RowSlack) for each in node.children())
        single = single or counts_rows or isinstance(node, OrderByTime)
        alike = _count(node) > 1
        required = [_Requirement(() if single else each, single, alike) for each in keys]
        ends = [each for one, need in zip(operands, required, strict=True) for each in self._ends(*one, need)]
        level = max(self._needed(each) for each in ends)
        aggregate = node if isinstance(node, Aggregate) and takes_partials(node, self.options) else None
        for each in ends:
            self._bring(each, level, aggregate if each.exchanges_partials else None)
        if alike:
            given = [each.keys for place, each in enumerate(required) if node.gives_keys_of(place)]
            return _Placement(level, tuple(dict.fromkeys(each for each in given if each is not None)))
        return _Placement(level, _renamed(node, self._spread(*operands[0], required[0])))

    def _spread(self, node: Node, path: str, required: _Requirement) -> tuple[Keys, ...]:
        """By which columns the rows of the one input of an operator are spread, now that it is cut."""
        if path in self.cuts or node.is_prefix:
            return () if required.keys is None else (required.keys,)
        if (below := self._below(node, required)) is None:
            return self._placed[path].spread
        return _renamed(node, self._spread(node.children()[0], f"{path}.0", below))

    def _ends(self, node: Node, path: str, required: _Requirement, *, partials: bool = True) -> Iterator[_End]:
        """The trees that a requirement comes down to: prefixes, and those whose own keys decide how they are spread."""
        below = None if node.is_prefix else self._below(node, required)
        if below is None:
            yield _End(node, path, required, partials)
            return
        partials = partials and isinstance(node, Union) and self.options.get("order") != "in"
        for place, each in enumerate(node.children()):
            yield from self._ends(each, f"{path}.{place}", below, partials=partials)

    def _below(self, node: Node, required: _Requirement) -> _Requirement | None:
        """How all that an operator reads must be for its rows to be as required; None if its own keys decide."""
        if _is_transparent(node):
            return required
        if isinstance(node, AnyQueue):
            alike = required.alike or len(node.inputs) > 1
            return replace(required, alike=alike) if self._follows(node, required) else None
        if not isinstance(node, Filter | Project) or not isinstance(below_maps(node), AnyQueue):
            return None
        if required.keys is None or (names := node.read_as(required.keys)) is None:
            return None
        below = replace(required, keys=names)
        return below if self._below(node.input, below) is not None else None

    def _follows(self, queue: AnyQueue, required: _Requirement) -> bool:
        """True if a queue can have its rows as an operator above it requires them."""
        if required.keys is None:
            return False
        appends = self.options.get("queue") in LOSSLESS
        return queue.key is None or appends or set(required.keys) <= set(queue.key)

    def _needed(self, end: _End) -> int:
        """The level on which rows can meet as they should."""
        if end.node.is_prefix:
            return 1
        placed = self._place(end.node, end.path, single=end.required.single)
        return placed.level if end.required.is_met(placed) else placed.level + 1

    def _bring(self, end: _End, level: int, aggregate: Aggregate | None = None) -> None:
        """Cut so that the rows of a tree are on a level, equal keys together."""
        node, path, required = end.node, end.path, end.required
        if node.is_prefix:
            groups = self.options.get("low_level_groups")
            limit = int(groups) if groups is not None and aggregate is not None else None
            partials = aggregate and (aggregate.window, aggregate.keys, aggregate.aggregations)
            port = content_name("exchange", (meaning(node), required.keys, level, limit, partials))
            self.cuts[path] = Exchange(port, scan_of(node).stream, node, required.keys, aggregate, level, limit)
            return
        placed = self._place(node, path, single=required.single)
        if placed.level != level or not required.is_met(placed):
            port = content_name("crossing", (meaning(node), required.keys, level, _meant(self.options)))
            self.cuts[path] = Crossing(port, node, required.keys, placed.level, level)


def _meant(options: Mapping[str, str]) -> list[tuple[str, str]]:
    """The options that may change what is computed, and not how it is scheduled."""
    return sorted((key, value) for key, value in options.items() if key not in SCHEDULING)


def _is_transparent(node: Node) -> bool:
    """True if an operator needs no rows to meet, so that a cut goes below it.

    Promises of groups do not cross: they are rolled up before their rows do, unless the low level brings them.
    """
    return node.is_cut_below or (isinstance(node, RollUp) and node.input.is_prefix)


def _count(node: Node) -> int:
    """How many trees an operator reads, through others that need no rows to meet."""
    return sum(_count(each) if _is_transparent(each) else 1 for each in node.operands())


def _renamed(node: Node, spread: tuple[Keys, ...]) -> tuple[Keys, ...]:
    """The ways to say how rows are spread, under the names that a node gives; without those that it drops."""
    return tuple(found for each in spread if (found := node.renamed(each)) is not None)
