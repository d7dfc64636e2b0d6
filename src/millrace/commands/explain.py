"""`millrace explain`: show how the queries of a file will be run."""

from __future__ import annotations

import argparse

from millrace.api.expectations import expected
from millrace.commands.arguments import Commands, add_file, add_user_code, add_variables, read_network
from millrace.errors import RequestError
from millrace.plan.explain.picture_formats import FORMATS, rendered
from millrace.plan.explain.plan_text import explain
from millrace.plan.explain.query_picture import query_picture
from millrace.plan.physical.stages import physical


def add_to(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("explain")
    add_file(command)
    add_user_code(command)
    add_variables(command)
    command.add_argument(
        "--rate",
        action="append",
        default=[],
        metavar="STREAM=ROWS",
        help="rows per second of a stream, to estimate what in-order joins cost; may be repeated",
    )
    command.add_argument("--pair-cost", metavar="INTERVAL", help="the time to compare two rows, such as 0.5ms")
    command.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help="text (default), or the query graph as json, dot (for Graphviz) or svg",
    )
    command.set_defaults(carry_out=_explain)


def _explain(options: argparse.Namespace) -> int:
    plan = physical(read_network(options).network)
    if options.format != "text":
        if options.rate or options.pair_cost:
            raise RequestError("only a text has costs", hint="Leave out --rate and --pair-cost, or use --format text.")
        print(rendered(query_picture(plan), options.format))
        return 0
    rates = dict(each.partition("=")[::2] for each in options.rate)
    print(explain(plan, expected(rates, options.pair_cost, plan.network)))
    return 0
