"""A network as data: streams, sinks, and queries as trees of relational nodes.

The language and the Python API build these; the rules rewrite them; `stages` turns them into query graphs.
All of it is frozen and pickles, so that a worker process can build the same graph from the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from millrace.kernel.elements import NO_BOUND
from millrace.kernel.expressions import Expression
from millrace.kernel.progress import TimeContract

TIMESTAMP = pa.timestamp("us", tz="UTC")

WINDOW_START = "window_start"
WINDOW_END = "window_end"


@dataclass(frozen=True)
class Connector:
    """Where rows come from or go to: a format and its options (keys in lower case)."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Replay:
    """`REPLAY BY column [SPEED x]`: a file is replayed by its arrival column."""

    column: str
    speed: float = 1.0


@dataclass(frozen=True)
class Stream:
    """A declared stream: columns, time contract, connector."""

    name: str
    schema: pa.Schema
    time: TimeContract
    connector: Connector
    replay: Replay | None = None


@dataclass(frozen=True)
class Sink:
    """A declared sink; the default is memory."""

    name: str
    connector: Connector


@dataclass(frozen=True)
class Window:
    """A time window `[start, start + range)`, start a multiple of `slide` since the epoch (microseconds)."""

    range: int
    slide: int


@dataclass(frozen=True)
class Scan:
    """The rows of a declared stream."""

    stream: Stream

    @property
    def schema(self) -> pa.Schema:
        return self.stream.schema


@dataclass(frozen=True)
class Filter:
    """The rows where `predicate` is true (not false, not null)."""

    input: Node
    predicate: Expression

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema


@dataclass(frozen=True)
class Project:
    """Named expressions over each row."""

    input: Node
    columns: tuple[tuple[str, Expression], ...]

    @property
    def schema(self) -> pa.Schema:
        given = self.input.schema
        return pa.schema([(name, expression.type_in(given)) for name, expression in self.columns])


@dataclass(frozen=True)
class Union:
    """All rows of all inputs (a bag union). The inputs' columns agree in name and type."""

    inputs: tuple[Node, ...]

    @property
    def schema(self) -> pa.Schema:
        return self.inputs[0].schema


@dataclass(frozen=True)
class Aggregation:
    """One aggregate: `function` (count, sum, min, max, avg) over `argument`; None means `count(*)`."""

    name: str
    function: str
    argument: Expression | None


@dataclass(frozen=True)
class Aggregate:
    """A window aggregate by window id: `window_start`, `window_end`, the keys, the aggregates."""

    input: Node
    window: Window
    keys: tuple[tuple[str, Expression], ...]
    aggregations: tuple[Aggregation, ...]

    @property
    def schema(self) -> pa.Schema:
        from millrace.kernel.aggregates import result_type

        given = self.input.schema
        keys = [(name, key.type_in(given)) for name, key in self.keys]
        results = [
            (each.name, result_type(each.function, None if each.argument is None else each.argument.type_in(given)))
            for each in self.aggregations
        ]
        return pa.schema([(WINDOW_START, TIMESTAMP), (WINDOW_END, TIMESTAMP), *keys, *results])


@dataclass(frozen=True)
class OrderByTime:
    """The rows as a sequence sorted by their own time."""

    input: Node

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema


@dataclass(frozen=True)
class Since:
    """The rows whose own time is not before `time`: where a query begins that was added while others ran."""

    input: Node
    time: int

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema


Node = Scan | Filter | Project | Union | Aggregate | OrderByTime | Since


def inputs_of(node: Node) -> tuple[Node, ...]:
    """The nodes a node reads from."""
    match node:
        case Scan():
            return ()
        case Union(inputs=inputs):
            return inputs
        case _:
            return (node.input,)


def with_inputs(node: Node, rewrite: Callable[[Node], Node]) -> Node:
    """The node over its rewritten inputs."""
    match node:
        case Scan():
            return node
        case Union(inputs=inputs):
            return Union(tuple(rewrite(each) for each in inputs))
        case _:
            return replace(node, input=rewrite(node.input))


def walk(node: Node) -> Iterator[Node]:
    """A node and everything below it, inputs first."""
    for child in inputs_of(node):
        yield from walk(child)
    yield node


@dataclass(frozen=True)
class Query:
    """A named continuous query and the sink it writes to."""

    name: str
    root: Node
    sink: Sink
    options: Mapping[str, str] = field(default_factory=dict)
    since: int = NO_BOUND
    """It is answered over the rows from this time on."""


@dataclass(frozen=True)
class Network:
    """All that one run carries out together."""

    queries: tuple[Query, ...]

    def streams(self) -> tuple[Stream, ...]:
        """The streams that some query reads, each once, in order of first use."""
        found = {
            node.stream.name: node.stream
            for query in self.queries
            for node in walk(query.root)
            if isinstance(node, Scan)
        }
        return tuple(found.values())

    def with_streams(self, streams: Mapping[str, Stream]) -> Network:
        """The network with some of its streams replaced, by name."""

        def replaced(node: Node) -> Node:
            if isinstance(node, Scan):
                return Scan(streams.get(node.stream.name, node.stream))
            return with_inputs(node, replaced)

        return Network(tuple(replace(query, root=replaced(query.root)) for query in self.queries))
