"""`millrace functions`: list the functions that queries may call, or show one of them."""

from __future__ import annotations

import argparse

from millrace.api.function_reference import function_names, function_text, functions_page
from millrace.commands.arguments import Commands


def add_to(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("functions")
    command.add_argument("name", nargs="?", help="a function")
    command.add_argument("--markdown", action="store_true", help="the whole reference, as docs/functions.md has it")
    command.set_defaults(carry_out=_functions)


def _functions(options: argparse.Namespace) -> int:
    if options.markdown or options.name:
        print(
            functions_page() if options.markdown else function_text(options.name), end="" if options.markdown else "\n"
        )
        return 0
    for heading, names in function_names().items():
        print(f"{heading}: {' '.join(names)}")
    return 0
