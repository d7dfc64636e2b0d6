"""Changes to a network as data: what is asked of a running one, bound and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.query_network import Network, Query


@dataclass(frozen=True)
class Added:
    """A query joins the network."""

    query: Query


@dataclass(frozen=True)
class Dropped:
    """A query leaves it."""

    name: str


@dataclass(frozen=True)
class Altered:
    """A query gets other options."""

    name: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class Listed:
    """Someone wants to know which queries there are; nothing changes."""


@dataclass(frozen=True)
class WaitsListed:
    """Someone wants to know what holds results back; nothing changes."""


Change = Added | Dropped | Altered | Listed | WaitsListed


@dataclass(frozen=True)
class Amendment:
    """The changes that one text asks for, and all declarations that hold after it."""

    changes: tuple[Change, ...]
    declared: str


Bind = Callable[[str, str, Sequence[Query]], Amendment]
"""From declarations, a text and the queries that run to what the text asks for."""


@dataclass(frozen=True)
class File:
    """A whole file: the network that it describes, its streams by name, and all declarations that hold with it."""

    network: Network
    streams: Mapping[str, Stream]
    declared: str


Read = Callable[[str, str], File]
"""From the text of a file, and declarations made beside it, to what it says."""


def amended(queries: Sequence[Query], change: Change) -> tuple[Query, ...]:
    """The queries after a change.

    >>> amended([], Listed())
    ()
    """
    match change:
        case Added(query):
            return (*queries, query)
        case Dropped(name):
            return tuple(each for each in queries if each.name != name)
        case Altered(name, options):
            return tuple(
                replace(each, options={**each.options, **options}) if each.name == name else each for each in queries
            )
        case Listed() | WaitsListed():
            return tuple(queries)
