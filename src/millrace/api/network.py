"""The Python API: a network of streams and queries, kept as the SQL that it is run by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.api.console import Console
from millrace.api.dataframes import SparkFrame, check_frame, frame_columns, is_frame, spark_session
from millrace.api.expectations import expected
from millrace.api.handle import Handle
from millrace.api.relations import Relation, check_member
from millrace.api.runs import SingleUse, run_options
from millrace.api.sql_text.durations import Extent, Length, length
from millrace.api.sql_text.query_text import Reads, option_clause, pairs, query_text, quoted
from millrace.api.sql_text.stream_text import (
    also_clauses,
    checked_settings,
    code_place,
    ets_clause,
    order_clause,
    partition_clause,
    sql_types,
    time_clause,
    update_key_clause,
)
from millrace.api.statement_list import StatementList
from millrace.callers import at_caller, hide_own_lines
from millrace.connectors.native import DATAFRAME, ITERABLE, SOURCES
from millrace.connectors.push_pull import Ask, Asked
from millrace.errors import RequestError, did_you_mean, listed, unknown_query
from millrace.hosts.run_options import HostName
from millrace.language import filled, parse_interval
from millrace.plan.explain.picture_formats import FORMATS, rendered
from millrace.plan.explain.plan_text import explain
from millrace.plan.explain.query_picture import query_picture
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import physical

hide_own_lines()


@at_caller
class Polled(Asked):
    """The source of a stream for whose rows a run calls `ask`.

    The run calls it at the interval `every`, or without one whenever it is ready for more rows, and for
    `handle.latest(query, refresh=True)`. It returns a list of dictionaries, a record batch or a table, None if nothing
    is new, and raises StopIteration when there will be no more rows.

    >>> Polled(lambda: [{"symbol": "A", "price": 7.5}], every="1 second").every
    1000000
    """

    def __init__(self, ask: Ask, every: Length | None = None) -> None:
        super().__init__(ask, None if every is None else parse_interval(length("every", every)))


@at_caller
class Network:
    """Streams, sinks and queries that run together.

    >>> net = Network()
    >>> rows = [{"key": "a", "ts": 1_000_000}, {"key": "a", "ts": 2_000_000}, {"key": "b", "ts": 61_000_000}]
    >>> clicks = net.stream("clicks", "key STRING, ts TIMESTAMP", time="ts", source=[rows])
    >>> counts = clicks.window(range="1 minute", slide="1 minute").group_by("key").agg(n="count(*)")
    >>> handle = net.query("counts", counts).run(on="local", until="end")
    >>> [(row["key"], row["n"]) for row in handle.results("counts").to_pylist()]
    [('a', 2), ('b', 1)]
    """

    def __init__(self, variables: Mapping[str, object] | None = None) -> None:
        self._variables = {name: str(value) for name, value in (variables or {}).items()}
        self._statements = StatementList()
        self._feeds: dict[str, Any] = {}

    def sql(self, text: str) -> Network:
        """Add statements of SQL: all of them, or none if one is wrong. SHOW, DESCRIBE and EXPLAIN print their answers.

        `${name}` in it stands for a variable of the network, or one that the text sets.
        """
        text = filled(text, self._variables)
        Console().shown(self._statements.accept(text.rstrip().rstrip(";")))
        return self

    def show(self, statement: str) -> pa.Table:
        """The answer to SHOW, DESCRIBE or EXPLAIN, as rows.

        >>> net = Network()
        >>> clicks = net.stream("clicks", "user STRING, ts TIMESTAMP", time="ts", source=[])
        >>> net.show("DESCRIBE clicks").column("column").to_pylist()
        ['user', 'ts']
        """
        return self._statements.shown(filled(statement, self._variables))

    def stream(
        self,
        name: str,
        columns: str | SparkFrame,
        *,
        time: str | None = None,
        disorder: Extent | None = None,
        disorder_rows: int | None = None,
        punctuated_by: str | None = None,
        per: str | Sequence[str] = (),
        also: Mapping[str, Extent | None] | None = None,
        partitioned_by: str | Sequence[str] = (),
        partitions: Sequence[object] | Mapping[str, str | Sequence[str]] | None = None,
        grace: Extent | None = None,
        internal: str | None = None,
        latent: bool = False,
        ets: Length | None = None,
        skew: Length | None = None,
        lull: Length | None = None,
        max_future_skew: Length | None = None,
        late_into: str | None = None,
        late_by_window: bool = False,
        quarantine_into: str | None = None,
        update_key: str | Sequence[str] | None = None,
        queue: str | None = None,
        settings: Mapping[str, object] | None = None,
        source: str | Iterable[Any] | SparkFrame = "iterable",
        replay_by: str | None = None,
        **options: object,
    ) -> Relation:
        """Declare a stream. Lengths of time are words, such as "5 seconds", or timedeltas.

        `source` is a connector (csv, json, parquet, generate, nexmark) with its options, an iterable of record batches,
        tables or lists of dictionaries, `Pushed` rows, a `Polled` callable, or, on Spark, any streaming source of
        Spark's with its options, or a streaming DataFrame. A DataFrame in the place of `columns` gives its own columns.

        Time: `time` names the time column that rows bring, `internal` the one that Millrace writes on arrival; a
        `latent` stream has none. Rows are in order of `time`, or trail the greatest time by at most `disorder`, or by
        `disorder_rows` rows; or the source promises its progress by an expression, `punctuated_by`, for all rows or
        `per` group. With `partitioned_by` columns this holds in each partition; the stream waits for the first row of
        those listed in `partitions`, or in columns of a declared table, {"devices": "id"}, and with a `grace` until one
        has sent so much of its time. `also` gives further time columns, each with its disorder or None. Late rows can
        be read under the name `late_into`; with `late_by_window` a row is late only if no window of a query is open for
        it. Under the name `quarantine_into` rows can be read that are malformed, have no time or are from the future:
        `raw`, `file`, `line`, `reason`.

        Silence: `ets` is "none", "on demand", or how often Millrace advances the bound of a silent stream. A stream
        with `time` needs a `skew` or a `lull` for that, which alone mean "on demand".

        Updates: rows of equal values in the `update_key` columns update each other; [] if all rows do. `queue` is the
        policy by which queries that read the stream choose their next row, and `settings` are further options of their
        queues, as SQL has them in WITH: {"update_window": "lazy"}.
        """
        if is_frame(columns):
            source, columns = columns, frame_columns(name, columns)
        connector = _connector(name, source, options)
        order = order_clause(disorder, disorder_rows, punctuated_by, per)
        clauses = [f"CREATE STREAM {name} ({columns})", time_clause(time, order, internal, latent)]
        clauses += [*also_clauses(also or {}), *partition_clause(partitioned_by, partitions, grace)]
        clauses += ets_clause(ets, skew, lull)
        if max_future_skew is not None:
            clauses.append(f"MAX FUTURE SKEW INTERVAL {length('max_future_skew', max_future_skew)}")
        clauses += update_key_clause(update_key)
        clauses += ["LATE BY WINDOW"] if late_by_window else []
        clauses += [f"LATE INTO {late_into}"] if late_into else []
        clauses += [f"QUARANTINE INTO {quarantine_into}"] if quarantine_into else []
        clauses += [f"FROM {connector}{option_clause(options)}"]
        clauses += [f"REPLAY BY {replay_by}"] if replay_by else []
        chosen: dict[str, object] = {} if queue is None else {"queue": queue}
        chosen |= checked_settings(settings or {}, "'update_window': 'lazy'")
        clauses += [f"WITH ({pairs(chosen, ' = ')})"] if chosen else []
        self._statements.accept("\n  ".join(clauses))
        if not isinstance(source, str):
            # A DataFrame is a feed too: it is given beside the network, by the name of its stream.
            self._feeds[name] = SingleUse(name, source) if isinstance(source, Iterator) else source
        return Relation(self, name)

    def view(self, name: str, relation: Relation) -> Relation:
        """Give a relation a name, under which SQL can read it; what several queries compute alike runs once."""
        check_member(self, relation)
        self._statements.accept(f"CREATE VIEW {quoted(name)} AS {relation.sql}")
        return self.read(name)

    def read(self, name: str) -> Relation:
        """The rows of a stream, of what it set aside, of a view or of a query by its name.

        >>> net = Network()
        >>> clicks = net.stream("clicks", "user STRING, ts TIMESTAMP", time="ts", source=[[{"user": "a", "ts": 0}]])
        >>> net = net.query("all", clicks).query("some", net.read("all").where("user = 'a'"))
        >>> net.run(on="local", until="end").results("some").column("user").to_pylist()
        ['a']
        """
        return Relation(self, name if name.isidentifier() else quoted(name))._checked()

    def table(
        self,
        name: str,
        columns: str,
        source: object = "csv",
        *,
        key: str | Sequence[str] = (),
        refresh: Length | None = None,
        **options: object,
    ) -> Network:
        """Declare a table: reference data that streams are joined with, by its name in SQL or by `join_table`.

        `source` is csv, json, parquet or postgres with its options, `python` with the place of a `function`, or rows
        themselves: a table, a record batch or a list of dictionaries, or a function without arguments that returns
        them. It is read as a whole when a run begins, and again at every `refresh`; rows meet the version that is in
        force at their time. No two rows have equal values in the columns of `key`.
        """
        given = source if isinstance(source, str) else ITERABLE
        names = [key] if isinstance(key, str) else list(key)
        listed_columns = f"{columns}, PRIMARY KEY ({', '.join(names)})" if names else columns
        clauses = [f"CREATE TABLE {name} ({listed_columns}) FROM {given}{option_clause(options)}"]
        clauses += [] if refresh is None else [f"REFRESH EVERY INTERVAL {length('refresh', refresh)}"]
        self._statements.accept("\n  ".join(clauses))
        if not isinstance(source, str):
            self._feeds[name] = source
        return self

    def late(self, name: str) -> Relation:
        """The late rows of the stream that was declared with `late_into=name`."""
        return Relation(self, name)._checked()

    def aggregate(self, name: str, computes: type | str, *, takes: str | Sequence[str], returns: str) -> Network:
        """Define an aggregate by a class with `initialize`, `iterate`, `terminate` and optionally `merge`.

        The class, or its place "package.module:Class", must be importable where the query runs. Types are SQL's.
        """
        return self._define(f"AGGREGATE {name}", code_place(computes, "class"), takes, returns)

    def function(
        self, name: str, computes: Callable[..., Any] | str, *, takes: str | Sequence[str], returns: str
    ) -> Network:
        """Define a scalar function by a function of Python, which is called once per row, with None for null.

        A function that is marked with `millrace.columns` takes and returns Arrow arrays instead. The function, or its
        place "package.module:function", must be importable where the query runs. Types are SQL's.
        """
        return self._define(f"FUNCTION {name}", code_place(computes, "function"), takes, returns)

    def _define(self, what: str, place: str, takes: str | Sequence[str], returns: str) -> Network:
        kinds, result = sql_types("takes", takes), sql_types("returns", returns)
        self._statements.accept(f"CREATE {what}({kinds}) RETURNS {result} LANGUAGE PYTHON AS '{place}'")
        return self

    def query(
        self,
        name: str,
        relation: Relation,
        *,
        sink: str = "memory",
        settings: Mapping[str, object] | None = None,
        access: Reads | None = None,
        **options: object,
    ) -> Network:
        """Add a continuous query; `sink` is memory, console, a file format with its options, or python.

        For python, `writer` is a class that takes the results (see `millrace.Writer`), or its place as text.

        `settings` are the options of the query itself, as SQL has them in WITH: {"slack": "5 seconds"}. `access` says
        how often answers of an update query are read: "1 minute", or a length per condition on the key, where None
        stands for all other keys: {"symbol = 'GOOG'": "1 second", None: "1 hour"}.
        """
        check_member(self, relation)
        self._statements.accept(query_text(name, relation.sql, sink, options, settings or {}, access))
        return self

    def dataframe(self, query: str, session: Any = None) -> Any:
        """The results of a query whose sink is parquet, as a streaming DataFrame for a pipeline of Spark's.

        The network runs beside the pipeline, by `run` or by the command line, on any host. What reads the DataFrame
        with a checkpoint of its own has each result once. `session` is the one to read with, of Spark Connect too;
        without it that of this process, or a new one.
        """
        # Imported here: only programs with DataFrames need Spark.
        from millrace.hosts.spark.sink.result_frames import result_frame

        known = {each.name: each for each in self.bound().queries}
        if query not in known:
            raise unknown_query(query, known)
        return result_frame(session or spark_session(), known[query])

    def bound(self) -> QueryNetwork:
        """The network's plan."""
        return self._statements.bound()

    def root(self, query: str) -> Node:
        """The plan of one query over the network's streams; raises what is wrong with it."""
        return self._statements.root(query)

    @property
    def script(self) -> str:
        """All statements so far, as SQL."""
        return self._statements.script

    def explain(
        self, *, format: str = "text", rates: Mapping[str, float] | None = None, pair_cost: Length | None = None
    ) -> str:
        """How the queries will be run, as text; with `format`, the query graph as "json", "dot" or "svg".

        With `rates`, the rows per second of each stream, and `pair_cost`, the time to compare two rows such as
        "0.5ms", it estimates what in-order joins will cost.
        """
        plan = physical(self.bound())
        if format not in FORMATS:
            hint = f"{did_you_mean(format, FORMATS)}The formats are {listed(FORMATS)}."
            raise RequestError(f'explain has no format "{format}"', hint=hint)
        if format != "text":
            return rendered(query_picture(plan), format)
        return explain(plan, expected(rates or {}, pair_cost, plan.network))

    def _repr_html_(self) -> str:
        """What a notebook shows: the query graph as a picture; its statements, as long as there is no query."""
        network = self.bound()
        if network.queries:
            return rendered(query_picture(physical(network)), "svg")
        return f"<pre>{escape(self.script)}</pre>"

    def run(
        self,
        on: HostName = "spark",
        *,
        until: str | None = None,
        checkpoint: str | Path | None = None,
        background: bool | None = None,
        **options: Any,
    ) -> Handle:
        """Run all queries; `until` is "end", "available", or None to go on until `stop`.

        `run` waits for a run that ends by itself, unless `background` is true. Other options are those of `RunOptions`;
        `cost` in virtual time and `commit_interval` on local may be words, a timedelta, or microseconds.
        """
        chosen = run_options(on, until, checkpoint, options)
        network = self.bound()
        if not network.queries:
            raise RequestError("the network has no query", hint="Add one with net.query(name, relation).")
        handle = Handle(network, chosen, self._feeds, self)
        return handle if (until is None if background is None else background) else handle.wait()


def _connector(stream: str, source: object, options: Mapping[str, object]) -> str:
    """The name of a source's connector; an iterable and a DataFrame have connectors of their own."""
    if is_frame(source):
        check_frame(stream, source)
        if options:
            raise RequestError(
                f'stream "{stream}" takes no options beside a DataFrame, and was given {listed(options)}',
                hint="Give the options where the DataFrame is made: spark.readStream.option(...).",
            )
        return DATAFRAME
    if isinstance(source, Iterable) and not isinstance(source, str):
        return ITERABLE
    if not isinstance(source, str):
        raise RequestError(
            f'there is no source "{source}"',
            hint=f"The sources are {listed(SOURCES)}, a streaming source of Spark's, a streaming DataFrame, or an "
            "iterable of rows.",
        )
    return source if source.isidentifier() else quoted(source)
