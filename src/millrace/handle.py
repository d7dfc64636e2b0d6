"""A handle on a run: wait for it, stop it, read its results, change its queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Thread
from typing import Any, Protocol

import pyarrow as pa

from millrace.clauses import class_place
from millrace.connectors.native import HANDED, is_native_sink
from millrace.console import Console
from millrace.errors import RequestError
from millrace.hosts.answers import Answer, Started, Waits
from millrace.hosts.changes import Changes
from millrace.hosts.lag import Lag
from millrace.hosts.outputs import PLAIN, sink_folder
from millrace.hosts.report import Listeners, Report
from millrace.language import bind_changes, declarations_of, parse_script, read_file
from millrace.language.places import listed, near
from millrace.language.statements import Declared, QueryStatement
from millrace.plan.evolution import Evolution
from millrace.plan.nodes import Network, Query
from millrace.runs import Once, RunOptions, open_run


class Author(Protocol):
    """Who writes the statements of a network."""

    @property
    def script(self) -> str:
        """All statements so far."""


class Written(Protocol):
    """A relation as its author writes it."""

    @property
    def network(self) -> Author:
        """Whose streams it reads."""

    @property
    def sql(self) -> str:
        """The query."""


class Handle:
    """A network at work, or one that has ended."""

    def __init__(
        self, network: Network, options: RunOptions, feeds: Mapping[str, Iterable[Any]], author: Author
    ) -> None:
        self._author = author
        self._feeds = feeds
        self._on = options.on
        self._changes = Changes(network, author.script, bind_changes, read_file)
        self._console = Console()
        self._printed: dict[str, list[pa.Table]] = {}
        self._run = open_run(network, options, Listeners(results=self._show), feeds, self._changes)
        self._known = self.queries
        """All queries that there have been: the results of one that was dropped can still be read."""
        self._use(stream.name for stream in self._changes.network.streams())
        self._error: BaseException | None = None
        self._thread = Thread(target=self._work, name="millrace", daemon=True)
        self._thread.start()

    def _use(self, streams: Iterable[str]) -> None:
        for name in streams:
            if isinstance(feed := self._feeds.get(name), Once):
                feed.begun = True

    def _work(self) -> None:
        try:
            self._run.run()
        except BaseException as error:
            self._error = error
        finally:
            self._changes.close()
            self._run.close()

    def _show(self, query: str, rows: pa.Table) -> None:
        """Print the rows of a query whose sink is the console, and keep them."""
        found = self.queries.get(query)
        if found is not None and found.sink.connector.format == "console":
            self._printed.setdefault(query, []).append(rows)
            self._console.results(query, rows)

    def wait(self, timeout: float | None = None) -> Handle:
        """Wait until the run has ended; raises what made it fail."""
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return self

    def stop(self) -> Handle:
        """End the run in order, and wait for it."""
        self._run.stop()
        return self.wait()

    # Changes

    def add(
        self,
        query: str,
        relation: Written | None = None,
        *,
        sink: str = "memory",
        settings: Mapping[str, object] | None = None,
        **options: object,
    ) -> Started:
        """Add a query to the running network, and say where it starts.

        Give SQL (ADD QUERY, with CREATE STREAM and CREATE SINK as needed), or a name and a relation as for
        `Network.query`, with its sink and settings. It is answered over the rows from its start on: later than all
        that its streams have sent so far, or from their beginning if no query reads them yet.
        """
        if relation is None:
            _refuse_beside_sql(sink, settings, options)
        text = query if relation is None else self._written(query, relation, sink, options, settings or {})
        added = _added_name(text)
        if added not in self.queries:
            self._printed.pop(added, None)
        (answer,) = self._ask(text)
        self._use(answer.started.streams)
        return answer.started

    def _written(
        self,
        name: str,
        relation: Written,
        sink: str,
        options: Mapping[str, object],
        settings: Mapping[str, object],
    ) -> str:
        if relation.network is not self._author:
            raise RequestError(
                f'"{relation.sql}" belongs to another network', hint="Build it from the streams of the one that runs."
            )
        # Streams may have been declared since the run began.
        declared = declarations_of(self._author.script, known=self._changes.script)
        return "\n;\n".join([declared, *query_statements(name, relation.sql, sink, options, settings)])

    def drop(self, name: str) -> None:
        """Take a query out of the running network; what it has answered so far stays."""
        self._ask(f"DROP QUERY {_quoted(name)}")

    def alter(self, name: str, **options: object) -> None:
        """Give a running query other options, such as `strategy="bfs"`."""
        self._ask(f"ALTER QUERY {_quoted(name)} SET ({_pairs(options, ' = ')})")

    def _ask(self, text: str) -> tuple[Answer, ...]:
        return self._changes.ask(text)

    @property
    def evolution(self) -> Evolution | None:
        """What became of the queries in the checkpoint when this run went on from it; None if they are the same."""
        return self._changes.evolution

    # Results

    @property
    def queries(self) -> dict[str, Query]:
        """The queries that run, by name."""
        return {query.name: query for query in self._changes.network.queries}

    def results(self, query: str) -> pa.Table:
        """The result rows of a query so far, for the sinks memory and console; a bare SELECT is "query_1"."""
        self._known.update(self.queries)
        if query not in self._known:
            hint = f"{near(query, self._known)}The queries are {listed(self._known)}."
            raise RequestError(f'there is no query "{query}"', hint=hint)
        found = self._known[query]
        if found.sink.connector.format == HANDED:
            raise RequestError(
                f'the results of query "{query}" go to the writer "{found.sink.connector.options["writer"]}"',
                hint="Look where it writes, or leave the sink out to keep results in memory.",
            )
        if is_native_sink(found.sink):
            raise RequestError(
                f'the results of query "{query}" go to "{found.sink.connector.format}"',
                hint="Read them there, or leave the sink out to keep results in memory.",
            )
        if found.sink.connector.format not in PLAIN:
            raise RequestError(
                f'the results of query "{query}" are files in "{sink_folder(found.sink)}"',
                hint="Read that folder, or leave the sink out to keep results in memory.",
            )
        kept = self._printed if found.sink.connector.format == "console" else self._run.memory
        tables = kept.get(query, [])
        return pa.concat_tables(tables) if tables else found.root.schema.empty_table()

    def why(self) -> Lag:
        """What holds results back: which stream, since when, and what would release them; print it to read it."""
        if self._on == "spark" or not self._thread.is_alive():
            return self._run.lag()
        (answer,) = self._changes.ask("SHOW WAITS")
        assert isinstance(answer, Waits) and answer.lag is not None
        return answer.lag

    def metrics(self) -> Report:
        """The accounting of every stream, and what came out."""
        return self._run.report()


def query_statements(
    name: str, sql: str, sink: str, options: Mapping[str, object], settings: Mapping[str, object]
) -> list[str]:
    """The statements that create a query with its settings, and its sink, which is memory or takes options.

    >>> query_statements("q", "SELECT * FROM s", "csv", {"path": "out"}, {})
    ["CREATE SINK q_sink TO csv OPTIONS (path 'out')", 'CREATE QUERY q INTO q_sink AS SELECT * FROM s']
    >>> query_statements("q", "SELECT * FROM s", "memory", {}, {"share": 2})
    ["CREATE QUERY q WITH (share = '2') AS SELECT * FROM s"]
    """
    _check_settings(sink, options, settings)
    chosen = f" WITH ({_pairs(settings, ' = ')})" if settings else ""
    if sink == "memory":
        return [f"CREATE QUERY {name}{chosen} AS {sql}"]
    if sink == HANDED and "writer" in options:
        options = {**options, "writer": class_place(options["writer"])}
    declared = f"CREATE SINK {name}_sink TO {sink}{option_clause(options)}"
    return [declared, f"CREATE QUERY {name}{chosen} INTO {name}_sink AS {sql}"]


def _check_settings(sink: str, options: Mapping[str, object], settings: object) -> None:
    """Refuse options of a sink that has none, and settings that have no names."""
    if options and sink in PLAIN:
        raise RequestError(
            f'the sink "{sink}" takes no options, and was given {listed(options)}',
            hint=f"{_as_settings(options)} Options of a sink go with files: sink='parquet', path='out'.",
        )
    if not isinstance(settings, Mapping):
        raise RequestError(
            f'settings are names and values, not "{settings}"', hint="Write settings={'strategy': 'bfs'}."
        )


def _refuse_beside_sql(sink: str, settings: object, options: Mapping[str, object]) -> None:
    """Refuse what SQL says itself."""
    if sink != "memory" or settings or options:
        raise RequestError(
            "a query in SQL says itself where its results go, and how it is run",
            hint="Write ADD QUERY name WITH (strategy = 'bfs') INTO sink AS SELECT ..., or give a name and a relation.",
        )


def _as_settings(options: Mapping[str, object]) -> str:
    """The sentence that says how options of the query itself are given."""
    shown = ", ".join(f"'{key}': {value!r}" for key, value in options.items())
    return f"If they are options of the query, write settings={{{shown}}}."


def option_clause(options: Mapping[str, object]) -> str:
    """Options as SQL writes them; nothing without any.

    >>> option_clause({"path": "it's"})
    " OPTIONS (path 'it''s')"
    """
    return f" OPTIONS ({_pairs(options, ' ')})" if options else ""


def _pairs(options: Mapping[str, object], between: str) -> str:
    quoted = ((key, str(value).replace("'", "''")) for key, value in options.items())
    return ", ".join(f"{key}{between}'{value}'" for key, value in quoted)


def _added_name(text: str) -> str:
    """The name of the one query that a text adds; refuses a text that does more or less."""
    statements = parse_script(text).statements
    queries = [each for each in statements if isinstance(each, QueryStatement)]
    declarations = [each for each in statements if isinstance(each, Declared)]
    if len(queries) != 1 or len(queries) + len(declarations) != len(statements):
        raise RequestError(
            "this text does not add one query, and nothing else",
            hint="Give ADD QUERY name AS SELECT ..., with CREATE STREAM and CREATE SINK as needed.",
        )
    return queries[0].name.text if queries[0].name is not None else ""


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
