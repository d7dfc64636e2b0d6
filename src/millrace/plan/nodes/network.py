"""A network as data: streams, sinks, and queries as trees of relational nodes.

The language and the Python API build these; the rules rewrite them; `stages` turns them into query graphs.
All of it is frozen and pickles, so that a worker process can build the same graph from the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from millrace.kernel.aggregates.functions.user_aggregates import UserAggregate
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.elements import NO_BOUND
from millrace.kernel.joins.sides import JoinTime as JoinTime
from millrace.kernel.joins.sides import RowsSide as RowsSide
from millrace.kernel.joins.sides import Side as Side
from millrace.kernel.progress.admission import LATE as LATE
from millrace.kernel.progress.admission import SEQUENCE as SEQUENCE
from millrace.kernel.progress.admission import TimeContract
from millrace.plan.nodes.joins import AnyJoin as AnyJoin
from millrace.plan.nodes.joins import Following as Following
from millrace.plan.nodes.joins import Join as Join
from millrace.plan.nodes.joins import RowsJoin as RowsJoin
from millrace.plan.nodes.updates import AnyQueue as AnyQueue
from millrace.plan.nodes.updates import MarkedAggregate as MarkedAggregate
from millrace.plan.nodes.updates import UpdateJoin as UpdateJoin
from millrace.plan.nodes.updates import UpdateQueue as UpdateQueue
from millrace.plan.nodes.updates import WindowQueue as WindowQueue
from millrace.plan.nodes.windows import AnyWindow as AnyWindow
from millrace.plan.nodes.windows import CalendarWindow as CalendarWindow
from millrace.plan.nodes.windows import DividedWindow as DividedWindow
from millrace.plan.nodes.windows import InstantWindow as InstantWindow
from millrace.plan.nodes.windows import PairWindow as PairWindow
from millrace.plan.nodes.windows import PartitionedRows as PartitionedRows
from millrace.plan.nodes.windows import SessionWindow as SessionWindow
from millrace.plan.nodes.windows import TrailingWindow as TrailingWindow
from millrace.plan.nodes.windows import Unit as Unit
from millrace.plan.nodes.windows import Window as Window

if TYPE_CHECKING:
    from millrace.kernel.updates.queue_settings import Access

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
    """A declared stream: columns, time contract, connector, and the name under which its late rows can be read.

    Of an update stream `update_key` are the columns whose rows of equal values update each other; () if all rows do.
    `options` are those of the queues of queries that read it.
    """

    name: str
    schema: pa.Schema
    time: TimeContract
    connector: Connector
    replay: Replay | None = None
    late_into: str | None = None
    # What a stream computes does not depend on these, so they are not among what names are made of.
    update_key: tuple[str, ...] | None = field(default=None, repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Sink:
    """A declared sink; the default is memory."""

    name: str
    connector: Connector


@dataclass(frozen=True)
class Scan:
    """The rows of a declared stream.

    `outlet` says what their progressing attribute is: "" the stream's own time, a further declared time column,
    `SEQUENCE`, or `LATE` for the rows that were turned away.
    """

    stream: Stream
    outlet: str = ""

    @property
    def schema(self) -> pa.Schema:
        return self.stream.schema

    @property
    def source(self) -> str:
        """The name of its source in a graph: its stream, or an outlet of it."""
        return f"{self.stream.name}@{self.outlet.strip('_')}" if self.outlet else self.stream.name


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
    """All rows of all inputs (a bag union). The inputs' columns agree in name and type.

    `truth` is the input that wins where two are updates of one key at one time; only update queries ask for it.
    """

    inputs: tuple[Node, ...]
    truth: int | None = field(default=None, repr=False)

    @property
    def schema(self) -> pa.Schema:
        return self.inputs[0].schema


@dataclass(frozen=True)
class Numbered:
    """The rows of a union under one sequence: by time, then input, then order in the input.

    The number, from 0 on, is their progressing attribute from here on.
    """

    input: Node

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema


@dataclass(frozen=True)
class Aggregation:
    """One aggregate: a function over arguments (none: `count(*)`), over the rows where `where` holds.

    `parameters` are constants of the call, such as the fraction of a quantile.
    """

    name: str
    function: str | UserAggregate
    arguments: tuple[Expression, ...] = ()
    where: Expression | None = None
    parameters: tuple[float | int | bool, ...] = ()

    def expressions(self) -> tuple[Expression, ...]:
        """All that is computed for each row."""
        return self.arguments if self.where is None else (*self.arguments, self.where)


@dataclass(frozen=True)
class Aggregate:
    """A window aggregate by window id: `window_start`, `window_end`, the keys, the aggregates.

    With partitioned rows, rows where `where` does not hold are counted but neither aggregated nor reported.
    """

    input: Node
    window: AnyWindow
    keys: tuple[tuple[str, Expression], ...]
    aggregations: tuple[Aggregation, ...]
    where: Expression | None = None

    @property
    def bounds_type(self) -> pa.DataType | None:
        """The type of `window_start` and `window_end`; None where there are none."""
        match self.window:
            case InstantWindow() | PairWindow():
                return None
            case Window(unit="rows") | TrailingWindow(unit="rows") | PartitionedRows():
                return pa.int64()
            case _:
                return TIMESTAMP

    @property
    def schema(self) -> pa.Schema:
        from millrace.kernel.aggregates.functions import result_type

        given = self.input.schema
        kind = self.bounds_type
        bounds = [] if kind is None else [(WINDOW_START, kind), (WINDOW_END, kind)]
        keys = [(name, key.type_in(given)) for name, key in self.keys]
        results = [
            (each.name, result_type(each.function, [argument.type_in(given) for argument in each.arguments]))
            for each in self.aggregations
        ]
        return pa.schema([*bounds, *keys, *results])

    def expressions(self) -> tuple[Expression, ...]:
        """All that is computed for each row."""
        found = [key for _, key in self.keys] + [each for one in self.aggregations for each in one.expressions()]
        return tuple(found if self.where is None else [*found, self.where])


@dataclass(frozen=True)
class Distinct:
    """Each row once; equal rows have equal times, so what has been seen is forgotten when time has passed it."""

    input: Node

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema


@dataclass(frozen=True)
class Rank:
    """Rows of equal time and partition, ranked among each other; those beyond `limit` are left out.

    `order` names columns, and whether from great to small. The rank is the last column, under `name`.
    """

    input: Node
    function: Literal["row_number", "rank", "dense_rank"]
    partition: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    name: str
    limit: int | None = None

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema.append(pa.field(self.name, pa.int64()))

    def reads(self, wanted: Sequence[str]) -> list[str]:
        """The columns of its input that it needs to give the wanted ones; row_number breaks ties by all of them."""
        if self.function == "row_number":
            return list(self.input.schema.names)
        read = (*wanted, *self.partition, *(name for name, _ in self.order))
        return [name for name in dict.fromkeys(read) if name != self.name]


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


@dataclass(frozen=True)
class RollUp:
    """The rows of a stream that promises group by group, for those who need one bound: the least of all groups seen."""

    input: Node

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema


@dataclass(frozen=True)
class Slack:
    """The rows with a bound made of the rows alone: the greatest time so far less `slack` (004 section 2, option 2)."""

    input: Node
    slack: int

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema


Node = (
    Scan
    | Filter
    | Project
    | Union
    | Numbered
    | Aggregate
    | Distinct
    | Rank
    | OrderByTime
    | Since
    | RollUp
    | Slack
    | Join
    | RowsJoin
    | Following
    | UpdateQueue
    | WindowQueue
    | MarkedAggregate
    | UpdateJoin
)


def inputs_of(node: Node) -> tuple[Node, ...]:
    """The nodes a node reads from."""
    match node:
        case Scan():
            return ()
        case Union() | Join() | RowsJoin() | Following() | UpdateQueue() | WindowQueue() | UpdateJoin():
            return node.inputs
        case _:
            return (node.input,)


def with_inputs(node: Node, rewrite: Callable[[Node], Node]) -> Node:
    """The node over its rewritten inputs."""
    match node:
        case Scan():
            return node
        case Union() | Join() | UpdateQueue() | WindowQueue():
            return replace(node, inputs=tuple(rewrite(each) for each in node.inputs))
        case RowsJoin() | Following() | UpdateJoin():
            first, second = node.inputs
            return replace(node, inputs=(rewrite(first), rewrite(second)))
        case MarkedAggregate():
            return replace(node, aggregate=replace(node.aggregate, input=rewrite(node.input)))
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
    outlets_since: tuple[tuple[str, int], ...] = ()
    """The same for the outlets that it reads, by the name of their source."""
    tree: Node | None = None
    """The tree that is carried out, where that was decided when the query joined a checkpoint (see evolution.py)."""
    access: tuple[Access, ...] = ()
    """How often its answers are read, by classes of keys; conditions name the key as its results do."""


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
                return replace(node, stream=streams.get(node.stream.name, node.stream))
            return with_inputs(node, replaced)

        return Network(
            tuple(
                replace(query, root=replaced(query.root), tree=None if query.tree is None else replaced(query.tree))
                for query in self.queries
            )
        )
