"""A handle on a run: wait for it, stop it, read its results, change its queries."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, overload

import pyarrow as pa

from millrace.api.console import Console, Limits
from millrace.api.reader import Reader
from millrace.api.relations import Relation, check_member
from millrace.api.runs import SingleUse, open_run
from millrace.api.sql_text.query_text import Reads, pairs, query_text, quoted, script
from millrace.callers import at_caller
from millrace.connectors.native import PLAIN_SINKS, is_native_sink
from millrace.connectors.pushed import Pushed
from millrace.connectors.sink_index import PYTHON_SINK, has_writer
from millrace.errors import RequestError, unknown_query
from millrace.hosts.answers.subscriptions import Callback, Subscription
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.control.replies import QueryStart, Reply, WaitsReply
from millrace.hosts.report import Listeners, Report
from millrace.hosts.run_options import RunOptions
from millrace.hosts.sinks.kept_rows import KeptRows, kept_rows
from millrace.hosts.sinks.sinks import sink_folder
from millrace.hosts.telemetry.exposition import metrics_text
from millrace.hosts.why.lag import Lag
from millrace.language import bind_changes, check_user_code, declarations_of, parse_script, read_file
from millrace.language.grammar.statements import Declared, QueryStatement
from millrace.plan.evolution.evolution import Evolution
from millrace.plan.nodes.query_network import Query, QueryNetwork

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

    from millrace.api.http.server import Server
    from millrace.api.network import Network

_ALL: Final = object()
"""Stands for all keys: any value may be a key."""


@at_caller
class Handle:
    """A run of a network: at work in a thread of its own, or ended."""

    def __init__(
        self, network: QueryNetwork, options: RunOptions, feeds: Mapping[str, Iterable[Any]], author: Network
    ) -> None:
        self._author = author
        self._feeds = feeds
        self._on = options.on
        check_user_code(author.script, allowed=options.user_code)
        allowed = options.user_code
        bind, read = partial(bind_changes, user_code=allowed), partial(read_file, user_code=allowed)
        self._changes = LiveChanges(network, author.script, bind, read)
        self._console = Console()
        self._printed: dict[str, KeptRows] = {}
        self._limits = Limits(lambda: self._changes.network.queries, lambda: self._run.stop())
        listeners = Listeners(results=self._show, phase=self._console.phase)
        try:
            self._run = open_run(network, options, listeners, feeds, self._changes)
        finally:
            self._console.clear()
        self._reader = Reader(self._run, self._changes, self._use)
        self._known = self.queries
        """All queries so far: the results of a dropped query can still be read."""
        self._use(stream.name for stream in self._changes.network.streams())
        self._servers: list[Server] = []
        self._thread = Thread(target=self._work, name="millrace", daemon=True)
        self._thread.start()

    def _use(self, streams: Iterable[str]) -> None:
        for name in streams:
            if isinstance(feed := self._feeds.get(name), SingleUse):
                feed.begun = True
            if isinstance(feed, Pushed):
                feed.attend(True)

    def _work(self) -> None:
        try:
            # The reader keeps the error, which `wait` raises.
            with suppress(BaseException), self._reader.attending():
                self._run.run()
        finally:
            self._changes.close()
            self._run.close()
            for feed in self._feeds.values():
                if isinstance(feed, Pushed):
                    feed.attend(False)
            for server in self._servers:
                server.close()

    def _show(self, query: str, rows: pa.Table) -> None:
        """Print the rows of a query whose sink is the console, and keep them."""
        found = self.queries.get(query)
        if found is not None and found.sink.connector.format == "console":
            if query not in self._printed:
                self._printed[query] = kept_rows(found.sink)
            rows = self._limits.within(found, rows)
            self._printed[query].append(rows)
            self._reader.note_results(query, rows)
            self._console.results(query, rows)

    @property
    def state(self) -> str:
        """Whether the run is "running", has "ended", or has "failed"."""
        return "running" if self._thread.is_alive() else "ended" if self._reader.error is None else "failed"

    def __repr__(self) -> str:
        return f"run on {self._on}, {self.state}: {self.metrics()!r}"

    def _repr_html_(self) -> str:
        """What a notebook shows: its streams and its queries, with rows and results so far."""
        return f"<p>run on {self._on}, {self.state}</p>{self.metrics()._repr_html_()}"

    def wait(self, timeout: float | None = None) -> Handle:
        """Wait until the run has ended; raises what made it fail."""
        self._thread.join(timeout)
        self._check()
        return self

    def _check(self) -> None:
        """Raise what made the run fail."""
        if self._reader.error is not None:
            raise self._reader.error

    def stop(self) -> Handle:
        """End the run in order, and wait for it."""
        self._run.stop()
        return self.wait()

    # Changes

    def add(
        self,
        query: str,
        relation: Relation | None = None,
        *,
        sink: str = "memory",
        settings: Mapping[str, object] | None = None,
        access: Reads | None = None,
        **options: object,
    ) -> QueryStart:
        """Add a query to the running network, and say where it starts.

        Give SQL (ADD QUERY, with CREATE STREAM and CREATE SINK as needed), or a name and a relation as for
        `Network.query`, with its sink, settings and access. It answers over the rows from its start on: later than all
        rows that its streams have sent so far, or their first rows if no query reads them yet.
        """
        if relation is None:
            _refuse_beside_sql(sink, settings or access, options)
            text = query
        else:
            check_member(self._author, relation)
            # Streams may have been declared since the run began.
            declared = declarations_of(self._author.script, known=self._changes.script)
            text = script([declared, query_text(query, relation.sql, sink, options, settings or {}, access)])
        added = _added_name(text)
        if added not in self.queries:
            self._printed.pop(added, None)
        (answer,) = self._ask(text)
        self._use(answer.started.streams)
        return answer.started

    def drop(self, name: str) -> None:
        """Remove a query from the running network; its results so far stay."""
        self._ask(f"DROP QUERY {quoted(name)}")

    def alter(self, name: str, **options: object) -> None:
        """Change options of a running query, such as `strategy="bfs"`."""
        self._ask(f"ALTER QUERY {quoted(name)} SET ({pairs(options, ' = ')})")

    def refresh_table(self, table: str) -> None:
        """Read a table again; rows whose time is after all that was seen so far meet what it holds now."""
        self._ask(f"REFRESH TABLE {table}")

    def _ask(self, text: str) -> tuple[Reply, ...]:
        return self._changes.ask(text)

    @property
    def evolution(self) -> Evolution | None:
        """What became of the queries in the checkpoint when this run resumed from it; None if they are the same."""
        return self._changes.evolution

    # Results

    @property
    def queries(self) -> dict[str, Query]:
        """The queries that run, by name."""
        return {query.name: query for query in self._changes.network.queries}

    def results(self, query: str) -> pa.Table:
        """The last result rows of a query, for the sinks memory and console; a bare SELECT is "query_1".

        They are all rows so far, unless there were more than the sink keeps: then a warning says how many were dropped.
        """
        found, kept = self._kept(query)
        if kept.dropped:
            warnings.warn(
                f'the first {kept.dropped} rows of query "{query}" are not kept any more: '
                "give its sink more room with keep, or write them to files",
                stacklevel=3,
            )
        tables = list(kept)
        return pa.concat_tables(tables) if tables else found.root.schema.empty_table()

    def dropped(self, query: str) -> int:
        """How many of the first result rows of a query are not kept any more; see the option `keep` of its sink."""
        return self._kept(query)[1].dropped

    def _kept(self, query: str) -> tuple[Query, KeptRows]:
        self._known.update(self.queries)
        if query not in self._known:
            raise unknown_query(query, self._known)
        found = self._known[query]
        if found.sink.connector.format == PYTHON_SINK:
            raise RequestError(
                f'the results of query "{query}" go to the writer "{found.sink.connector.options["writer"]}"',
                hint="Read them where it writes, or leave the sink out to keep results in memory.",
            )
        if is_native_sink(found.sink) or has_writer(found.sink.connector):
            raise RequestError(
                f'the results of query "{query}" go to "{found.sink.connector.format}"',
                hint="Read them there, or leave the sink out to keep results in memory.",
            )
        if found.sink.connector.format not in PLAIN_SINKS:
            raise RequestError(
                f'the results of query "{query}" are files in "{sink_folder(found.sink)}"',
                hint="Read that folder, or leave the sink out to keep results in memory.",
            )
        kept = self._printed if found.sink.connector.format == "console" else self._run.memory
        return found, kept.get(query) or KeptRows()

    # Answers that are pulled

    @overload
    def latest(self, query: str, *, refresh: bool = False) -> pa.Table: ...

    @overload
    def latest(self, query: str, key: object, *, refresh: bool = False) -> dict[str, Any] | None: ...

    def latest(self, query: str, key: object = _ALL, *, refresh: bool = False) -> pa.Table | dict[str, Any] | None:
        """The latest answer of every key of an update query, or of one key; None if that has none.

        A key is a value, a tuple in the order of the key's columns, or a mapping. `refresh` first asks the `Polled`
        streams of the query for rows, and processes them. Raises what made a run fail.
        """
        self._check()
        answers = self._reader.of(query, refresh=refresh)
        return answers.table() if key is _ALL else answers.row(key)

    def changes(self, query: str, *, present: bool = True) -> Subscription:
        """The changes of an update query's answers: an iterator of tables that waits, or `take(timeout)`; close it.

        It begins with the present answers, unless `present` is false. Each table holds the newest answer of the keys
        that changed since the table before: a slow reader misses answers, and never falls behind. It ends with the run,
        and raises what made it fail.
        """
        self._check()
        return self._reader.changes(query, present=present)

    def subscribe(self, query: str, callback: Callback, *, present: bool = True) -> Subscription:
        """Call back with the changes of an update query's answers, in a thread of its own, until it is closed.

        The callback does not learn that the run has ended or failed: `wait` for it, or check `Subscription.ended`.
        """
        return self.changes(query, present=present).call(callback)

    def staleness(self, query: str) -> pa.Table:
        """How stale the answers of an update query are: one row per key, in microseconds, now and on average."""
        return self._reader.staleness(query)

    def serve(self, port: int = 0, *, host: str | None = None, token: str | None = None) -> Server:
        """Answer over HTTP until the run ends, and show the live page: `Server.page` is its address.

        Port 0 picks one. It listens on this machine alone, unless another `host` is given with a `token`.
        """
        # Imported here: few runs answer over HTTP.
        from millrace.api.http.access_rules import AccessRules
        from millrace.api.http.server import Server

        self._servers.append(Server(self._reader, port, AccessRules.of(host, token)))
        return self._servers[-1]

    def why(self) -> Lag:
        """What holds results back: which stream, since when, and what would release them; print it."""
        if self._on == "spark" or not self._thread.is_alive():
            return self._run.lag()
        (answer,) = self._changes.ask("SHOW WAITS")
        assert isinstance(answer, WaitsReply) and answer.lag is not None
        return answer.lag

    def metrics(self) -> Report:
        """The accounting of every stream, and the results so far, at one moment; any thread may ask."""
        return self._run.report()

    def observe(self, provider: MeterProvider | None = None) -> None:
        """Let OpenTelemetry collect the metrics, by a meter provider or the global one; needs `millrace[telemetry]`."""
        # Imported here: the library is large, and need not be installed.
        from millrace.hosts.telemetry.open_telemetry import observe

        observe(self._reader.report, provider)

    def metrics_text(self) -> str:
        """The same in the text format of Prometheus, as /metrics of `serve` gives it."""
        return metrics_text(self.metrics())


def _refuse_beside_sql(sink: str, settings: object, options: Mapping[str, object]) -> None:
    """Refuse arguments that SQL has clauses for."""
    if sink != "memory" or settings or options:
        raise RequestError(
            "sink, settings and access of a query in SQL are part of its text",
            hint="Write ADD QUERY name WITH (strategy = 'bfs') INTO sink AS SELECT ..., or give a name and a relation.",
        )


def _added_name(text: str) -> str:
    """The name of the query that a text adds; refuses a text that does not add exactly one."""
    statements = parse_script(text)
    queries = [each for each in statements if isinstance(each, QueryStatement)]
    declarations = [each for each in statements if isinstance(each, Declared)]
    if len(queries) != 1 or len(queries) + len(declarations) != len(statements):
        raise RequestError(
            "expected exactly one ADD QUERY",
            hint="Give ADD QUERY name AS SELECT ..., with CREATE STREAM and CREATE SINK as needed.",
        )
    return queries[0].name.text if queries[0].name is not None else ""
