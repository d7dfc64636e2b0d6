"""The command line: builds the parser from the commands and carries one out.

Exit code 0: done; 1: the run failed; 2: the request was wrong. Messages go to standard error, without a traceback.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

from millrace import __version__
from millrace.api.console import output_fault
from millrace.commands import check, control, demo, doctor, explain, figures, functions, latest, run, why
from millrace.errors import MillraceError, RequestError, machine_fault

_COMMANDS = (run, control, why, latest, check, explain, functions, doctor, demo, figures)
"""In the order of `millrace --help`."""


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
    options = _parser().parse_args(arguments)
    # Libraries that log an error which they also raise would print it on the terminal; we print it once.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        code = int(options.carry_out(options))
        sys.stdout.flush()
        return code
    except MillraceError as error:
        return _told(error)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return _told(output_fault(error) if error.filename is None else machine_fault(error))
    except Exception as error:
        if os.environ.get("MILLRACE_DEBUG"):
            raise
        print(f"millrace: internal error: {type(error).__name__}: {error}", file=sys.stderr)
        print("hint: Set MILLRACE_DEBUG=1 to see the traceback, and report it.", file=sys.stderr)
        return 1


def _told(error: MillraceError) -> int:
    """The exit code of an error, which has been told."""
    print(f"millrace: {error}", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        # Python would try once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="millrace", description="Continuous queries over streams, on Spark.")
    parser.add_argument("--version", action="version", version=f"millrace {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for each in _COMMANDS:
        each.add_to(commands)
    return parser
