"""What several commands share: arguments, intervals on the command line, and the file with the queries."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TypeAlias

from millrace.api.durations import length
from millrace.errors import RequestError
from millrace.language import check_user_code, parse_interval, parse_network
from millrace.plan.nodes.query_network import QueryNetwork

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The commands of the parser; each command adds itself."""


def add_file(command: argparse.ArgumentParser) -> None:
    """Add the file with the queries."""
    command.add_argument("file", type=Path, metavar="FILE", help="a file of SQL statements")


def add_json(command: argparse.ArgumentParser, help: str = "one JSON object per line") -> None:
    """Add the choice of JSON."""
    command.add_argument("--json", action="store_true", help=help)


def add_timeout(command: argparse.ArgumentParser) -> None:
    """Add how long a command waits for the run."""
    command.add_argument("--timeout", default="10 seconds", metavar="INTERVAL", help="how long to wait for the answer")


def micros(name: str, given: str) -> int:
    """An interval given for an option, in microseconds.

    >>> micros("--timeout", "10 seconds")
    10000000
    """
    return parse_interval(length(name, given))


def timeout_seconds(options: argparse.Namespace) -> float:
    """How long a command waits for the run, in seconds."""
    return micros("--timeout", options.timeout) / 1e6


def add_user_code(command: argparse.ArgumentParser) -> None:
    """Add the choice to load no code that SQL names."""
    command.add_argument(
        "--no-user-code",
        dest="user_code",
        action="store_false",
        help="refuse SQL that names Python code or classes to be loaded",
    )


def read_network(file: Path, *, user_code: bool = True) -> tuple[str, QueryNetwork]:
    """The text of a file, and the network that it describes; without `user_code` it may not name code to be loaded."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise RequestError(
            f'there is no file "{file}"', hint="Name a file with CREATE STREAM and SELECT statements."
        ) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise RequestError(
            f'the file "{file}" is not UTF-8: line {line} holds the byte 0x{error.object[error.start]:02x}',
            hint="Save it as UTF-8, whatever the language of this machine.",
        ) from None
    except OSError as error:
        raise RequestError(
            f'the file "{file}" cannot be read: {error.strerror}', hint="Name a text file with queries."
        ) from error
    check_user_code(text, allowed=user_code)
    if user_code:
        _find_modules_beside(file)
    network = parse_network(text)
    if not network.queries:
        raise RequestError(f'"{file}" holds no query', hint="Add a SELECT or CREATE QUERY statement.")
    return text, network


def _find_modules_beside(file: Path) -> None:
    """Let Python code that a file names be imported from the file's folder, as Python does for a script."""
    folder = str(file.resolve().parent)
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
