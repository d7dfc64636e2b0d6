"""A handle on a run: wait for it, stop it, read its results, change its queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Thread
from typing import Any, Protocol

import pyarrow as pa

from millrace.console import Console
from millrace.errors import NotYet, RequestError
from millrace.hosts.answers import Answer, Started
from millrace.hosts.changes import Changes
from millrace.hosts.outputs import PLAIN, sink_folder
from millrace.hosts.report import Listeners, Report
from millrace.language import bind_changes, declarations_of, parse_script
from millrace.language.places import listed, near
from millrace.language.statements import Declared, QueryStatement
from millrace.plan.nodes import Network, Query
from millrace.runs import UNTIL_THEN, Once, RunOptions, open_run


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
        self._changes = Changes(network, author.script, bind_changes)
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

    def add(self, query: str, relation: Written | None = None, *, sink: str = "memory", **options: object) -> Started:
        """Add a query to the running network, and say where it starts.

        Give SQL (ADD QUERY, with CREATE STREAM and CREATE SINK as needed), or a name and a relation as for
        `Network.query`. It is answered over the rows from its start on: later than all that its streams have sent so
        far, or from their beginning if no query reads them yet.
        """
        text = query if relation is None else self._written(query, relation, sink, options)
        added = _added_name(text)
        if added not in self.queries:
            self._printed.pop(added, None)
        (answer,) = self._ask(text)
        self._use(answer.started.streams)
        return answer.started

    def _written(self, name: str, relation: Written, sink: str, options: Mapping[str, object]) -> str:
        if relation.network is not self._author:
            raise RequestError(
                f'"{relation.sql}" belongs to another network', hint="Build it from the streams of the one that runs."
            )
        # Streams may have been declared since the run began.
        declared = declarations_of(self._author.script, known=self._changes.script)
        return "\n;\n".join([declared, *query_statements(name, relation.sql, sink, options)])

    def drop(self, name: str) -> None:
        """Take a query out of the running network; what it has answered so far stays."""
        self._ask(f"DROP QUERY {_quoted(name)}")

    def alter(self, name: str, **options: object) -> None:
        """Give a running query other options, such as `strategy="bfs"`."""
        settings = ", ".join(f"{key} = '{value}'" for key, value in options.items())
        self._ask(f"ALTER QUERY {_quoted(name)} SET ({settings})")

    def _ask(self, text: str) -> tuple[Answer, ...]:
        if self._on == "spark":
            raise NotYet("a network on Spark cannot be changed while it runs yet", hint=UNTIL_THEN)
        return self._changes.ask(text)

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
        if found.sink.connector.format not in PLAIN:
            raise RequestError(
                f'the results of query "{query}" are files in "{sink_folder(found.sink)}"',
                hint="Read that folder, or leave the sink out to keep results in memory.",
            )
        kept = self._printed if found.sink.connector.format == "console" else self._run.memory
        tables = kept.get(query, [])
        return pa.concat_tables(tables) if tables else found.root.schema.empty_table()

    def metrics(self) -> Report:
        """The accounting of every stream, and what came out."""
        return self._run.report()


def query_statements(name: str, sql: str, sink: str, options: Mapping[str, object]) -> list[str]:
    """The statements that create a query with its sink, which is memory or takes options.

    >>> query_statements("q", "SELECT * FROM s", "csv", {"path": "out"})
    ["CREATE SINK q_sink TO csv OPTIONS (path 'out')", 'CREATE QUERY q INTO q_sink AS SELECT * FROM s']
    """
    if sink == "memory":
        return [f"CREATE QUERY {name} AS {sql}"]
    declared = f"CREATE SINK {name}_sink TO {sink}{option_clause(options)}"
    return [declared, f"CREATE QUERY {name} INTO {name}_sink AS {sql}"]


def option_clause(options: Mapping[str, object]) -> str:
    """Options as SQL writes them; nothing without any.

    >>> option_clause({"path": "it's"})
    " OPTIONS (path 'it''s')"
    """
    if not options:
        return ""
    pairs = (f"{key} '{str(value).replace(chr(39), chr(39) * 2)}'" for key, value in options.items())
    return f" OPTIONS ({', '.join(pairs)})"


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
