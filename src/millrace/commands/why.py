"""`millrace why`: which stream holds results back, since when, and what releases them.

Rules:
- A run on Spark records what it knows in every micro-batch, so the answer needs no run; it says how old the record is.
- Any other run is asked itself, through its control folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millrace.api.terminal.status_line import folded
from millrace.commands.arguments import Commands, add_json, add_run_folder, add_timeout, timeout_seconds
from millrace.errors import RequestError
from millrace.hosts.control.request_folder import ask, listens
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.why.lag import Lag, recorded
from millrace.hosts.why.verdicts import length_text


def add_to(commands: Commands) -> None:
    """Add the command."""
    command = commands.add_parser("why")
    add_run_folder(command)
    add_timeout(command)
    command.add_argument(
        "--result",
        metavar="QUERY",
        help="say which promises released the last results of a query, and when; it needs WITH (released = 'on')",
    )
    add_json(command, "one object")
    command.set_defaults(carry_out=_why)


def _why(options: argparse.Namespace) -> int:
    found = why(options.folder, timeout_seconds(options))
    if options.result is not None:
        lines = found.lag.past(options.result)
        shown = {"releases": found.lag.shown()["releases"][options.result], "verdict": lines}
        print(json.dumps(shown) if options.json else "\n".join(folded(lines, sys.stdout)))
        return 0
    print(json.dumps(found.data()) if options.json else "\n".join(folded(str(found).splitlines(), sys.stdout)))
    return 0


@dataclass(frozen=True)
class Finding:
    """What holds a network back, and the micro-batch whose record says so, if one does."""

    lag: Lag
    batch: int | None = None
    age: int = 0
    """Microseconds since that micro-batch."""

    def __str__(self) -> str:
        if self.batch is None:
            return str(self.lag)
        return f"as of micro-batch {self.batch}, {length_text(self.age)} ago:\n{self.lag}"

    def data(self) -> dict[str, Any]:
        """All of it for programs."""
        record = {} if self.batch is None else {"batch": self.batch, "age_seconds": self.age / 1e6}
        return {**record, **self.lag.shown()}


def why(folder: Path, timeout: float) -> Finding:
    """What holds the network of a checkpoint or control folder back."""
    record = CommitLog(folder / "commits").newest()
    if record is not None:
        lag = recorded(record)
        return Finding(lag, int(record["batch"]), max(0, time.time_ns() // 1_000 - lag.now))
    if not listens(folder):
        raise RequestError(
            f'no run listens in "{folder}", and none on Spark has left a record there',
            hint="Name the --checkpoint folder of a run on Spark, or the --control or --checkpoint folder of a local "
            "run that is at work.",
        )
    (answer,) = ask(folder, "SHOW WAITS", timeout)
    return Finding(Lag.read(answer["lag"]))
