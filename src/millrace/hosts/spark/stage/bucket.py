"""A bucket of one level at work: its query graph, and what it knows of the streams and levels that feed it.

Rules:
- All tuples of a micro-batch are pushed before any bound of it, so the order of tasks does not matter.
- Tuples that cross to a later level carry no bound. A bucket there keeps the last bound of every bucket that sends to
  it; its own is the least of them, and none until all have sent one.
- A bucket that waits for a bound of an earlier level says so in its report; in the next micro-batch the buckets there
  wait for that bound themselves, so that ETS are made for silent sources.
- Queues of updates take in all tuples of a micro-batch before they release any (see bucket_queues.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

import pyarrow as pa

from millrace.hosts.spark.commit_log.progress_files import Order, ProgressFiles, changed_order
from millrace.hosts.spark.exchange.rows import unpack
from millrace.hosts.spark.operator_reports import Told, counts_with, meter, operator_reports
from millrace.hosts.spark.stage.bucket_input import BucketInput, Summary
from millrace.hosts.spark.stage.bucket_modes import mode_reports
from millrace.hosts.spark.stage.bucket_queues import BucketQueues, titles_of
from millrace.hosts.spark.stage.budget import TriggerPace
from millrace.hosts.why.lag import share
from millrace.kernel.clock import StandingClock
from millrace.kernel.elements import Batch, Cause, user_table
from millrace.kernel.graph.ets_demand import sources_behind, wanted
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph
from millrace.kernel.graph.snapshot import Place
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.quarantine import merged
from millrace.kernel.progress.released import by_release
from millrace.plan.physical.levels import Crossing, Exchange
from millrace.plan.physical.stages import Physical

_COUNTS = ("received", "late", "quarantined")


@dataclass(frozen=True)
class Level:
    """One high level of a network: what its buckets read, and what they send to later ones."""

    number: int
    exchanges: Mapping[str, Exchange]
    arriving: Mapping[str, Crossing]
    leaving: Mapping[str, Crossing]
    has_ets: bool = False
    """True if ETS are made for some silent stream of the network."""

    @staticmethod
    def of(plan: Physical, number: int, graph: Graph) -> Level:
        """The level of that number, from 1 on, whose buckets run this graph."""
        sinks = {sink.name for sink in graph.sinks()}
        crossings = {each.port: each for each in plan.crossings()}
        streams = ((each.stream.time, each.outlet) for each in plan.exchanges())
        return Level(
            number,
            {each.port: each for each in plan.exchanges() if each.level == number},
            {port: each for port, each in crossings.items() if each.level == number},
            {port: each for port, each in crossings.items() if port in sinks},
            any((time.outlet(outlet) if outlet else time).ets != "none" for time, outlet in streams),
        )

    @property
    def ports(self) -> frozenset[str]:
        """All ports that it reads."""
        return frozenset([*self.exchanges, *self.arriving])

    def streams(self) -> dict[str, list[str]]:
        """The ports of each stream."""
        found: dict[str, list[str]] = {}
        for port, exchange in self.exchanges.items():
            found.setdefault(exchange.stream.name, []).append(port)
        return found


@dataclass
class Bucket:
    """A bucket's graph at work, and what the manifest says of its state."""

    level: Level
    executor: Executor
    queues: BucketQueues
    producers: int
    """How many buckets of an earlier level send to it."""
    edges: dict[str, Ingress]
    """How far each stream of the network has come, on all its outlets: another plan may read it on this level."""
    ports: dict[str, list[str]]
    """The ports of each stream."""
    progress_files: ProgressFiles
    orders: dict[str, Order]
    """What the order of each stream must remember, as it is put down: partitions that have not changed are in files."""
    streams: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The accounting of each stream, and how many of its files have been read."""
    bounds: dict[str, dict[str, int]] = field(default_factory=dict)
    """By port the last bound of each bucket of an earlier level."""
    joints: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """By port the last promise of each such bucket about pairs of times."""
    wants: dict[str, int] = field(default_factory=dict)
    """The bounds that later levels wait for."""
    low: dict[str, Told] = field(default_factory=dict)
    """By stream what its operators below the exchanges have said so far."""
    results: dict[str, int] = field(default_factory=dict)
    segments: dict[Place, int] = field(default_factory=dict)
    """Where in the state store each live segment is."""
    stale_segments: list[Place] = field(default_factory=list)
    """Places in the state store of segments that no operator will need again."""
    crossing: Mapping[str, str] = field(default_factory=dict)
    """By port to a later level a query whose rows cross there."""
    queries_of_ports: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The queries of each port, of those to later levels too."""
    version: int = 1
    """The number of the plan that it works by."""
    token: str = ""

    @staticmethod
    def new(
        plan: Physical, number: int, producers: int, progress_files: ProgressFiles, version: int = 1, place: int = 0
    ) -> Bucket:
        """A bucket that has seen nothing yet, at a place among all of its level."""
        graph = plan.high(number)
        level = Level.of(plan, number, graph)
        edges = {stream.name: Ingress(stream.time) for stream in plan.network.streams()}
        executor = Executor(graph, meter=meter)
        executor.name_streams({port: each.stream.name for port, each in level.exchanges.items()})
        for port, exchange in level.exchanges.items():
            if not exchange.attribute:
                executor.ingress[port].order.share(edges[exchange.stream.name].order)
        crossing = plan.queries_of_crossings()
        titles = titles_of(executor, crossing, number)
        shares = {query.name: float(query.options.get("share", 1)) for query, _ in plan.roots}
        queues = BucketQueues(executor, titles, place, producers, shares)
        orders = {name: edge.order.changes() for name, edge in edges.items()}
        return Bucket(
            level,
            executor,
            queues,
            producers,
            edges,
            level.streams(),
            progress_files,
            orders,
            crossing=crossing,
            queries_of_ports=plan.queries_of_ports(),
            version=version,
        )

    # Work

    def work(self, received: BucketInput, pace: TriggerPace | None = None) -> dict[str, list[Batch]]:
        """Process a micro-batch; the rows of its sinks. Queues follow the pace from the next one on."""
        for port, blob in received.blobs:
            for rows in unpack(blob).to_batches():
                for alike, release in by_release(rows):
                    self.executor.edges.push_stamped(port, Batch(alike), release)
        for stream, summaries in received.summaries.items():
            if stream in self.edges:
                self._follow(stream, summaries, received.now)
        self._cross(received.bounds, received.releases)
        self._cross_jointly(received.joints)
        if received.wants is not None:
            self.want(received.wants)
        if received.end:
            for port in self.level.ports:
                self.executor.edges.end(port)
        clock, silent = StandingClock(received.now), self._silent(received) if received.live else {}
        for port in self.level.exchanges:
            # Of a stream with unread rows only its partitions may be silent.
            ingress, busy = self.executor.ingress[port], received.live and port not in silent
            ingress.read_until = ingress.reached(received.now) if busy else None
        self.queues.take_in(received.committed, self._arrived(received))
        self.executor.run(clock, silent)
        self.queues.serve(
            lambda: self.executor.run(clock, silent), received.now, pace or TriggerPace(), free=not received.live
        )
        return self.executor.take(received.now)

    def _arrived(self, received: BucketInput) -> dict[str, int]:
        """By port when the first of the rows arrived that it gives now."""
        streams = {stream: min(each["first"] for each in summaries) for stream, summaries in received.summaries.items()}
        return {port: at for stream, at in streams.items() for port in self.ports.get(stream, ())}

    def _follow(self, stream: str, summaries: list[Summary], now: int) -> None:
        """Learn how far a stream has come, and what became of its rows."""
        known, edge = self.streams.setdefault(stream, {}), self.edges[stream]
        if summaries[0]["since"] != known.get("files", 0):
            # The stream is new to this level: what the others know of its partitions is to be learned, too.
            summaries = [self.progress_files.whole(summaries[0]), *summaries[1:]]
        for name in _COUNTS:
            known[name] = known.get(name, 0) + sum(summary[name] for summary in summaries)
        counts = [Counter(each.get("malformed", {})) for each in (known, *summaries)]
        if malformed := sum(counts, Counter()):
            known["malformed"] = dict(malformed)
        known["disorder"] = dict(sum((Counter(each.get("disorder", {})) for each in (known, *summaries)), Counter()))
        if any(summary["aside"] for summary in summaries):
            known["aside"] = merged(known.get("aside", {}), *(summary["aside"] for summary in summaries)).save()
        self.low[stream] = counts_with(self.low.get(stream, {}), [each["operators"] for each in summaries])
        known["files"] = max(summary["files"] for summary in summaries)
        edge.follow(summaries)
        self.orders[stream] = changed_order(edge, summaries[0]["order"].get("runs", ()))
        for port in self.ports.get(stream, ()):
            _observe(self.executor, port, summaries, now)

    def _cross(self, heard: Mapping[str, Mapping[str, int]], releases: Mapping[str, Mapping[str, Any]]) -> None:
        """Learn what the buckets of earlier levels promise; the least promise is what releases rows here."""
        for port, bounds in heard.items():
            known = self.bounds.setdefault(port, {})
            known.update(bounds)
            if len(known) == self.producers:
                least = min(known, key=lambda bucket: known[bucket])
                self.executor.ingress[port].raise_bound(known[least])
                told = releases.get(port, {}).get(least)
                self.executor.edges.promise(port, release=None if told is None else Cause(*told))

    def _cross_jointly(self, heard: Mapping[str, Mapping[str, list[int]]]) -> None:
        """Learn what the buckets of earlier levels promise about pairs of times."""
        for port, pairs in heard.items():
            known = self.joints.setdefault(port, {})
            known.update(pairs)
            if len(known) == self.producers:
                first, second = (min(each) for each in zip(*known.values(), strict=True))
                self.executor.edges.promise_jointly(port, (first, second))

    def want(self, wants: Mapping[str, int]) -> None:
        """Wait for what later levels wait for."""
        self.wants = {port: until for port, until in wants.items() if port in self.level.leaving}
        for port in self.level.leaving:
            self.executor.want(port, self.wants.get(port))

    def _silent(self, received: BucketInput) -> dict[str, int]:
        """The ports that ETS may be made for: of streams with nothing left to read.

        Each with the clock when its stream was looked at, or that of the first look where it had nothing new.
        """
        looks = {stream: summaries[-1] for stream, summaries in received.summaries.items()}
        return {
            port: looks[stream]["now"] if stream in looks else received.first
            for stream, ports in self.ports.items()
            for port in ports
            if stream not in looks or looks[stream]["all"]
        }

    # What it says

    def counted(self, results: Mapping[str, Sequence[Batch]]) -> dict[str, pa.Table]:
        """Results as tables of the user's columns; counts them."""
        tables = {name: user_table(batches) for name, batches in results.items()}
        for name, table in tables.items():
            self.results[name] = self.results.get(name, 0) + table.num_rows
        return tables

    def promises(self) -> Iterator[dict[str, Any]]:
        """Each later level that it sends to, with its bounds for the ports there, and those for pairs of times."""
        for level in sorted({crossing.level for crossing in self.level.leaving.values()}):
            ports = [port for port, crossing in self.level.leaving.items() if crossing.level == level]
            bounds = {port: self.executor.promised(port) for port in ports}
            joints = {port: pair for port in ports if (pair := self.executor.promised_jointly(port)) is not None}
            promise = {"level": level, "bounds": bounds, "joints": joints}
            nodes = self.executor.graph.nodes
            told = {port: each for port in ports if (each := nodes[port].release) is not None}
            yield {**promise, "releases": {port: astuple(each) for port, each in told.items()}} if told else promise

    def report(self, now: int, *, live: bool) -> dict[str, Any]:
        """What the commit record shall hold of it."""
        metrics = self.executor.metrics()
        return {
            "sources": {stream: self._known(stream) for stream in self.ports},
            "wake_at": self.executor.wake_at(list(self.level.exchanges)) if live else None,
            "wants": self._waits_for() if live and self.level.has_ets else {},
            "queued": self.queues.held_back(),
            "queues": self.queues.told(now, {port: each.stream.name for port, each in self.level.exchanges.items()}),
            "metrics": {
                "results": self.results,
                "held": sum(held for name, held in metrics.held.items() if name not in self.queues.titles),
                "state_bytes": sum(metrics.state_bytes.values()),
                "turned_away": sum(metrics.turned_away.values()),
                "lookups": {name: asdict(each) for name, each in metrics.lookups.items()},
                "malformed": self.executor.malformed(self.queries_of_ports),
                "joins": mode_reports(metrics.joins, self.crossing),
                "aggregates": mode_reports(metrics.aggregates, self.crossing),
                "operators": operator_reports(self.executor.graph.operators(), now, self.queries_of_ports),
            },
            "low": {name: each for stream in self.ports for name, each in self.low.get(stream, {}).items()},
            "bounds": self._low_bounds() | {node.name: node.bound for node in self.executor.graph.operators()},
            "releases": self._releases(),
            "now": now,
            "plan": self.version,
            "lag": share(
                self.executor,
                now,
                live=live,
                exchanges={port: (each.stream.name, each.attribute) for port, each in self.level.exchanges.items()},
                edges=self.edges,
            ),
        }

    def _releases(self) -> dict[str, Any]:
        """By query what has released its rows since the last report."""
        found = {query: [asdict(each) for each in past] for query, past in self.executor.releases().items()}
        self.executor.forget_releases()
        return found

    def _low_bounds(self) -> dict[str, int]:
        """The bounds of operators below the exchanges: those of their streams, where these have only one."""
        own = {stream: self.low.get(stream, {}) for stream in self.ports if not self.edges[stream].contract.also}
        return {name: self.edges[stream].bound for stream, operators in own.items() for name in operators}

    def _known(self, stream: str) -> dict[str, Any]:
        """The accounting of a stream and how far it has come, with the ETS that were made for its ports.

        A stream of which nothing has been read is known too: it may have an ETS.
        """
        edge, own = self.edges[stream], {port: self.executor.ingress[port] for port in self.ports[stream]}
        for port, ingress in own.items():
            edge.outlet(self.level.exchanges[port].outlet).raise_bound(ingress.bound, ingress.moved_at)
        return {
            **dict.fromkeys((*_COUNTS, "files"), 0),
            **self.streams.get(stream, {}),
            **edge.progress(self.orders[stream]),
            "enabled": max(ingress.enabled for ingress in own.values()),
            "unit": edge.contract.unit,
        }

    def _waits_for(self) -> dict[str, int]:
        """The least bound of each port of an earlier level that would release something here."""
        least: dict[str, int] = {}
        for node in self.executor.graph.nodes.values():
            for source, needed, under_way in (each for needs in wanted(node) for each in sources_behind(node, needs)):
                if source is not None and not under_way and source.name in self.level.arriving:
                    least[source.name] = min(needed, least.get(source.name, needed))
        return least

    # What it must remember besides its graph's state

    def note(self) -> dict[str, Any]:
        """All of it, as plain data."""
        return {
            "segments": [[node, part, place] for (node, part), place in self.segments.items()],
            "edges": {stream: edge.save(self.orders[stream]) for stream, edge in self.edges.items()},
            "streams": self.streams,
            "low": self.low,
            "bounds": self.bounds,
            "joints": self.joints,
            "wants": self.wants,
            "results": self.results,
            "queues": self.queues.note(),
            "counts": {node.name: node.metrics.save() for node in self.executor.graph.operators()},
        }

    def recall(self, note: Mapping[str, Any]) -> None:
        """Go on from what `note` gave, as far as the plan still has it."""
        nodes = self.executor.graph.nodes
        for node, part, place in note["segments"]:
            if node in nodes:
                self.segments[node, part] = place
            else:
                self.stale_segments.append((node, place))
        for stream, saved in note["edges"].items():
            if stream in self.edges:
                self.edges[stream].restore(self.progress_files.whole(saved))
                self.orders[stream] = saved["order"]
        self.streams = {stream: known for stream, known in note["streams"].items() if stream in self.edges}
        self.low = {stream: told for stream, told in note.get("low", {}).items() if stream in self.edges}
        self.bounds, self.joints = (
            {port: known for port, known in note[name].items() if port in self.level.arriving}
            for name in ("bounds", "joints")
        )
        self.results = {query: rows for query, rows in note["results"].items() if query in nodes}
        self.wants = note["wants"]
        self.queues.recall(note["queues"])
        for name, counts in note.get("counts", {}).items():
            if name in nodes:
                nodes[name].metrics.restore(counts)

    def catch_up(self, known: Container[str]) -> None:
        """Let ports that are new, for they are not known yet, begin where their streams are."""
        for stream, ports in self.ports.items():
            for port in ports:
                if port not in known and stream in self.streams:
                    edge = self.edges[stream].outlet(self.level.exchanges[port].outlet)
                    self.executor.ingress[port].resume(edge.progress())
                    self.executor.edges.promise(port)
        self.want(self.wants)


def _observe(executor: Executor, port: str, summaries: list[Summary], now: int) -> None:
    """Learn how far a stream has come.

    Streams are read one after another, so their clocks differ a little. Where the system stamps rows, what comes in a
    later micro-batch is stamped after all clocks of this one: rows need not wait for each other until then.
    """
    if executor.ingress[port].contract.kind != "external":
        executor.ingress[port].raise_bound(now)
    executor.edges.observe(port, summaries)
