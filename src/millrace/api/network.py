"""The Python API: a network of streams and queries, kept as the SQL that it is run by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from millrace.api.dataframes import SparkFrame, check_frame, frame_columns, is_frame
from millrace.api.durations import Extent, Length, length
from millrace.api.expectations import expected
from millrace.api.handle import Handle
from millrace.api.query_text import Reads, option_clause, pairs, query_text, quoted, script
from millrace.api.relations import Relation, check_member
from millrace.api.runs import SingleUse, run_options
from millrace.api.stream_text import (
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
from millrace.connectors.native import DATAFRAME, ITERABLE, SOURCES
from millrace.connectors.push_pull import Ask, Asked
from millrace.errors import QueryError, RequestError, listed
from millrace.hosts.run_options import HostName
from millrace.language import parse_interval, parse_script
from millrace.language.grammar.statements import Declared, QueryStatement, SinkStatement, Statement
from millrace.language.script import Declarations, bind_network, declare
from millrace.plan.explain.plan_text import explain
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import physical


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

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._statements: list[Statement] = []
        """What the texts say, parsed once."""
        self._declared = Declarations()
        self._names: set[str] = set()
        """The names of the queries, in lower case."""
        self._feeds: dict[str, Any] = {}
        self._roots: dict[str, Node] = {}

    def sql(self, text: str) -> Network:
        """Add statements of SQL: all of them, or none if one is wrong."""
        self._accept(text.rstrip().rstrip(";"))
        return self

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
        partitions: Sequence[object] | None = None,
        grace: Extent | None = None,
        internal: str | None = None,
        latent: bool = False,
        ets: Length | None = None,
        skew: Length | None = None,
        lull: Length | None = None,
        max_future_skew: Length | None = None,
        late_into: str | None = None,
        late_by_window: bool = False,
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
        those listed in `partitions`, and with a `grace` until one has sent so much of its time. `also` gives
        further time columns, each with its disorder or None. Late rows can be read under the name `late_into`; with
        `late_by_window` a row is late only if no window of a query is open for it.

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
        clauses += [f"FROM {connector}{option_clause(options)}"]
        clauses += [f"REPLAY BY {replay_by}"] if replay_by else []
        chosen: dict[str, object] = {} if queue is None else {"queue": queue}
        chosen |= checked_settings(settings or {}, "'update_window': 'lazy'")
        clauses += [f"WITH ({pairs(chosen, ' = ')})"] if chosen else []
        self._accept("\n  ".join(clauses))
        if not isinstance(source, str):
            # A DataFrame is a feed too: it is given beside the network, by the name of its stream.
            self._feeds[name] = SingleUse(name, source) if isinstance(source, Iterator) else source
        return Relation(self, name)

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
        self._accept(f"CREATE {what}({kinds}) RETURNS {result} LANGUAGE PYTHON AS '{place}'")
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
        self._accept(query_text(name, relation.sql, sink, options, settings or {}, access))
        return self

    def bound(self) -> QueryNetwork:
        """The network's plan."""
        return bind_network(self._statements)

    def root(self, query: str) -> Node:
        """The plan of one query over the network's streams; raises what is wrong with it."""
        if query not in self._roots:
            # Which query it becomes a part of decides whether its rows are updates of each other.
            self._roots[query] = self._alone(parse_script(query), parts=True).queries[-1].root
        return self._roots[query]

    @property
    def script(self) -> str:
        """All statements so far, as SQL."""
        return script(self._texts)

    def _accept(self, text: str) -> None:
        """Add the statements of a text as a whole, or not at all."""
        new = parse_script(text)
        if all(map(self._is_independent, new)):
            self._names |= _query_names(self._alone(new))
        else:
            self._names = _query_names(bind_network([*self._statements, *new]))
        if any(isinstance(each, Declared) for each in new):
            self._declared = declare(new, self._declared)
            self._roots.clear()
        self._texts.append(text)
        self._statements += new

    def _is_independent(self, statement: Statement) -> bool:
        """True if the queries so far do not matter to a statement: binding them again takes long if there are many."""
        if isinstance(statement, QueryStatement) and statement.name is not None:
            return statement.name.text.lower() not in self._names and "max_future_skew" not in statement.options
        return isinstance(statement, SinkStatement)

    def _alone(self, statements: Sequence[Statement], *, parts: bool = False) -> QueryNetwork:
        """The plan of some statements without the queries so far."""
        try:
            return bind_network(statements, self._declared, parts=parts)
        except QueryError:
            # An error that knows the queries so far says more: their names may be mistaken for streams.
            bind_network([*self._statements, *statements], parts=parts)
            raise

    def explain(self, *, rates: Mapping[str, float] | None = None, pair_cost: Length | None = None) -> str:
        """How the queries will be run, as text.

        With `rates`, the rows per second of each stream, and `pair_cost`, the time to compare two rows such as
        "0.5ms", it estimates what in-order joins will cost.
        """
        plan = physical(self.bound())
        return explain(plan, expected(rates or {}, pair_cost, plan.network))

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


def _query_names(network: QueryNetwork) -> set[str]:
    """The names of the queries that were written; late rows that go to a sink are a query of their name, too."""
    late = {each.late_into.lower() for each in network.streams() if each.late_into}
    return {each.name.lower() for each in network.queries} - late
