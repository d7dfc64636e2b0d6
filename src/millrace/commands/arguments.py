"""What several commands share: arguments, intervals on the command line, and the file with the queries."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from millrace.api.sql_text.durations import length
from millrace.errors import MillraceError, RequestError
from millrace.language import bind_script, check_user_code, filled, parse_interval, parse_script, place_in
from millrace.plan.evolution.changes import Shown
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


def add_run_folder(command: argparse.ArgumentParser) -> None:
    """Add the folder by which a run is found."""
    command.add_argument(
        "folder",
        type=Path,
        metavar="DIR",
        help="the --checkpoint folder of a run, or the --control folder of one at work",
    )


def add_variables(command: argparse.ArgumentParser) -> None:
    """Add the values of variables."""
    command.add_argument(
        "--var",
        dest="variables",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the value of ${NAME} in the file; may be repeated",
    )


@dataclass(frozen=True)
class QueryFile:
    """A file: its text with the values of its variables, its network, and the answers to SHOW and the like."""

    text: str
    network: QueryNetwork
    shown: tuple[Shown, ...]

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Say of an error where in the text stands what it is about."""
        try:
            yield
        except MillraceError as error:
            error.place = error.place or place_in(self.text, error.fact)
            raise


def read_network(options: argparse.Namespace) -> QueryFile:
    """The file that a command is given; without `user_code` it may not name code to be loaded."""
    file: Path = options.file
    text = filled(_text_of(file), named_values("--var", options.variables))
    check_user_code(text, allowed=options.user_code)
    if options.user_code:
        _find_modules_beside(file)
    network, shown = bind_script(parse_script(text))
    if not network.queries and not shown:
        raise RequestError(f'"{file}" holds no query', hint="Add a SELECT or CREATE QUERY statement.")
    return QueryFile(text, network, shown)


def named_values(option: str, given: Sequence[str]) -> dict[str, str]:
    """Values by name.

    >>> named_values("--var", ["day=2024-01-01"])
    {'day': '2024-01-01'}
    """
    for each in given:
        if "=" not in each:
            raise RequestError(f'"{each}" has no value', hint=f"Write {option} NAME=VALUE.")
    return dict(each.split("=", 1) for each in given)


_DATA = re.compile(r"\.(csv|tsv|json|jsonl|ndjson|parquet)(\.(gz|bz2|zip))?$")


def _text_of(file: Path) -> str:
    if _DATA.search(file.name) and file.exists():
        raise RequestError(
            f'"{file}" is a file of data, and none of queries',
            hint=f"Let millrace write a first script for it: millrace new {file}",
        )
    try:
        return file.read_text(encoding="utf-8-sig")
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


def _find_modules_beside(file: Path) -> None:
    """Let Python code that a file names be imported from the file's folder, as Python does for a script."""
    folder = str(file.resolve().parent)
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
