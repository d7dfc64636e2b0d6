"""What holds time back in a network: which query waits, for which stream, and since when.

Rules:
- An operator that waits says which bound would release something. The streams behind it whose bounds are below that
  are those it waits for; each is asked for the least that helps.
- What one graph knows is a share, plain and small. On Spark every bucket gives one, and they are merged: rows held add
  up, and of what several say of a stream the least bound counts.
- A query that is cut into levels waits through a crossing: the shares of the earlier level say what holds that back.
- Rows that have waited in a queue for a while wait only for the work downstream of it; that is said first.
- Of the streams that a query waits for, those without an ETS come first, and of these the one furthest behind.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from millrace.errors import RunError
from millrace.hosts.why.past_releases import Releases, read_releases, release_lines, releases_of
from millrace.hosts.why.verdicts import verdict, wait_lines
from millrace.hosts.why.waits import Awaited, Queued, StreamLag, Wait
from millrace.kernel.elements import END_OF_TIME, Microseconds
from millrace.kernel.graph.ets_demand import Needs, sources_behind, wanted
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import GraphNode, sinks_below
from millrace.kernel.progress.ets import clock_of_ets
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.stamp import Stamp
from millrace.kernel.progress.time_contract import SEQUENCE
from millrace.plan.explain.time_text import clock_text

Share = dict[str, Any]
"""What one graph knows, as plain data."""
Exchanges = Mapping[str, tuple[str, str]]
"""The sources of a graph that give rows of a stream by an exchange: its name and the outlet."""

_A_WHILE = 100_000
"""Microseconds: rows that have just entered a queue are not behind."""


@dataclass(frozen=True)
class Lag:
    """What holds time back in a network at a moment; printed, it says so in words.

    >>> print(Lag(0, True, {}, {}))
    nothing waits
    """

    now: Microseconds
    live: bool
    """True if the run lasts until it is stopped, so that ETS are made for silent streams."""
    streams: Mapping[str, StreamLag]
    waits: Mapping[str, Wait]
    """Each query that waits."""
    queues: Mapping[str, Queued] = field(default_factory=dict)
    """Each query whose queues are behind."""
    releases: Releases = field(default_factory=dict)
    """Of each query that tells it, what has released its last rows."""

    @staticmethod
    def of(executor: Executor, now: Microseconds, *, live: bool, silent: Container[str] | None = None) -> Lag:
        """What holds time back in the one graph of a process."""
        lag = Lag.read(merge([share(executor, now, live=live, silent=silent)]))
        return replace(lag, releases={query: tuple(past) for query, past in executor.releases().items()})

    def __str__(self) -> str:
        return "\n".join(self._verdict())

    def _verdict(self) -> list[str]:
        return verdict(self.now, self.live, self.streams, self.waits, self.queues)

    def sentences(self, query: str) -> list[str]:
        """What a query waits for, in a sentence, and then what is held and what releases it; empty if it does not."""
        wait = self.waits.get(query)
        lines = () if wait is None else wait_lines(self.now, self.live, self.streams, query, wait)
        return [line.strip() for line in lines]

    def data(self) -> dict[str, Any]:
        """All of it as plain data, for `read`."""
        return asdict(self)

    @staticmethod
    def read(data: Mapping[str, Any]) -> Lag:
        """What `data` gave, also after it was JSON."""
        streams = {name: StreamLag.read(each) for name, each in data["streams"].items()}
        waits = {
            name: Wait(each["held"], tuple(Awaited(**one) for one in each["awaited"]), each.get("partials", 0))
            for name, each in data["waits"].items()
        }
        queues = {name: Queued(**each) for name, each in data.get("queues", {}).items()}
        return Lag(data["now"], data["live"], streams, waits, queues, read_releases(data.get("releases", {})))

    def past(self, query: str) -> list[str]:
        """Which promises released the last rows of a query, and when, a line each; raises if it does not tell them."""
        units = {name: stream.unit for name, stream in self.streams.items()}
        return list(release_lines(query, releases_of(query, self.releases), units))

    def shown(self) -> dict[str, Any]:
        """All of it for programs: times as texts, and the verdict in words."""
        data: dict[str, Any] = _with_texts(self.data())
        return {**data, "verdict": self._verdict()}


# One graph


def share(
    executor: Executor,
    now: Microseconds,
    *,
    live: bool,
    silent: Container[str] | None = None,
    exchanges: Exchanges | None = None,
    edges: Mapping[str, Ingress] | None = None,
) -> Share:
    """What one graph knows of its waiting operators.

    On Spark `exchanges` says which of its sources give rows of which stream, all others being crossings from earlier
    levels, and `edges` how far the streams have come; in one process the graph itself says both.
    """
    view = _View(executor, exchanges, live)
    known = executor.ingress if edges is None else edges
    return {
        "now": now,
        "live": live,
        "streams": {
            name: asdict(StreamLag.of(edge, None if silent is None else name in silent)) for name, edge in known.items()
        },
        "waits": view.waits(),
        "behind": view.behind(),
        "into": view.into(),
        "queues": view.queues(now),
    }


@dataclass
class _Waiting:
    """What some operators hold and wait for, so far."""

    held: int = 0
    partials: int = 0
    awaited: dict[str, Awaited] = field(default_factory=dict)
    through: set[str] = field(default_factory=set)
    """The crossings that they wait for."""

    def add(self, other: _Waiting) -> None:
        """Take what another has found into account."""
        self.held += other.held
        self.partials += other.partials
        self.through |= other.through
        for name, one in other.awaited.items():
            known = self.awaited.get(name)
            self.awaited[name] = one if known is None else _least(known, one)

    def data(self) -> dict[str, Any]:
        """All of it as plain data."""
        awaited = {name: asdict(one) for name, one in self.awaited.items()}
        return {"held": self.held, "partials": self.partials, "awaited": awaited, "through": sorted(self.through)}

    @staticmethod
    def read(data: Mapping[str, Any]) -> _Waiting:
        """What `data` gave."""
        awaited = {name: Awaited(**one) for name, one in data["awaited"].items()}
        return _Waiting(data["held"], data.get("partials", 0), awaited, set(data["through"]))


class _View:
    """A graph at rest, and the operators in it that wait."""

    def __init__(self, executor: Executor, exchanges: Exchanges | None, live: bool) -> None:
        self.executor = executor
        self.exchanges = exchanges
        self.live = live
        self.nodes = executor.graph.nodes.values()

    def waits(self) -> dict[str, Any]:
        """By sink what the operators above it hold and wait for."""
        found: dict[str, _Waiting] = {}
        for node in self.nodes:
            if node.operator is None or not (ways := wanted(node)):
                continue
            waiting = self._awaited(node, ways)
            waiting.held, waiting.partials = node.operator.held, node.operator.held_partials
            for sink in sinks_below(node):
                found.setdefault(sink, _Waiting()).add(waiting)
        return {name: each.data() for name, each in found.items()}

    def behind(self) -> dict[str, Any]:
        """By crossing to a later level what holds its bound back."""
        found = {}
        for sink in self.nodes:
            if sink.is_sink and sink.takes_bounds:
                until = self.executor.promised(sink.name) + 1 if sink.demand is None else sink.demand
                found[sink.name] = self._awaited(sink, [{0: until}]).data()
        return found

    def into(self) -> dict[str, list[str]]:
        """By crossing from an earlier level the sinks that it leads to."""
        crossings = [node for node in self.nodes if node.is_source and self._place(node) is None]
        return {node.name: sorted(sinks_below(node)) for node in crossings}

    def queues(self, now: Microseconds) -> dict[str, Any]:
        """By sink what waits in the queues above it, if it has waited for a while."""
        found = []
        for name, queue in self.executor.queue_gate.queues().items():
            seen = queue.queue_metrics(now)
            if seen.waiting and seen.oldest >= _A_WHILE:
                queued = Queued(seen.waiting, seen.oldest, queue.by_key)
                found += [(sink, queued) for sink in sinks_below(self.executor.graph.nodes[name])]
        return {name: asdict(each) for name, each in _summed(found).items()}

    def _awaited(self, node: GraphNode, ways: Iterable[Needs]) -> _Waiting:
        """The streams and crossings behind a node that have not reached what it needs."""
        found = _Waiting()
        for source, until, under_way in (each for needs in ways for each in sources_behind(node, needs)):
            if source is None or under_way:
                # Something is under way that may bring the bound yet.
                continue
            edge = source.operator.edge if isinstance(source.operator, Stamp) else self.executor.edges.edge(source)
            place = self._place(_first_source(source))
            if place is None:
                found.through.add(source.name)
                continue
            if edge.bound < until:
                one = Awaited(*place, until, edge.bound, edge.moved_at, self._ets_at(edge, until), edge.contract.unit)
                found.add(_Waiting(awaited={".".join(filter(None, place)): one}))
        return found

    def _place(self, source: GraphNode) -> tuple[str, str] | None:
        """The stream and outlet that a source gives rows of; None for a crossing."""
        return (
            (source.stream, "" if source.windows else source.outlet)
            if self.exchanges is None
            else self.exchanges.get(source.name)
        )

    def _ets_at(self, edge: Ingress, until: Microseconds) -> Microseconds | None:
        if not self.live or until == END_OF_TIME:
            return None
        return clock_of_ets(edge, until)


def _first_source(node: GraphNode) -> GraphNode:
    """The source that is first behind a node; itself if it is one."""
    return _first_source(node.inputs[0].producer) if node.inputs else node


# Several graphs


def merge(shares: Sequence[Share]) -> dict[str, Any]:
    """The shares of all graphs of a network as the plain data of one `Lag`.

    >>> merge([])
    {'now': 0, 'live': False, 'streams': {}, 'waits': {}, 'queues': {}, 'releases': {}}
    """
    streams: dict[str, Any] = {}
    for name, each in (item for one in shares for item in one["streams"].items()):
        known = streams.get(name)
        streams[name] = each if known is None or each["bound"] < known["bound"] else known
    lag = Lag(
        max((one["now"] for one in shares), default=0),
        any(one["live"] for one in shares),
        {name: StreamLag.read(each) for name, each in streams.items()},
        dict(_waits(_joined(shares, "waits"), _joined(shares, "behind"), _into(shares))),
        _queued(shares),
    )
    return lag.data()


def _queued(shares: Sequence[Share]) -> dict[str, Queued]:
    """Each query with what waits in its queues, in all graphs."""
    into = _into(shares)
    found = (item for one in shares for item in one.get("queues", {}).items())
    return _summed((query, Queued(**each)) for sink, each in found for query in _queries(sink, into))


def _summed(found: Iterable[tuple[str, Queued]]) -> dict[str, Queued]:
    """What waits under each name."""
    queries: dict[str, Queued] = {}
    for name, each in found:
        queries[name] = queries[name] + each if name in queries else each
    return queries


def _joined(shares: Sequence[Share], what: str) -> dict[str, _Waiting]:
    """By name what the shares found, as one."""
    found: dict[str, _Waiting] = {}
    for name, each in (item for one in shares for item in one[what].items()):
        found.setdefault(name, _Waiting()).add(_Waiting.read(each))
    return found


def _into(shares: Sequence[Share]) -> dict[str, set[str]]:
    """By crossing the sinks that it leads to."""
    found: dict[str, set[str]] = {}
    for port, sinks in (item for one in shares for item in one["into"].items()):
        found.setdefault(port, set()).update(sinks)
    return found


def _waits(
    waits: Mapping[str, _Waiting], behind: Mapping[str, _Waiting], into: Mapping[str, set[str]]
) -> Iterator[tuple[str, Wait]]:
    """Each query with all that waits in it, on all levels."""
    queries: dict[str, _Waiting] = {}
    for sink, found in waits.items():
        for query in _queries(sink, into):
            queries.setdefault(query, _Waiting()).add(_through(found, behind))
    for query, found in sorted(queries.items()):
        if found.awaited:
            yield query, Wait(found.held, tuple(sorted(found.awaited.values(), key=_holding_back)), found.partials)


def _queries(sink: str, into: Mapping[str, set[str]]) -> set[str]:
    """The queries that a sink is part of: itself, or those that its crossing leads to."""
    if sink not in into:
        return {sink}
    return {query for below in into[sink] for query in _queries(below, into)}


def _through(found: _Waiting, behind: Mapping[str, _Waiting]) -> _Waiting:
    """What is waited for, with crossings replaced by the streams behind them."""
    whole = _Waiting(found.held, found.partials, dict(found.awaited))
    for port in found.through & set(behind):
        whole.add(replace(_through(behind[port], behind), held=0, partials=0))
    return whole


def _least(one: Awaited, other: Awaited) -> Awaited:
    """Of one stream the least that helps, and the least bound."""
    first, second = sorted((one, other), key=lambda each: (each.bound, each.until))
    return replace(first, until=min(first.until, second.until))


def _holding_back(one: Awaited) -> tuple[bool, Microseconds, Microseconds]:
    return one.ets_at is not None, one.bound, one.until


# Records


def recorded(record: Mapping[str, Any]) -> Lag:
    """What holds time back, by the record of a micro-batch."""
    if "lag" not in record:
        raise RunError(
            "the newest micro-batch on record does not say what holds it back",
            hint="It was written by an earlier version: let the run go on for a micro-batch, and ask again.",
        )
    return Lag.read({**record["lag"], "releases": record.get("releases", {})})


# Plain data


_TIMES = {"at", "now", "bound", "moved_at", "greatest", "seen_at", "until", "ets_at"}


def _with_texts(data: Any) -> Any:
    """Plain data with its times as texts; None for one that has not come, or never does."""
    if isinstance(data, Mapping):
        # Row numbers are none.
        numbers = data.get("outlet") == SEQUENCE or data.get("unit") == "number"
        times = {"at", "moved_at", "seen_at", "ets_at"} if numbers else _TIMES
        return {name: _time(each) if name in times else _with_texts(each) for name, each in data.items()}
    return [_with_texts(each) for each in data] if isinstance(data, list | tuple) else data


def _time(micros: Microseconds | None) -> str | None:
    text = "-" if micros is None else clock_text(micros, exact=True)
    return None if text == "-" else text
