"""`millrace new`: look at files or a topic of Kafka, and write a first script for them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from millrace.api.terminal.status_line import folded
from millrace.commands.arguments import Commands, named_values
from millrace.errors import RequestError
from millrace.secrets import HOW_TO_REFER, plain_secret
from millrace.survey.findings_text import findings_text
from millrace.survey.proposal import proposal
from millrace.survey.script_text import script_text

_BELOW_FINDINGS = 13
"""Where the text of a finding begins."""


def add_to(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("new")
    command.add_argument(
        "path",
        metavar="PATH",
        help="a csv, json or parquet file, a folder of such files, a pattern, or kafka://host:9092/topic",
    )
    command.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the stream of a topic, such as security_protocol=SSL; may be given several times",
    )
    command.add_argument("--output", type=Path, metavar="FILE", help="the script (default: NAME.sql in this folder)")
    command.set_defaults(carry_out=_new)


def _new(options: argparse.Namespace) -> int:
    found = proposal(options.path, _stream_options(options.option))
    output: Path = options.output or Path(f"{found.name}.sql")
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(script_text(found, str(output)))
    except FileExistsError:
        raise RequestError(
            f'"{output}" is there already', hint="Name another file with --output: nothing is overwritten."
        ) from None
    except OSError as error:
        raise RequestError(
            f'"{output}" cannot be written: {error.strerror}', hint="Name another file with --output."
        ) from None
    run_it = f"wrote {output}; run it: millrace run {output} --on local --until-end"
    print("\n".join([*folded(findings_text(found), sys.stdout, _BELOW_FINDINGS), *folded([run_it], sys.stdout, 2)]))
    return 0


def _stream_options(given: Sequence[str]) -> dict[str, str]:
    options = {name.lower(): value for name, value in named_values("--option", given).items()}
    for name, value in options.items():
        if fact := plain_secret(name, value):
            raise RequestError(fact, hint=HOW_TO_REFER)
    return options
