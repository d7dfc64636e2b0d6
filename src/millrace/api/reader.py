"""The answers of a run: the latest of each key, their changes, and how stale they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import pyarrow as pa

from millrace.hosts.answers.answer_table import AnswerTable
from millrace.hosts.answers.subscriptions import Subscription
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.control.read_requests import query_table
from millrace.hosts.host_run import HostRun
from millrace.hosts.report import Report


class Reader:
    """Reads the answers of a run from any thread, during the run and after it."""

    def __init__(self, run: HostRun, changes: LiveChanges) -> None:
        self._run = run
        self._changes = changes
        self._ended = Event()
        self.error: BaseException | None = None
        """What made the run fail."""

    @contextmanager
    def attending(self) -> Iterator[None]:
        """Run the body as the work of the run: subscriptions then end with the error that made it fail."""
        try:
            yield
        except BaseException as error:
            self.error = error
            raise
        finally:
            self._ended.set()

    def _failure(self) -> BaseException | None:
        """What made the run fail; None if it did not, or still goes on and only a query was dropped."""
        if not self._run.answers.closed:
            return None
        self._ended.wait()
        return self.error

    @property
    def over(self) -> bool:
        """True if the run has ended."""
        return self._changes.over

    def queries(self) -> pa.Table:
        """The queries: their names, keys, columns, and how many keys have an answer."""
        return query_table(self._run.answers, self._changes.network.queries)

    def of(self, query: str, *, refresh: bool = False) -> AnswerTable:
        """The latest answers of an update query; `refresh` first asks its polled streams for rows."""
        latest = self._run.answers.of(query)
        if refresh and not self.over:
            self._changes.do(lambda run: run.refresh(query))
        return latest

    def changes(self, query: str, *, present: bool = True) -> Subscription:
        """The changes of the answers as they come; at the end raises what made the run fail."""
        return Subscription(self.of(query), present=present, failure=self._failure)

    def report(self) -> Report:
        """The run at one moment, between two of its turns; on Spark as of its last committed micro-batch."""
        return self._changes.look(self._run.report)

    def staleness(self, query: str) -> pa.Table:
        """How stale each key is, by the run's own clock."""
        self.of(query)
        if self.over:
            return self._run.staleness(query)
        return self._changes.do(lambda run: run.staleness(query))
