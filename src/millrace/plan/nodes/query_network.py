"""A network as data: the queries that one run carries out together, each a tree of nodes.

The language and the Python API build it, the rules rewrite its trees, and `physical/stages.py` turns it into query
graphs. All of it is frozen, and can be written as JSON (`plan_data.py`), so that a worker process can build the same
graph from the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from millrace.kernel.elements import NO_BOUND
from millrace.plan.nodes.endpoints import Sink, Stream, Table
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Scan, scans_of
from millrace.plan.nodes.table_nodes import tables_of

if TYPE_CHECKING:
    from millrace.kernel.updates.queue_settings import Access


@dataclass(frozen=True)
class Query:
    """A named continuous query and the sink it writes to."""

    name: str
    root: Node
    sink: Sink
    options: Mapping[str, str] = field(default_factory=dict)
    since: int = NO_BOUND
    """It is answered over the rows from this time on."""
    outlets_since: tuple[tuple[str, int], ...] = ()
    """The same for the outlets that it reads, by the name of their source."""
    tree: Node | None = None
    """The tree that is carried out, where evolution decided it when the query joined a checkpoint."""
    access: tuple[Access, ...] = ()
    """How often its answers are read, by classes of keys; conditions name the key as its results do."""

    def starting_at(self, time: int, outlets: Iterable[tuple[str, int]] = ()) -> Query:
        """The query over the rows from a time on, and of outlets from other points on."""
        return replace(self, since=time, outlets_since=tuple(outlets))

    @property
    def starts(self) -> dict[str, int]:
        """Where it begins, by the name of an outlet's source, and for all streams under ""."""
        return {**dict(self.outlets_since), "": self.since}


@dataclass(frozen=True)
class QueryNetwork:
    """All that one run carries out together."""

    queries: tuple[Query, ...]

    def streams(self) -> tuple[Stream, ...]:
        """The streams that some query reads, each once, in order of first use."""
        found = {scan.stream.name: scan.stream for query in self.queries for scan in scans_of(query.root)}
        return tuple(found.values())

    def tables(self) -> tuple[Table, ...]:
        """The tables that some query joins, or that list the partitions of a stream, each once."""
        listing = {each.partition_table.name: each.partition_table for each in self.streams() if each.partition_table}
        return tuple({**listing, **tables_of(query.root for query in self.queries)}.values())

    def with_streams(self, streams: Mapping[str, Stream]) -> QueryNetwork:
        """The network with some of its streams replaced, by name."""

        def replaced(node: Node) -> Node:
            if isinstance(node, Scan):
                return replace(node, stream=streams.get(node.stream.name, node.stream))
            return node.map_children(replaced)

        return QueryNetwork(
            tuple(
                replace(query, root=replaced(query.root), tree=None if query.tree is None else replaced(query.tree))
                for query in self.queries
            )
        )
