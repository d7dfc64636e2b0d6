"""A run as threads beside it see it: its answers, what it says of itself, and the changes that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from threading import Event
from typing import Any

import pyarrow as pa

from millrace.dashboard.frames import Observation
from millrace.dashboard.plan_difference import difference
from millrace.errors import MillraceError, unknown_query
from millrace.hosts.answers.answer_table import AnswerTable
from millrace.hosts.answers.subscriptions import Subscription
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.control.read_requests import query_table
from millrace.hosts.control.replies import Reply
from millrace.hosts.host_run import HostRun
from millrace.hosts.report import Report
from millrace.hosts.sinks.kept_rows import KeptRows
from millrace.language import QueryPlace, query_places
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.secrets import masked

LAST_ROWS = 50
"""How many of the last results are shown."""


class Reader:
    """Reads the answers of a run from any thread, during the run and after it."""

    def __init__(
        self, run: HostRun, changes: LiveChanges, started: Callable[[Iterable[str]], None] = lambda streams: None
    ) -> None:
        self._run = run
        self._changes = changes
        self._started = started
        """Told the streams of queries that have been added."""
        self._shown: dict[str, KeptRows] = {}
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

    # What it says of itself

    @property
    def network(self) -> QueryNetwork:
        """The queries that run now."""
        return self._changes.network

    def observe(self) -> Observation:
        """The run at this moment."""
        with self._changes.lock.look():
            return Observation(self._run.report(), self._run.lag())

    def text(self) -> list[dict[str, Any]]:
        """The texts that the queries come from, without secrets, each with the places of the queries in it."""
        texts = [self._changes.file, *(each.text for each in self._changes.history if each.points is None)]
        return [{"text": masked(text), "queries": [asdict(place) for place in _places(text)]} for text in texts]

    def note_results(self, query: str, rows: pa.Table) -> None:
        """Remember the last results that were shown."""
        self._shown.setdefault(query, KeptRows(LAST_ROWS)).append(rows)

    def last_results(self, query: str) -> pa.Table | None:
        """The last results of a query whose sink is the memory or the console; None of others."""
        if query not in (each.name for each in self.network.queries):
            raise unknown_query(query, [each.name for each in self.network.queries])
        kept = self._shown.get(query) or self._run.memory.get(query)
        tables = [] if kept is None else list(kept)
        if not tables:
            return None
        rows = 0
        for first in range(len(tables) - 1, -1, -1):
            rows += tables[first].num_rows
            if rows >= LAST_ROWS:
                break
        newest = pa.concat_tables(tables[first:])
        return newest.slice(max(0, newest.num_rows - LAST_ROWS))

    # Changes

    def ask(self, text: str) -> tuple[Reply, ...]:
        """Change the run as a text asks, and wait for the replies; raises why it was refused."""
        replies = self._changes.ask(text)
        for each in replies:
            if each.did == "added":
                self._shown.pop(each.started.query, None)
                self._started(each.started.streams)
        return replies

    def proposal(self, text: str) -> dict[str, Any]:
        """What a change would do: its replies, and the operators that it would add, keep and remove."""
        before = self.network
        after, replies = self._changes.do(lambda run: self._changes.proposed(text, run))
        return {"replies": [each.data() for each in replies], "difference": difference(before, after)}

    # Answers

    def queries(self) -> pa.Table:
        """The queries: their names, keys, columns, and how many keys have an answer."""
        with self._changes.lock.look():
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
        """The run at one moment, between two of its steps; on Spark as of its last committed micro-batch."""
        return self._run.report()

    def staleness(self, query: str) -> pa.Table:
        """How stale each key is, by the run's own clock."""
        self.of(query)
        return self._run.staleness(query)


def _places(text: str) -> list[QueryPlace]:
    try:
        return query_places(text)
    except MillraceError:
        # Variables in it were filled from elsewhere.
        return []
