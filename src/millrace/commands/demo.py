"""`millrace demo`: a silent source, on Millrace and on stock Spark."""

from __future__ import annotations

import argparse
from pathlib import Path

from millrace.commands.arguments import Commands


def add_to(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("demo")
    command.add_argument(
        "--output", type=Path, default=Path("demo-output"), metavar="DIR", help="where the picture goes"
    )
    command.add_argument(
        "--on",
        choices=("spark", "virtual"),
        default="spark",
        help="spark: beside stock Spark, in real time (default); virtual: in virtual time, without Java",
    )
    command.set_defaults(carry_out=_demo)


def _demo(options: argparse.Namespace) -> int:
    # Imported here: the experiments may be deleted whole.
    from millrace.experiments.demo import demo, virtual_demo

    return virtual_demo(options.output) if options.on == "virtual" else demo(options.output)
