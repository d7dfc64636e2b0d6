"""A network that changes under load: queries come and go, strategies and break nodes change, nothing is lost."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.connectors.fed_rows import as_rows
from millrace.connectors.stream_input import read_schema
from millrace.kernel.clock import StandingClock
from millrace.kernel.elements import NO_BOUND, without_reserved
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.snapshot import Place
from millrace.language import parse_network
from millrace.plan.evolution.start_points import start_of
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.physical.stages import Physical, physical
from tests.property.cases import EPOCH, Row, batch, declared, queries, rows, schedules
from tests.reference import evaluate, multiset

pytestmark = pytest.mark.slow

STREAMS = ("s0", "s1", "s2")
MICROSECOND = dt.timedelta(microseconds=1)
STRATEGIES = ("dfs", "bfs", "rr", "batch:1", "batch:2", "batch:64")


class Changing:
    """A graph at work whose queries come and go while elements stand in its buffers."""

    def __init__(self, declarations: str, rows_per_step: int | None) -> None:
        self.declarations = declarations
        self.rows_per_step = rows_per_step
        self.queries: list[Query] = []
        self.left: list[Query] = []
        self.results: dict[str, list[Row]] = {}
        self.segments: dict[Place, pa.Table] = {}
        self.clock = StandingClock(0)

    def begin(self, text: str) -> None:
        self.queries = [self._parsed(text, "q0")]
        self.executor = Executor(self._plan().whole(), rows_per_step=self.rows_per_step)
        self.results["q0"] = []

    def add(self, text: str) -> None:
        query = self._parsed(text, f"q{len(self.results)}")
        points = {name: ingress.save() for name, ingress in self.executor.ingress.items()}
        self.queries.append(query.starting_at(*start_of(query, points)))
        self.results[query.name] = []
        self._reshape()

    def drop(self, number: int) -> None:
        self.take()
        self.left.append(self.queries.pop(number % len(self.queries)))
        self._reshape()

    def restart(self) -> None:
        self.work(None)
        saved = self.executor.save()
        self.segments.update(saved.added)
        for place in saved.removed:
            del self.segments[place]
        self.executor = Executor(self._plan().whole(), rows_per_step=self.rows_per_step)
        self.executor.restore(saved.control, self.segments)

    def schedule(self, draw: st.DataObject) -> None:
        arcs = [(arc.producer.name, node.name) for node in self.executor.graph.operators() for arc in node.inputs]
        for node in self.executor.graph.operators():
            node.strategy = draw.draw(st.sampled_from(STRATEGIES))
        self.executor.adopt()
        self.executor.set_breaks(draw.draw(st.lists(st.sampled_from(arcs), max_size=3)) if arcs else [])
        if draw.draw(st.booleans()):
            for node in self.executor.graph.operators():
                node.chain = True
            self.executor.place_breaks()

    def push(self, stream: str, given: Sequence[Row]) -> None:
        if stream not in self.executor.ingress:
            # Nobody reads it: a query that joins later will read it from here on.
            return
        declared_stream = next(each for each in self._network().streams() if each.name == stream)
        schema = read_schema(declared_stream, list(declared_stream.schema.names))
        self.executor.push(stream, as_rows(batch(given), schema, stream), 0)

    def work(self, steps: int | None) -> None:
        if steps is None:
            self.executor.run(self.clock)
        else:
            for _ in range(steps):
                self.executor.step(self.clock)
        self.take()

    def take(self) -> None:
        for name, batches in self.executor.take(0).items():
            for each in batches:
                self.results[name] += without_reserved(each.rows).to_pylist()

    def end(self) -> None:
        for stream in self.executor.ingress:
            self.executor.edges.end(stream)
        self.work(None)

    def _parsed(self, text: str, name: str) -> Query:
        (query,) = parse_network(self.declarations + text).queries
        return replace(query, name=name)

    def _network(self) -> QueryNetwork:
        return QueryNetwork(tuple(self.queries))

    def _plan(self) -> Physical:
        return physical(self._network())

    def _reshape(self) -> None:
        self._plan().shape(self.executor.graph)
        self.executor.adopt()


@st.composite
def query(draw: st.DrawFn) -> str:
    streams = draw(st.lists(st.sampled_from(STREAMS), min_size=1, max_size=3, unique=True))
    return draw(queries(["s0", *(each for each in streams if each != "s0")]))


def seen(found: Query, fed: dict[str, list[Row]]) -> list[Row]:
    """The oracle: the finished input from the query's start on."""
    start = found.since
    inputs = {
        stream: [row for row in given if start == NO_BOUND or (row["ts"] - EPOCH) // MICROSECOND >= start]
        for stream, given in fed.items()
    }
    return evaluate(found, inputs)


@given(data=st.data(), rows_per_step=st.sampled_from([None, 1, 2]))
def test_queries_strategies_and_breaks_change_under_load_and_no_answer_does(
    data: st.DataObject, rows_per_step: int | None
) -> None:
    disorders = {name: data.draw(st.sampled_from([0, 2, 15])) for name in STREAMS}
    given_rows = {name: data.draw(rows(disorder, -3)) for name, disorder in disorders.items()}
    network = Changing("".join(declared(name, disorder) for name, disorder in disorders.items()), rows_per_step)
    network.begin(f"CREATE QUERY q AS SELECT k, v + 1 AS w, ts FROM {' UNION '.join(STREAMS)};")
    for stream, chunk in data.draw(schedules(given_rows)):
        network.push(stream, chunk)
        network.work(data.draw(st.integers(0, 5)))
        match data.draw(st.sampled_from(["add", "drop", "schedule", "schedule", "restart", "", ""])):
            case "add":
                network.add(data.draw(query()))
            case "drop" if len(network.queries) > 1:
                network.drop(data.draw(st.integers(1, 9)) % (len(network.queries) - 1) + 1)
            case "schedule":
                network.schedule(data)
            case "restart":
                network.restart()
    network.end()
    for found in network.queries:
        assert multiset(network.results[found.name]) == multiset(seen(found, given_rows))
    for found in network.left:
        extra = Counter(multiset(network.results[found.name])) - Counter(multiset(seen(found, given_rows)))
        assert not extra, "a query that was dropped had given something that is no answer"
