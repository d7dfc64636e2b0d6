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

from millrace import __version__
from millrace.commands import check, control, demo, doctor, explain, figures, latest, run, why
from millrace.errors import MillraceError

_COMMANDS = (run, control, why, latest, check, explain, doctor, demo, figures)
"""In the order of `millrace --help`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command; the exit code."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A character that the terminal cannot show must not end a run.
        sys.stdout.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    # Libraries that log an error which they also raise would print it on the terminal; we print it once.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        return int(options.carry_out(options))
    except MillraceError as error:
        print(f"millrace: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1
    except Exception as error:
        if os.environ.get("MILLRACE_DEBUG"):
            raise
        print(f"millrace: internal error: {type(error).__name__}: {error}", file=sys.stderr)
        print("hint: Set MILLRACE_DEBUG=1 to see the traceback, and report it.", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="millrace", description="Continuous queries over streams, on Spark.")
    parser.add_argument("--version", action="version", version=f"millrace {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for each in _COMMANDS:
        each.add_to(commands)
    return parser
