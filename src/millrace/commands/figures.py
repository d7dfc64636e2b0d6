"""`millrace figures`: reproduce figures of the papers, and check their claims."""

from __future__ import annotations

import argparse
from pathlib import Path

from millrace.commands.arguments import Commands, add_json


def add_to(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("figures")
    command.add_argument("name", nargs="?", metavar="NAME", help='a figure, or "all"; without it they are listed')
    command.add_argument("--output", type=Path, default=Path("figures-output"), metavar="DIR", help="where files go")
    command.add_argument("--redraw", action="store_true", help="draw the picture again from NAME.csv in DIR")
    add_json(command)
    command.set_defaults(carry_out=_figures)


def _figures(options: argparse.Namespace) -> int:
    # Imported here: no other command needs the experiments.
    from millrace.experiments.figures.command import list_figures, make_figures, redraw_figures

    if options.name is None:
        return list_figures(as_json=options.json)
    if options.redraw:
        return redraw_figures(options.name, options.output)
    return make_figures(options.name, options.output, as_json=options.json)
