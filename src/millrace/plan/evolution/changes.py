"""Requests to a running network as data, bound and checked: add, drop or alter a query, or list what there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.query_network import Query, QueryNetwork


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
class Refreshed:
    """A table is read again; its queries stay as they are."""

    table: str


@dataclass(frozen=True)
class Listed:
    """A request for the list of queries; nothing changes."""


@dataclass(frozen=True)
class WaitsListed:
    """A request for what holds results back; nothing changes."""


@dataclass(frozen=True)
class Shown:
    """The answer to SHOW, DESCRIBE or EXPLAIN as rows under a title; nothing changes."""

    title: str
    rows: pa.Table


Change = Added | Dropped | Altered | Refreshed | Listed | WaitsListed | Shown


@dataclass(frozen=True)
class Amendment:
    """The changes that one text asks for, and all declarations that hold after it."""

    changes: tuple[Change, ...]
    declared: str


BindChanges = Callable[[str, str, Sequence[Query]], Amendment]
"""From declarations, a text and the queries that run to what the text asks for."""


@dataclass(frozen=True)
class NetworkFile:
    """A whole file: the network that it describes, its streams by name, and all declarations that hold with it."""

    network: QueryNetwork
    streams: Mapping[str, Stream]
    declared: str


ReadFile = Callable[[str, str], NetworkFile]
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
        case Refreshed() | Listed() | WaitsListed() | Shown():
            return tuple(queries)
