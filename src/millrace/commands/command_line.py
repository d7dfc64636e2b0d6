"""The command line: builds the parser from the commands and carries one out.

Exit code 0: done; 1: the run failed; 2: the request was wrong. Messages go to standard error, without a traceback.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

from millrace import __version__
from millrace.errors import MillraceError, RequestError, RunError, did_you_mean, listed, machine_fault, output_fault

_COMMANDS = {
    "new": ("new", "look at a file of data, and write a first script for it"),
    "run": ("run", "run the queries of a file"),
    "serve": ("run", "run the queries of a file, and answer over HTTP on this machine"),
    "control": ("control", "change the queries of a run, or list them"),
    "why": ("why", "say which stream holds results back, since when, and what releases them"),
    "latest": ("latest", "show the latest answer of each key of an update query"),
    "check": ("check", "check the queries of a file without running them"),
    "explain": ("explain", "show how queries will be run"),
    "functions": ("functions", "list the functions of SQL, or show one of them"),
    "doctor": ("doctor", "check this machine and say what to install"),
    "demo": ("demo", "a link that falls silent, on Millrace and on stock Spark"),
    "figures": ("figures", "reproduce a figure of the papers, and check its claims"),
}
"""The module and the summary of each command, in the order of `millrace --help`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command; the exit code."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stdout is None:
        print("millrace: standard output is closed\nhint: Redirect it to a file, or to /dev/null.", file=sys.stderr)
        return RequestError.exit_code
    if isinstance(sys.stdout, TextIOWrapper):
        # A character that the terminal cannot show must not end a run.
        sys.stdout.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = _parser(arguments[0] if arguments else "")
    if not arguments:
        parser.print_help()
        return 0
    if arguments[0] not in _COMMANDS and not arguments[0].startswith("-"):
        hint = f"{did_you_mean(arguments[0], _COMMANDS)}The commands are {listed(_COMMANDS)}."
        return _told(RequestError(f'there is no command "{arguments[0]}"', hint=hint), argparse.Namespace())
    options = parser.parse_args(arguments)
    # Libraries that log an error which they also raise would print it on the terminal; we print it once.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        code = int(options.carry_out(options))
        sys.stdout.flush()
        return code
    except MillraceError as error:
        return _told(error, options)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return _told(output_fault(error) if error.filename is None else machine_fault(error), options)
    except Exception as error:
        if os.environ.get("MILLRACE_DEBUG"):
            raise
        hint = "Set MILLRACE_DEBUG=1 to see the traceback, and report it."
        return _told(RunError(f"internal error: {type(error).__name__}: {error}", hint=hint), options)


def _told(error: MillraceError, options: argparse.Namespace) -> int:
    """The exit code of an error, which has been told."""
    if getattr(options, "log", "text") == "json":
        # Imported here: other commands need not load it.
        from millrace.api.run_log import error_line

        sys.stderr.write(error_line(error))
    else:
        print(f"millrace: {error}", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        # Python would try once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return error.exit_code


def _parser(chosen: str) -> argparse.ArgumentParser:
    """The parser of one command, or of none: then with a line for each. Other commands are not even loaded."""
    parser = argparse.ArgumentParser(prog="millrace", description="Continuous queries over streams, on Spark.")
    parser.add_argument("--version", action="version", version=f"millrace {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    if chosen in _COMMANDS:
        import_module(f"millrace.commands.{_COMMANDS[chosen][0]}").add_to(commands)
        return parser
    for name, (_, summary) in _COMMANDS.items():
        commands.add_parser(name, help=summary)
    return parser
