"""`millrace check`: check the queries of a file without running them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from millrace.api.console import Console
from millrace.commands.arguments import Commands, add_file, add_user_code, add_variables, read_network
from millrace.connectors.files.file_options import FORMATS
from millrace.connectors.inputs import open_input
from millrace.connectors.native import PLAIN_SINKS, SOURCES, is_native, is_native_sink
from millrace.connectors.sink_index import writer_formats
from millrace.errors import RequestError, did_you_mean, listed
from millrace.hosts.sinks.kept_rows import kept_rows
from millrace.hosts.sinks.sinks import file_sinks
from millrace.hosts.sinks.writers import check_stores
from millrace.hosts.tables.table_reader import read_table
from millrace.plan.nodes.endpoints import Stream
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.physical.stages import physical
from millrace.secrets import resolved

_OF_SPARK = ("text", "orc", "avro", "rate", "socket", "kafka", "delta", "console", "noop")


def add_to(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("check")
    add_file(command)
    add_user_code(command)
    add_variables(command)
    command.set_defaults(carry_out=_check)


def _check(options: argparse.Namespace) -> int:
    read = read_network(options)
    Console().shown(read.shown)
    network = read.network
    with read.placing():
        left = find_faults(network)
    for each in left:
        print(each)
    streams, queries = len(network.streams()), len(network.queries)
    print(f"{options.file}: no fault (streams: {streams}, queries: {queries})")
    return 0


def find_faults(network: QueryNetwork) -> list[str]:
    """Raise what a run would refuse, after a look at the first rows; what only Spark can tell is listed."""
    plan = physical(network)
    plan.whole()
    file_sinks(network.queries, relayed=True)
    check_stores(network.queries)
    left = [*filter(None, map(_check_sink, network.queries))]
    left += filter(None, (_check_stream(each, plan.columns_read(each.name)) for each in network.streams()))
    for table in network.tables():
        read_table(table, {})
    return list(dict.fromkeys(left))


def _check_stream(stream: Stream, columns: list[str]) -> str | None:
    """Open a stream and read its first rows; or say that only Spark can."""
    if not is_native(stream.connector):
        source = open_input(stream, columns, None, None)
        if stream.connector.format in FORMATS:
            source.read()
        return None
    resolved(stream.connector.options, f'stream "{stream.name}"')
    _refuse_misspelt(f'stream "{stream.name}" comes from', stream.connector.format, SOURCES)
    return f'stream "{stream.name}" comes from "{stream.connector.format}", which Spark reads: it was not opened'


def _check_sink(query: Query) -> str | None:
    sink = query.sink
    if sink.connector.format in PLAIN_SINKS:
        kept_rows(sink)
    if not is_native_sink(sink):
        return None
    _refuse_misspelt(f'sink "{sink.name}" goes to', sink.connector.format, (*FORMATS, *writer_formats(), *PLAIN_SINKS))
    return f'sink "{sink.name}" goes to "{sink.connector.format}", which Spark writes: it was not opened'


def _refuse_misspelt(what: str, format: str, known: Sequence[str]) -> None:
    """Refuse a format that looks like one of Millrace's; only Spark knows whether another one exists."""
    if format == "jdbc":
        hint = (
            "PostgreSQL is FROM postgres for a table and TO postgres for a sink; others are a class of yours: python."
        )
        raise RequestError(f'{what} "jdbc", which Spark takes for tables and not for streams', hint=hint)
    meant = did_you_mean(format, known, near=0.66)
    if meant and format not in _OF_SPARK:
        raise RequestError(f'{what} "{format}", which is unknown', hint=f"{meant}The formats are {listed(known)}.")
