"""A run, as every host offers it: `LocalRun`, `VirtualRun` and `SparkRun` have these methods.

The caller that starts the run uses the first ones; any thread may call `report`, `lag` and `staleness`, for a run
stands still while it is looked at (see control/run_lock.py). The others are called in the run's own thread, between
two turns (see control/live_changes.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from millrace.hosts.answers.run_answers import RunAnswers
from millrace.hosts.report import Report
from millrace.hosts.sinks.kept_rows import KeptRows
from millrace.hosts.why.lag import Lag
from millrace.plan.evolution.start_points import StreamProgress
from millrace.plan.physical.stages import Physical


class HostRun(Protocol):
    """A network at work."""

    memory: dict[str, KeptRows]
    """The last results of queries with a memory sink, by query."""
    answers: RunAnswers
    """The latest answers of update queries."""

    def run(self) -> Report:
        """Work until the run ends in its way, or is stopped."""

    def stop(self) -> None:
        """Let the run end after its present turn; what it has done so far is committed."""

    def report(self) -> Report:
        """The run at this moment; on Spark as of its last committed micro-batch."""

    def lag(self) -> Lag:
        """What holds time back; on Spark as of its last committed micro-batch."""

    def close(self) -> None:
        """Release what the run holds outside this process."""

    # Questions

    def staleness(self, query: str) -> pa.Table:
        """How stale each key of an update query is; on Spark the most stale ones."""

    def refresh(self, query: str) -> None:
        """Poll the streams of a query for rows now, and process them."""

    # Changes, in this order

    def settle(self) -> None:
        """Finish what is under way."""

    def points(self) -> StreamProgress:
        """How far each stream has come."""

    def prepare(self, plan: Physical) -> Callable[[], None]:
        """Open what a changed plan needs, or raise; the call that it returns takes it into use."""

    def shape(self, plan: Physical) -> None:
        """Make the graph at work that of the plan: operators whose names stay keep their state."""

    def refresh_table(self, table: str) -> None:
        """Read a table again, and let it be in force from here on; or raise."""

    def keep(self) -> None:
        """Make the change last, now that it has been made."""
