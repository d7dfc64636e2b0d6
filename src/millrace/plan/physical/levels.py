"""Where a plan is cut for Spark: into a low level a stream, and high levels that follow each other.

Rules:
- The low level of a stream is the stateless prefix above its scan. Between it and the high level that reads it stands
  an exchange, a virtual break node: rows go to the bucket of their keys, bounds to every bucket.
- An operator with keys needs rows of equal keys to meet. If what it reads is spread by some of its keys, or is in one
  bucket, it stays on that level; if not, the rows cross to the next level, spread by its keys. What it reads of several
  inputs must be spread alike, by all its keys; each input of a join has names of its own for them.
- A query ordered by time meets in one bucket; one without keyed operators may be spread at will.
- Rows of equal update key meet in their queue, so it stands above the exchange. It is content with fewer columns of the
  key, in any order, if an operator above wants them so; one that appends has no wish of its own. So maps and joins
  above queues need no second level; an aggregate groups by the update key, so it has rows together already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from millrace.kernel.updates.queue_settings import LOSSLESS
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.content_names import content_name, meaning
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.join_nodes import Following, Join
from millrace.plan.nodes.node import Keys, Node
from millrace.plan.nodes.relational_nodes import Filter, OrderByTime, Project, RollUp, Slack, Union, scan_of
from millrace.plan.nodes.update_nodes import AnyQueue
from millrace.plan.physical.pane_choice import takes_partials
from millrace.plan.physical.spread import all_renamed, is_over_queue, read_as
from millrace.plan.physical.spread import read_by as read_by

SCHEDULING = ("strategy", "share", "breaks", "ets_arcs", "queue", "keep", "memory", "page", "budget")
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
class Placed:
    """On which level the rows of a tree are, and by which of its columns they are spread; () if nobody knows.

    There are several ways to say it where columns are equal, as the keys of a join are.
    """

    level: int
    spread: tuple[Keys, ...]


@dataclass(frozen=True)
class _Wish:
    """How an operator wants its rows: those of equal keys together (None: anyhow).

    `single` keeps all that it is made of in one bucket; `alike` wants them spread by exactly these keys, because other
    rows are, too.
    """

    keys: Keys | None
    single: bool = False
    alike: bool = False

    def is_met(self, placed: Placed) -> bool:
        """Whether rows are as they should be already."""
        if self.keys is None:
            return True
        return any(each == self.keys if self.alike else set(each) <= set(self.keys) for each in placed.spread)


@dataclass
class Cuts:
    """The cuts of one query's tree, by place in it."""

    options: Mapping[str, str]
    cuts: dict[str, Cut] = field(default_factory=dict)
    _placed: dict[str, Placed] = field(default_factory=dict)

    def root(self, node: Node, path: str) -> int:
        """Cut a whole tree; the level on which it ends."""
        if node.is_prefix:
            self._bring(node, path, _Wish(None), 1)
            return 1
        return self._place(node, path, single=False).level

    def _place(self, node: Node, path: str, *, single: bool) -> Placed:
        """Where the rows of a tree with state are; `single` keeps all of it in one bucket."""
        if path not in self._placed:
            self._placed[path] = self._placed_anew(node, path, single=single)
        return self._placed[path]

    def _placed_anew(self, node: Node, path: str, *, single: bool) -> Placed:
        keys = [node.spread_keys(position) for position in range(len(read_by(node)))]
        if None in keys and not _is_transparent(node) and not isinstance(node, AnyQueue):
            (below,) = node.children()
            placed = self._place(below, f"{path}.0", single=single)
            return Placed(placed.level, all_renamed(node, placed.spread))
        single = single or isinstance(node, OrderByTime)
        alike = _count(node) > 1
        wishes = [_Wish(() if single else each, single, alike) for each in keys]
        inputs = [(each, f"{path}.{position}") for position, each in enumerate(read_by(node))]
        level = max(self._needed(*each, wish) for each, wish in zip(inputs, wishes, strict=True))
        for (each, place), wish in zip(inputs, wishes, strict=True):
            self._bring(each, place, wish, level, self._exchanged(node))
        if alike:
            return Placed(level, _given_keys(node, wishes))
        return Placed(level, all_renamed(node, self._spread(*inputs[0], wishes[0])))

    def _spread(self, node: Node, path: str, wish: _Wish) -> tuple[Keys, ...]:
        """By which columns the rows of the one input of an operator with this wish are spread, now that it is cut."""
        if path in self.cuts or node.is_prefix:
            return () if wish.keys is None else (wish.keys,)
        if (below := self._below(node, wish)) is None:
            return self._placed[path].spread
        return all_renamed(node, self._spread(node.children()[0], f"{path}.0", below))

    def _below(self, node: Node, wish: _Wish) -> _Wish | None:
        """How all that an operator reads must be for its rows to be as wished; None if it has a say in that itself."""
        if _is_transparent(node):
            return wish
        if isinstance(node, AnyQueue):
            return replace(wish, alike=wish.alike or len(node.children()) > 1) if self._follows(node, wish) else None
        if not isinstance(node, Filter | Project) or (names := read_as(node, wish.keys)) is None:
            return None
        below = replace(wish, keys=names)
        return below if is_over_queue(node.input) and self._below(node.input, below) is not None else None

    def _follows(self, queue: AnyQueue, wish: _Wish) -> bool:
        """Whether a queue can have its rows as an operator above it wants them."""
        if wish.keys is None:
            return False
        appends = self.options.get("queue") in LOSSLESS
        return queue.key is None or appends or set(wish.keys) <= set(queue.key)

    def _exchanged(self, node: Node) -> Aggregate | None:
        """The aggregate whose partials may be exchanged for rows."""
        return node if isinstance(node, Aggregate) and takes_partials(node, self.options) else None

    def _needed(self, node: Node, path: str, wish: _Wish) -> int:
        """The level on which rows can meet as they should."""
        if node.is_prefix:
            return 1
        if (below := self._below(node, wish)) is not None:
            return max(self._needed(each, f"{path}.{place}", below) for place, each in enumerate(node.children()))
        placed = self._place(node, path, single=wish.single)
        return placed.level if wish.is_met(placed) else placed.level + 1

    def _bring(self, node: Node, path: str, wish: _Wish, level: int, aggregate: Aggregate | None = None) -> None:
        """Cut so that the rows of a tree are on a level, equal keys together."""
        if node.is_prefix:
            groups = self.options.get("low_level_groups")
            limit = int(groups) if groups is not None and aggregate is not None else None
            partials = aggregate and (aggregate.window, aggregate.keys, aggregate.aggregations)
            port = content_name("exchange", (meaning(node), wish.keys, level, limit, partials))
            self.cuts[path] = Exchange(port, scan_of(node).stream, node, wish.keys, aggregate, level, limit)
            return
        if (below := self._below(node, wish)) is not None:
            passes = isinstance(node, Union) and self.options.get("order") != "in"
            for place, each in enumerate(node.children()):
                self._bring(each, f"{path}.{place}", below, level, aggregate if passes else None)
            return
        placed = self._place(node, path, single=wish.single)
        if placed.level != level or not wish.is_met(placed):
            port = content_name("crossing", (meaning(node), wish.keys, level, _meant(self.options)))
            self.cuts[path] = Crossing(port, node, wish.keys, placed.level, level)


def _meant(options: Mapping[str, str]) -> list[tuple[str, str]]:
    """The options that may change what is computed, and not how it is scheduled."""
    return sorted((key, value) for key, value in options.items() if key not in SCHEDULING)


def _is_transparent(node: Node) -> bool:
    """Whether an operator needs no rows to meet, so that a cut goes below it.

    Promises of groups do not cross: they are rolled up before their rows do, unless the low level brings them.
    """
    return isinstance(node, Union | Slack) or (isinstance(node, RollUp) and node.input.is_prefix)


def _count(node: Node) -> int:
    """How many trees an operator reads, through others that need no rows to meet."""
    return sum(_count(each) if _is_transparent(each) else 1 for each in read_by(node))


def _given_keys(node: Node, wishes: list[_Wish]) -> tuple[Keys, ...]:
    """By which columns of its own the rows of an operator with several inputs are spread.

    Rows that matched nothing have no keys of the other input.
    """
    match node:
        case Join() if any(side.outer for side in node.sides):
            first, second = (side.outer for side in node.sides)
            wishes = [] if first and second else wishes[:1] if first else wishes[1:]
        case Following(outer=True):
            wishes = wishes[:1]
    return tuple(dict.fromkeys(wish.keys for wish in wishes if wish.keys is not None))
