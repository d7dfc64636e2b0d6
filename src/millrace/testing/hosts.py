"""The hosts behind one call, rows in, rows out, so that one test runs on each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from millrace.api.runs import open_run
from millrace.hosts.host_run import HostRun
from millrace.hosts.report import Ending
from millrace.hosts.run_options import HOSTS, HostName, RunOptions
from millrace.kernel.elements import ARRIVED
from millrace.language import parse_network
from millrace.plan.nodes.endpoints import Connector, Sink, Stream
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.testing.tables import Rows

__all__ = ["HOSTS", "Host", "in_memory"]

Row = dict[str, Any]
Given: TypeAlias = Rows | Sequence[pa.Table] | pa.Table
_SECOND = 1_000_000


@dataclass(frozen=True)
class Host:
    """One of the hosts, which runs queries over given rows.

    `session` returns the Spark session to share; without it every run on Spark opens its own.

    >>> answer = Host("local").run(
    ...     '''
    ...     CREATE STREAM s (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
    ...     CREATE QUERY big AS SELECT v FROM s WHERE v > 1;
    ... ''',
    ...     {"s": pa.table({"v": [1, 2], "ts": pa.array([0, 1], pa.timestamp("us"))})},
    ... )
    >>> answer
    {'big': [{'v': 2}]}
    """

    name: HostName
    session: Callable[[], Any] | None = None

    def run(
        self, sql: str | QueryNetwork, inputs: Mapping[str, Given], *, ending: Ending = "end"
    ) -> dict[str, list[Row]]:
        """The rows of every query over the inputs; each table of a list is one batch."""
        run = self.open(sql, inputs, ending=ending)
        run.run()
        return {query: [row for each in tables for row in each.to_pylist()] for query, tables in run.memory.items()}

    def open(self, sql: str | QueryNetwork, inputs: Mapping[str, Given], *, ending: Ending = "end") -> HostRun:
        """A run over the inputs that is not started yet, for tests that need more than its rows."""
        network = in_memory(parse_network(sql) if isinstance(sql, str) else sql)
        streams = {stream.name: stream for stream in network.streams()}
        feeds = {name: _tables(streams[name], given) for name, given in inputs.items() if name in streams}
        if self.name != "spark" or self.session is None:
            options = RunOptions(self.name, ending)
            if self.name == "spark":
                options = replace(options, master="local[2]")
            return open_run(network, options, feeds=feeds)
        # Imported here: the other hosts do not need Spark.
        from millrace.hosts.spark.host import SparkRun

        return SparkRun(network, RunOptions("spark", ending), feeds=feeds, session=self.session())


def in_memory(network: QueryNetwork) -> QueryNetwork:
    """The network with every result kept in memory, whatever its sinks are.

    >>> net = parse_network("CREATE STREAM s (v INT) LATENT TIMESTAMP FROM iterable; SELECT v FROM s;")
    >>> in_memory(net).queries[0].sink.connector.format
    'memory'
    """
    return QueryNetwork(tuple(replace(each, sink=Sink(each.name, Connector("memory"))) for each in network.queries))


def _tables(stream: Stream, given: Given) -> list[pa.Table]:
    """The input in batches; rows without any time get arrivals, one per second."""
    if isinstance(given, Rows):
        given = given.arriving()
    tables = [given] if isinstance(given, pa.Table) else list(given)
    if stream.time.kind == "external" or stream.replay is not None:
        return tables
    arrived, counted = [], 0
    for each in tables:
        if ARRIVED not in each.schema.names:
            each = each.append_column(ARRIVED, _seconds(counted, each.num_rows))
            counted += each.num_rows
        arrived.append(each)
    return arrived


def _seconds(first: int, count: int) -> pa.Array:
    return pa.array([number * _SECOND for number in range(first, first + count)], pa.int64())
