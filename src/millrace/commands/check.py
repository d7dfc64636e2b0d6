"""`millrace check`: check the queries of a file without running them."""

from __future__ import annotations

import argparse

from millrace.commands.arguments import Commands, add_file, add_user_code, read_network
from millrace.connectors.inputs import open_input
from millrace.connectors.native import is_native
from millrace.hosts.sinks.sinks import file_sinks
from millrace.plan.physical.stages import physical
from millrace.secrets import resolved


def add_to(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("check", help="check the queries of a file without running them")
    add_file(command)
    add_user_code(command)
    command.set_defaults(carry_out=_check)


def _check(options: argparse.Namespace) -> int:
    _, network = read_network(options.file, user_code=options.user_code)
    plan = physical(network)
    plan.whole()
    file_sinks(network.queries, relayed=True)
    for stream in network.streams():
        if is_native(stream.connector):
            resolved(stream.connector.options, f'stream "{stream.name}"')
        else:
            open_input(stream, plan.columns_read(stream.name), None, None)
    streams, queries = len(network.streams()), len(network.queries)
    print(f"{options.file}: no fault (streams: {streams}, queries: {queries})")
    return 0
