"""Why a network gives no results yet, asked from outside: of its records on Spark, or of a run that listens.

Rules:
- A run on Spark leaves what it knows in the record of each micro-batch, so it can be asked alive or dead; how old the
  record is, is said.
- Any other run is asked itself, through its control folder.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millrace.errors import RequestError
from millrace.hosts.control.request_folder import ask, listens
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.why.lag import Lag, recorded
from millrace.hosts.why.verdicts import length_text


@dataclass(frozen=True)
class Finding:
    """What holds a network back, and of which micro-batch that is known, if of one."""

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
