"""Small graphs and clocks for the tests of the kernel."""

from __future__ import annotations

import pyarrow as pa

from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.aggregates.partials import FunctionCall, Partials
from millrace.kernel.aggregates.window_aggregate import WindowAggregate
from millrace.kernel.clock import StandingClock
from millrace.kernel.columns.expressions import Call, Column, Literal
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph, GraphNode
from millrace.kernel.progress.time_contract import TimeContract
from millrace.kernel.relational.filter import Filter

TIMESTAMP = pa.timestamp("us", tz="UTC")
ORDERED = TimeContract("external", "ts")
INTERNAL = TimeContract("internal", "ts", ets="on_demand")


def rows(*times: int, first: int = 0) -> pa.RecordBatch:
    """Rows numbered from `first` on, at these times."""
    return pa.record_batch({"n": range(first, first + len(times)), "ts": pa.array(times).cast(TIMESTAMP)})


def at_least(number: int) -> Filter:
    """A selection of the rows from a number on."""
    return Filter(Call(">=", (Column("n"), Literal(number, pa.int64()))))


def path(graph: Graph, source: GraphNode, *names: str, strategy: str = "dfs") -> GraphNode:
    """Selections one after another, all of which let every row pass."""
    for name in names:
        source = graph.operator(name, at_least(0), [source], strategy)
    return source


def counting(length: int, slide: int, *, in_order: bool = False) -> WindowAggregate:
    """A count of rows in windows."""
    return WindowAggregate(
        Partials(WindowGeometry(length, slide), [], [FunctionCall("rows", "count")]), in_order=in_order
    )


def numbers(executor: Executor, sink: str, now: int = 0) -> list[int]:
    """The rows that have come out of a sink since the last time."""
    return [number for batch in executor.take(now).get(sink, []) for number in batch.rows.column("n").to_pylist()]


class Costly(StandingClock):
    """A clock that moves by what work costs, and notes it: 10 unless a node has another price, an ETS by an arc 1."""

    def __init__(self, time: int = 0, **prices: int) -> None:
        super().__init__(time)
        self.prices = prices
        self.spent: list[tuple[str, int]] = []

    def spend(self, node: str, rows: int, ets: bool = False) -> None:
        self.spent.append((node, 1 if ets else self.prices.get(node, 10) * max(rows, 1)))
        self.time += self.spent[-1][1]

    def compare(self, node: str, pairs: int) -> None:
        self.time += pairs
