"""A run as a log for programs: one JSON object per line on standard error, in the place of the lines for people.

Rules:
- Every object has `time` (UTC), `level` (info, warning or error) and `event`; what else it has depends on the event.
- Rows that were not processed are told as they grow: how many more, and how many in all.
- Results stay on standard output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from millrace.api.console import Console, summary_data
from millrace.api.terminal.status_line import say
from millrace.errors import MillraceError, without_secrets
from millrace.hosts.control.replies import Reply
from millrace.hosts.report import Report
from millrace.plan.evolution.evolution import Evolution
from millrace.plan.explain.labels import contract_text
from millrace.plan.nodes.query_network import QueryNetwork

_TOLD = ("late", "quarantined", "shed", "superseded")
"""The fates of rows that have events of their own."""


def log_line(event: str, level: str = "info", **fields: Any) -> str:
    """One line of a log.

    >>> list(json.loads(log_line("warning", "warning", text="a")))
    ['time', 'level', 'event', 'text']
    """
    time = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return without_secrets(json.dumps({"time": time, "level": level, "event": event, **fields}, default=str)) + "\n"


def error_line(error: MillraceError) -> str:
    """An error as a line of a log."""
    place = {} if error.place is None else {"place": str(error.place)}
    return log_line("error", "error", error=error.fact, hint=error.hint, **place)


class RunLog(Console):
    """Shows the results of one run as a console does, and tells all else as a log."""

    def __init__(self, *, as_json: bool = False, out: TextIO | None = None, err: TextIO | None = None) -> None:
        super().__init__(as_json=as_json, out=out, err=err)
        self._before: Report | None = None

    def event(self, event: str, level: str = "info", **fields: Any) -> None:
        """Write one line."""
        say(self.err, log_line(event, level, **fields))

    def started(self, network: QueryNetwork, **fields: Any) -> None:
        """Tell which queries begin, and what is known of the streams that they read."""
        self.event("start", queries=[query.name for query in network.queries], **fields)
        for stream in network.streams():
            self.event(
                "source", stream=stream.name, format=stream.connector.format, contract=contract_text(stream.time)
            )

    def progress(self, report: Report) -> None:
        """Tell what a commit has brought."""
        before = self._before
        if before is None or report.steps != before.steps:
            known = {} if before is None else before.results
            results = {name: more for name, rows in report.results.items() if (more := rows - known.get(name, 0))}
            received = report.received - (report.earlier if before is None else before.received)
            self.event("commit", step=report.steps, rows=received, results=results, state_bytes=report.state_bytes)
        self._tell_fates(report)
        self._before = report

    def _tell_fates(self, report: Report) -> None:
        for stream, source in report.sources.items():
            earlier = None if self._before is None else self._before.sources.get(stream)
            for fate in _TOLD:
                total, known = getattr(source, fate), 0 if earlier is None else getattr(earlier, fate)
                if total > known:
                    self.event(fate, "warning", stream=stream, rows=total - known, total=total)

    def serving(self, url: str, page: str) -> None:
        """Tell where the run answers over HTTP. The address of its page holds a token, which no log shall have."""
        self.event("serving", url=url)

    def phase(self, text: str) -> None:
        """Nothing: no event has come."""

    def stopping(self, live: bool) -> str:
        """The line that tells that a run is being stopped."""
        return log_line("stopping")

    def changed(self, request: str, replies: Sequence[Reply]) -> None:
        """Tell what became of a request to change the network."""
        for reply in replies:
            if reply.did in ("added", "dropped", "altered", "refreshed"):
                self.event(
                    "change", did=reply.did, name=reply.started.query, since=reply.started.since, request=request
                )

    def warning(self, text: str) -> None:
        """Tell what is wrong and stops nothing."""
        self.event("warning", "warning", text=text)

    def evolution(self, evolution: Evolution | None, *, would: bool = False) -> None:
        """Tell what becomes of the queries of a checkpoint; a dry run is answered on standard output."""
        if would or evolution is None:
            super().evolution(evolution, would=would)
            return
        self.event("evolution", **evolution.data())

    def summary(self, report: Report) -> None:
        """Tell how the run has ended."""
        self._tell_fates(report)
        if self.as_json:
            super().summary(report)
        self.event("end", **summary_data(report))


def console(log: str, *, as_json: bool) -> Console:
    """What shows a run: lines for people, or a log."""
    return RunLog(as_json=as_json, err=sys.stderr) if log == "json" else Console(as_json=as_json)
