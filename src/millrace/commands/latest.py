"""The command `millrace latest`: arguments in, one call out."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TypeAlias

from millrace.api.durations import length
from millrace.commands.latest_answers import Found, follow, latest
from millrace.hosts.control.replies import rows_text
from millrace.language import parse_interval

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def latest_arguments(commands: Commands) -> None:
    """Add the command's arguments to those of the command line."""
    asked = commands.add_parser("latest", help="show the latest answer of each key of an update query")
    asked.add_argument(
        "folder", type=Path, metavar="DIR", help="the --checkpoint folder of a run, or --control of one at work"
    )
    asked.add_argument("query", metavar="QUERY")
    asked.add_argument(
        "--key", nargs="+", metavar="VALUE", help="one key: its values in order, or column=value; exit code 1 without"
    )
    asked.add_argument("--follow", action="store_true", help="go on with what changes, until the run ends")
    asked.add_argument("--refresh", action="store_true", help="first ask the streams that are asked for rows")
    asked.add_argument("--staleness", action="store_true", help="how stale each key is, in microseconds")
    asked.add_argument("--timeout", default="10 seconds", metavar="INTERVAL", help="how long to wait for the answer")
    asked.add_argument("--json", action="store_true", help="an object a line")
    asked.set_defaults(carry_out=_latest)


def _latest(options: argparse.Namespace) -> int:
    timeout = parse_interval(length("--timeout", options.timeout)) / 1e6
    if options.follow:
        headed: list[str] = []
        follow(options.folder, options.query, lambda found: _show(found, options, headed), timeout)
        return 0
    found = latest(
        options.folder, options.query, options.key, timeout, refresh=options.refresh, stale=options.staleness
    )
    _show(found, options, [])
    return 0 if found.rows or options.key is None else 1


def _show(found: Found, options: argparse.Namespace, headed: list[str]) -> None:
    """Rows as objects, or tab-separated under a head that is written once."""
    if options.json:
        lines = [json.dumps(row) for row in found.data()]
    else:
        lines = rows_text(found.columns, found.rows).split("\n")[1 if headed else 0 :]
        headed += found.columns
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()
