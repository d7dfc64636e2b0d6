"""Query evolution: a network that goes on from the state of another one.

Rules:
- A query of the same name that computes the same goes on as it is, over the rows that it was answered over.
- A query that computes something else keeps, with their state, the largest parts of its tree that some query computed
  before: its own parts first; among those of others, the part with the earliest start. Parts are the same if their
  operators would have the same names, whatever rows they began with.
- A new operator with state starts empty. What it reads begins at the query's start: on top of a kept part the rows
  whose time neither rows nor bounds have reached, so none of them has been emitted yet; on top of a stream the rows
  above the greatest time seen. Its answer is that of a batch evaluation: of the kept part over all rows that it was
  answered over, and of the new operators over what the kept part gives from the start on.
- A part starts empty as a whole if the progress of its streams does not say which rows it has emitted: with other
  outlets, numbered unions, promises of single groups.
- A query that joins under a new name has a start in all its parts, unless it is one that left under another name.
- What of a stream may change is said in stream_changes.py; no operator loses state by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from millrace.kernel import operator_index as kernel
from millrace.kernel.elements import NO_BOUND, Microseconds
from millrace.kernel.graph.graph import Graph
from millrace.plan.evolution.previous_plan import PreviousPlan, can_be_cut, part_keys, without_start
from millrace.plan.evolution.start_points import StartPoints, StreamProgress, start_of, unreached
from millrace.plan.evolution.stream_changes import StreamChange, check_streams, stream_changes, streams_of
from millrace.plan.explain.time_text import clock_text
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.nodes.relational_nodes import Since, Union
from millrace.plan.physical.operator_choice import has_state
from millrace.plan.physical.stages import physical, since_points

Became = Literal["kept", "changed", "started", "dropped"]
_STATELESS = (
    kernel.Filter,
    kernel.Project,
    kernel.Explode,
    kernel.TableJoin,
    kernel.Union,
    kernel.Since,
    kernel.RollUp,
    kernel.Released,
)


@dataclass(frozen=True)
class Evolved:
    """What becomes of one query.

    `keeps` and `starts` are its operators with state, those that go on and those that start empty; `since` is where
    the query is answered from, `began` where those that start begin. `was` is the name under which it ran.
    """

    name: str
    became: Became
    keeps: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    since: Microseconds = NO_BOUND
    began: Microseconds | None = None
    was: str | None = None
    notes: tuple[str, ...] = ()

    def line(self) -> str:
        """What becomes of the query, in words."""
        words = f"{self.name} {self.became}"
        if self.was is not None:
            words += f", was {self.was}"
        if self.became == "dropped" or (self.became == "kept" and self.was is None):
            return words
        parts = [*self.notes]
        parts += [f"{', '.join(self.keeps)} keeps state"] if self.keeps else []
        start = clock_text(NO_BOUND if self.began is None else self.began, exact=True)
        from_then = "from the beginning of its streams" if start == "-" else f"from {start} on"
        if self.starts:
            parts.append(f"{', '.join(self.starts)} starts empty, {from_then}")
        elif self.began is not None:
            parts.append(f"answers {from_then}")
        return f"{words}: {'; '.join(parts)}" if parts else words

    def data(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "query": self.name,
            "became": self.became,
            "was": self.was,
            "keeps": list(self.keeps),
            "starts": list(self.starts),
            "since_microseconds": None if self.since == NO_BOUND else self.since,
            "starts_at": None if self.began in (None, NO_BOUND) else clock_text(self.began, exact=True),
            "starts_at_microseconds": None if self.began == NO_BOUND else self.began,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Evolution:
    """A network that takes the place of another one, and what becomes of all that was there."""

    network: QueryNetwork
    before: QueryNetwork
    told: tuple[Evolved, ...]
    """What becomes of each query, but for its operators."""
    altered: tuple[StreamChange, ...] = ()
    """The streams that are declared in another way."""

    @cached_property
    def queries(self) -> tuple[Evolved, ...]:
        """What becomes of each query."""
        return tuple(_operators(self.told, self.before, self.network))

    @property
    def renamed(self) -> dict[str, str]:
        """The queries that go on under another name: by the new name the old one."""
        return {each.name: each.was for each in self.told if each.was is not None}

    @property
    def streams(self) -> dict[str, list[str]]:
        """The streams that queries read now and did not before, those that no query reads any more, and the changed."""
        old, new = streams_of(self.before), streams_of(self.network)
        return {
            "added": [name for name in new if name not in old],
            "removed": [name for name in old if name not in new],
            "altered": [each.new.name for each in self.altered],
        }

    def lines(self) -> list[str]:
        """The evolution in words: one line per query, and one per stream that changes."""
        streams = [f"stream {name} {what}" for what in ("added", "removed") for name in self.streams[what]]
        return [*(each.line() for each in self.queries), *streams, *(each.line() for each in self.altered)]

    def data(self) -> dict[str, Any]:
        """The evolution as plain data."""
        tunings = {each.new.name: each.tunings for each in self.altered if each.tunings}
        return {"queries": [each.data() for each in self.queries], "streams": self.streams, "tunings": tunings}


def evolve(
    before: QueryNetwork, after: QueryNetwork, points: StreamProgress, *, spread: bool = False
) -> Evolution | None:
    """The network that goes on as `after` from the state of `before`; None where nothing changes.

    `points` say how far the streams of `before` have come. `spread` is for a host that spreads rows over buckets: a
    part is kept only if its rows stay where they are. Raises where a stream cannot go on.
    """
    check_streams(before, after)
    previous = PreviousPlan(before, spread=spread)
    named = {query.name: query for query in before.queries}
    leaving = set(named) - {query.name for query in after.queries}
    found: dict[str, tuple[Query, Evolved]] = {}
    for query in after.queries:
        found[query.name] = _QueryEvolution(query, named.get(query.name), previous, points, leaving).evolved()
    order = [*(name for name in named if name in found), *(name for name in found if name not in named)]
    network = QueryNetwork(tuple(found[name][0] for name in order)).with_streams(streams_of(after))
    if network == before:
        return None
    told = [found[name][1] for name in order]
    gone = leaving - {each.was for each in told}
    told += [Evolved(name, "dropped") for name in named if name in gone]
    return Evolution(network, before, tuple(told), stream_changes(before, network, points))


def beginning(network: QueryNetwork) -> Evolution:
    """A network that goes on from nothing."""
    told = tuple(Evolved(query.name, "started", began=NO_BOUND) for query in network.queries)
    return Evolution(network, QueryNetwork(()), told)


def merged(running: QueryNetwork, old: QueryNetwork, new: QueryNetwork, declared: Mapping[str, Stream]) -> QueryNetwork:
    """What runs, with all that is different in a new file from the old one: queries added since then stay.

    `declared` are the streams of the new file.
    """
    then, now = ({query.name: query for query in each.queries} for each in (old.with_streams(declared), new))
    at_work = {query.name: query for query in running.with_streams(declared).queries}
    queries = []
    for name, query in now.items():
        if then.get(name) != query:
            queries.append(query)
        elif name in at_work:
            # It may have been altered since, or dropped.
            queries.append(at_work[name])
    return QueryNetwork((*queries, *(each for name, each in at_work.items() if name not in then and name not in now)))


# Queries


@dataclass
class _QueryEvolution:
    """How one query of the new network goes on from what ran."""

    query: Query
    before: Query | None
    previous: PreviousPlan
    points: StreamProgress
    leaving: set[str]
    began: Microseconds | None = None
    """The latest new start of a part of it."""
    _keys: dict[str, object] = field(default_factory=dict)

    def evolved(self) -> tuple[Query, Evolved]:
        """The query as it is carried out, and what becomes of it."""
        root = without_start(self.query)
        self._keys = part_keys(self.query, root, spread=self.previous.spread)
        whole = self._keys[self.query.name]
        if self.before is not None and self.previous.whole[self.query.name] == whole:
            return self._same(self.before)
        renamed = None if self.before is not None else self.previous.renamed(whole, self.leaving)
        if renamed is not None:
            # No other query can go on with the state of the same one.
            self.leaving.discard(renamed)
            before, tree = self.previous.query(renamed)
            query = replace(self.query.starting_at(before.since, before.outlets_since), tree=tree)
            return query, Evolved(query.name, "kept", since=query.since, was=renamed)
        self._starts, self._unreached = start_of(self.query, self.points), unreached(self.query, self.points)
        tree = self._tree(root, self.query.name, cut=self.before is None)
        query = replace(self.query.starting_at(*self._start()), tree=tree)
        became: Became = "started" if self.before is None else "changed"
        return query, Evolved(query.name, became, since=query.since, began=self.began)

    def _same(self, before: Query) -> tuple[Query, Evolved]:
        """A query that computes what it did."""
        query = replace(self.query.starting_at(before.since, before.outlets_since), tree=before.tree)
        differences = {
            "another sink": query.sink != before.sink,
            "other options": query.options != before.options,
            "other columns": query.root.schema != before.root.schema,
        }
        notes = tuple(note for note, differs in differences.items() if differs)
        return query, Evolved(query.name, "changed" if notes else "kept", since=query.since, notes=notes)

    def _start(self) -> StartPoints:
        """Where the query is answered from."""
        if self.began is not None or self.before is None:
            return self._starts
        return self.before.since, self.before.outlets_since

    def _tree(self, node: Node, path: str, *, cut: bool) -> Node:
        """A part of the tree; with `cut`, of the rows from the query's start on."""
        if node.is_prefix:
            return self._begun(node) if cut else self._going_on(node)
        kept = self._kept(node, path)
        if kept is not None and not cut:
            return kept
        if kept is not None:
            return self._cut(kept) if can_be_cut(kept) else self._begun(node)
        below = cut or has_state(node, self.query.options)
        trees = [self._tree(each, f"{path}.{place}", cut=below) for place, each in enumerate(node.operands())]
        return node.with_operands(trees)

    def _kept(self, node: Node, path: str) -> Node | None:
        """A part with state that ran, under operators that remember nothing; None if there is none."""
        if node.is_prefix:
            return None
        if has_state(node, self.query.options) or isinstance(node, Union):
            return self.previous.best(self._keys[path], self.query.name)
        # Whose part it is does not depend on filters above it: a query with the same HAVING goes before no other.
        kept = self._kept(node.children()[0], f"{path}.0")
        return None if kept is None else node.with_operands([kept])

    def _cut(self, kept: Node) -> Node:
        """The rows of a kept part that it has not emitted yet."""
        self.began = self._unreached
        return kept if self._unreached == NO_BOUND else Since(kept, self._unreached)

    def _begun(self, node: Node) -> Node:
        """A part that starts empty; prefixes themselves stay as they are, to be shared."""
        self.began = max(self._starts[0], NO_BOUND if self.began is None else self.began)
        return since_points(node, self.query.starting_at(*self._starts).starts)

    def _going_on(self, prefix: Node) -> Node:
        """A prefix without state above it, over the rows that the query has been answered over."""
        if self.before is None:
            return self._begun(prefix)
        return since_points(prefix, self.before.starts)


# What is said


def _operators(told: Iterable[Evolved], before: QueryNetwork, after: QueryNetwork) -> Iterable[Evolved]:
    """Each query in words, with its operators that keep state and those that start empty."""
    ran, runs = Graph(), Graph()
    physical(before).shape(ran)
    built = physical(after).shape(runs)
    for each in told:
        names = [name for name in built.get(each.name, []) if not isinstance(runs.nodes[name].operator, _STATELESS)]
        yield replace(
            each,
            keeps=tuple(name for name in names if name in ran.nodes),
            starts=tuple(name for name in names if name not in ran.nodes),
        )
