"""`millrace demo`: a silent source, on Millrace and on stock Spark."""

from __future__ import annotations

import argparse
from pathlib import Path

from millrace.commands.arguments import Commands


def add_to(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("demo", help="a silent source, on Millrace and on stock Spark")
    command.add_argument(
        "--output", type=Path, default=Path("demo-output"), metavar="DIR", help="where the picture goes"
    )
    command.set_defaults(carry_out=_demo)


def _demo(options: argparse.Namespace) -> int:
    # Imported here: the demo needs Spark.
    from millrace.experiments.demo import demo

    return demo(options.output)
