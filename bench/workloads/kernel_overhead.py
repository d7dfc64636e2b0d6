"""What a step of the kernel costs at k = 1, by the number of operators.

A path of 1 to 64 selections that let every row pass: a row makes a step at each. Beside it the same path with all rows
in one step (k = all), and 16 paths of one selection side by side, of which each row sees one: a row should pay for the
operators it passes, not for those it does not. Processor time, the best of the rounds; the ratios are what counts.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from bench.measures import result_log
from millrace.kernel.clock import StandingClock
from millrace.kernel.columns.expressions import Call, Column, Literal
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.graph import Graph, GraphNode
from millrace.kernel.progress.time_contract import TimeContract
from millrace.kernel.relational.filter import Filter

LENGTHS = (1, 2, 4, 8, 16, 32, 64)
STRATEGIES = ("dfs", "bfs")
_STEPS = 128_000
"""Steps a measurement: rows times operators."""
_BESIDE = 16


def run(rows: int, rounds: int) -> None:
    """Measure every path, print a line each with its ratio to the shortest, and append the results."""
    around, entries = result_log.circumstances(), []
    for strategy in STRATEGIES:
        base = 0.0
        for length in LENGTHS:
            count = _STEPS // length
            one = min(_seconds(_path(length, strategy), count, 1) for _ in range(rounds)) / (count * length)
            whole = min(_seconds(_path(length, strategy), count, None) for _ in range(rounds)) / (count * length)
            base = base or one
            print(
                f"{strategy}  {length:>2} operators  {one * 1e6:6.2f} us a row and operator at k = 1"
                f"  x {one / base:4.2f} of one operator  k = all is {one / whole:7.0f} times faster",
                flush=True,
            )
            entries.append({"strategy": strategy, "operators": length, "us": one * 1e6, "us_whole": whole * 1e6})
    alone, beside = (min(_seconds(_beside(paths), 4_000, 1) for _ in range(rounds)) for paths in (1, _BESIDE))
    print(f"a row with {_BESIDE - 1} other queries beside its own costs x {beside / alone:4.2f} of it alone")
    entries.append({"beside": _BESIDE, "ratio": beside / alone})
    print(f"appended to {result_log.append('kernel_overhead', around, entries)}")


def _path(length: int, strategy: str) -> Graph:
    graph = Graph()
    node = _source(graph, "s")
    for number in range(length):
        node = graph.operator(f"pass_{number}", _pass(), [node], strategy)
    graph.sink("out", node)
    return graph


def _beside(paths: int) -> Graph:
    graph = Graph()
    for number in range(paths):
        name = "s" if number == 0 else f"s_{number}"
        graph.sink(f"out_{number}", graph.operator(f"pass_{number}", _pass(), [_source(graph, name)]))
    return graph


def _source(graph: Graph, name: str) -> GraphNode:
    return graph.source(name, TimeContract("external", "ts"))


def _pass() -> Filter:
    return Filter(Call(">=", (Column("n"), Literal(0, pa.int64()))))


def _seconds(graph: Graph, count: int, rows_per_step: int | None) -> float:
    """The processor time that a graph takes for so many rows."""
    times = pa.array(np.arange(count)).cast(pa.timestamp("us", tz="UTC"))
    rows = pa.record_batch({"n": np.arange(count), "ts": times})
    executor, clock = Executor(graph, rows_per_step=rows_per_step), StandingClock(0)
    began = time.process_time()
    executor.push("s", rows, 0)
    executor.run(clock)
    took = time.process_time() - began
    taken = sum(len(batch) for batches in executor.take(0).values() for batch in batches)
    assert taken == count, f"{taken} of {count} rows came out"
    return took
