"""A bench for the kernel: a test pushes rows and moves the clock, and sees progress step by step.

Rules:
- The clock moves only by a call, and nothing else happens than what a call causes.
- A stream is silent unless rows were pushed at this very time; `silent` limits which streams may count as silent.
- A moving clock stops wherever an enabling timestamp becomes possible, as a live host would.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import pyarrow as pa

from millrace.connectors.fed_rows import as_rows
from millrace.connectors.stream_input import read_schema
from millrace.errors import RequestError, listed, unknown_query
from millrace.hosts.tables.run_tables import RunTables
from millrace.kernel.clock import StandingClock
from millrace.kernel.elements import without_reserved
from millrace.kernel.graph.executor import Executor
from millrace.kernel.graph.snapshot import Place
from millrace.kernel.metrics import Metrics
from millrace.language import parse_interval, parse_network
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import physical
from millrace.testing.tables import Rows, table

Row = dict[str, Any]


class Bench:
    """A network's query graph, with rows and time under the control of a test; `tables` are rows of tables, by name.

    >>> bench = Bench('''
    ...     CREATE STREAM a (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
    ...       ETS ON DEMAND SKEW INTERVAL 1 SECOND FROM iterable;
    ...     CREATE QUERY q AS SELECT count(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts];
    ... ''')
    >>> bench.push("a", "v | ts \\n 1 | 00:00:08")
    >>> bench.advance_time("2 seconds")
    >>> bench.results("q")
    []
    >>> bench.advance_time("1 second")
    >>> [row["n"] for row in bench.results("q")]
    [1]
    """

    def __init__(
        self,
        network: str | QueryNetwork,
        *,
        start: int = 0,
        rows_per_step: int | None = None,
        tables: Mapping[str, Any] | None = None,
    ) -> None:
        self.network = parse_network(network) if isinstance(network, str) else network
        self.clock = StandingClock(start)
        self.start = start
        plan = physical(self.network)
        self.executor = Executor(plan.whole(), rows_per_step=rows_per_step)
        self._schemas = {
            stream.name: read_schema(stream, plan.columns_read(stream.name)) for stream in self.network.streams()
        }
        self._streams = {stream.name: stream for stream in self.network.streams()}
        self.tables = RunTables(None, tables, {}, lambda text: None)
        self.tables.open(self.network, start)
        self.tables.equip(self.executor.graph, self.executor.ingress.values())
        self._may_be_silent = set(self._streams)
        self._pushed: set[str] = set()
        self._segments: dict[Place, pa.Table] = {}
        self._results: dict[str, list[Row]] = {query.name: [] for query in self.network.queries}

    @property
    def now(self) -> int:
        """Where the clock stands, in microseconds."""
        return self.clock.time

    def push(self, stream: str, rows: str | Rows | pa.Table | list[Row]) -> None:
        """Push rows at this time; a table with arrivals moves the clock to each of them."""
        given = table(rows, self._shown(stream)) if isinstance(rows, str) else rows
        if not isinstance(given, Rows) or given.arrivals is None:
            self._push(stream, given.table if isinstance(given, Rows) else given)
            return
        for arrival, run in groupby(enumerate(given.arrivals), key=lambda each: each[1]):
            numbers = [number for number, _ in run]
            self.advance_time(self.start + arrival)
            self._push(stream, given.table.slice(numbers[0], len(numbers)))

    def advance_time(self, by: str | int) -> None:
        """Move the clock: by an interval such as "2 seconds", or to a time in microseconds."""
        target = self.clock.time + parse_interval(by) if isinstance(by, str) else by
        if target < self.clock.time:
            raise RequestError("the clock does not go back", hint=f"It stands at {self.clock.time} microseconds.")
        if target > self.clock.time:
            self._pushed.clear()
        while (stop := self._next_stop(target)) is not None:
            self.clock.time = stop
            self._work()
        self.clock.time = target
        self._work()

    def silent(self, *streams: str) -> None:
        """From now on only these streams may count as silent; without names, none."""
        for name in streams:
            self._declared(name)
        self._may_be_silent = set(streams)

    def end(self, *streams: str) -> None:
        """End these streams; without names, all of them."""
        for name in streams or self._streams:
            self._declared(name)
            self.executor.edges.end(name)
        self._work()

    def results(self, query: str) -> list[Row]:
        """The rows of a query since the last call."""
        if query not in self._results:
            raise unknown_query(query, self._results)
        rows, self._results[query] = self._results[query], []
        return rows

    def metrics(self) -> Metrics:
        """The kernel's counts."""
        return self.executor.metrics()

    def restart(self) -> None:
        """Continue in a new graph, from the saved state alone."""
        saved = self.executor.save()
        self._segments.update(saved.added)
        for place in saved.removed:
            del self._segments[place]
        self.executor = Executor(physical(self.network).whole(), rows_per_step=self.executor.step_size.rows)
        self.executor.restore(saved.control, self._segments)
        self.tables.equip(self.executor.graph, self.executor.ingress.values())

    def refresh(self, table: str) -> None:
        """Read a table again; rows after all that were pushed so far meet it."""
        points = {name: edge.save() for name, edge in self.executor.ingress.items()}
        if self.tables.put(self.tables.read(table, self.clock.time), self.network, points):
            self.tables.equip(self.executor.graph, self.executor.ingress.values())

    def _push(self, stream: str, rows: Any) -> None:
        self._declared(stream)
        self._pushed.add(stream)
        self.executor.push(stream, as_rows(rows, self._schemas[stream], stream), self.clock.time)
        self._work()

    def _work(self) -> None:
        self.executor.run(self.clock, self._silent())
        for name, batches in self.executor.take(self.clock.time).items():
            for batch in batches:
                self._results[name] += without_reserved(batch.rows).to_pylist()

    def _silent(self) -> set[str]:
        return self._may_be_silent - self._pushed

    def _next_stop(self, target: int) -> int | None:
        """The next time up to the target at which an ETS would release something."""
        wake_at = self.executor.wake_at(self._silent())
        return wake_at if wake_at is not None and self.clock.time < wake_at <= target else None

    def _shown(self, stream: str) -> pa.Schema:
        """The columns a text table shows: all that come from outside."""
        declared = self._declared(stream)
        return read_schema(declared, list(declared.schema.names))

    def _declared(self, stream: str) -> Stream:
        streams: Mapping[str, Stream] = self._streams
        if stream not in streams:
            raise RequestError(f'no query reads a stream "{stream}"', hint=f"The streams are {listed(streams)}.")
        return streams[stream]
