"""`millrace control`: change the queries of a run, or list them."""

from __future__ import annotations

import argparse
import json
import sys
from io import TextIOWrapper
from pathlib import Path

from millrace.commands.arguments import Commands, add_json, add_timeout, timeout_seconds
from millrace.hosts.control.replies import reply_text
from millrace.hosts.control.request_folder import ask


def add_to(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("control")
    command.add_argument("folder", type=Path, metavar="DIR", help="the --control or --checkpoint folder of the run")
    command.add_argument(
        "statement",
        metavar="STATEMENT",
        help="ADD, DROP, ALTER or CREATE OR REPLACE QUERY, REFRESH TABLE, SHOW, DESCRIBE or EXPLAIN; - reads stdin",
    )
    add_timeout(command)
    add_json(command)
    command.set_defaults(carry_out=_control)


def _control(options: argparse.Namespace) -> int:
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig")
    text = sys.stdin.read() if options.statement == "-" else options.statement
    for answer in ask(options.folder, text, timeout_seconds(options)):
        print(json.dumps(answer) if options.json else reply_text(answer))
    return 0
