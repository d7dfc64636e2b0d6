"""The Python API: relations built lazily, as the same queries that SQL writes.

A relation is a piece of SQL that knows its network; every method gives a new one. So the checks, the plans and the
meanings are those of the language, and `relation.sql` shows what was built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.clauses import (
    also_clauses,
    class_place,
    ets_clause,
    order_clause,
    partition_clause,
    sql_types,
    time_clause,
)
from millrace.connectors import FORMATS
from millrace.connectors.generated import GENERATED
from millrace.errors import RequestError
from millrace.handle import Handle, option_clause, query_statements
from millrace.hosts.report import Ending
from millrace.language import parse_network
from millrace.language.places import listed, near
from millrace.plan import nodes
from millrace.plan.explain import explain
from millrace.plan.stages import physical
from millrace.runs import HostName, Once, RunOptions, check_further
from millrace.window_clauses import window_clause

__all__ = ["Handle", "Network", "Relation", "Windowed"]

SOURCES = (*FORMATS, *GENERATED)


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
        self._statements: list[str] = []
        self._feeds: dict[str, Iterable[Any]] = {}

    def sql(self, text: str) -> Network:
        """Add statements of SQL: all of them, or none if one is wrong."""
        self._accept(text.rstrip().rstrip(";"))
        return self

    def stream(
        self,
        name: str,
        columns: str,
        *,
        time: str | None = None,
        disorder: str | None = None,
        disorder_rows: int | None = None,
        punctuated_by: str | None = None,
        per: str | Sequence[str] = (),
        also: Mapping[str, str | None] | None = None,
        partitioned_by: str | Sequence[str] = (),
        internal: str | None = None,
        latent: bool = False,
        ets: str | None = None,
        skew: str | None = None,
        lull: str | None = None,
        max_future_skew: str | None = None,
        late_into: str | None = None,
        source: str | Iterable[Any] = "iterable",
        replay_by: str | None = None,
        **options: object,
    ) -> Relation:
        """Declare a stream: `time` names its time column, or `internal`, or it is `latent`.

        `source` is a connector (csv, json, parquet, generate, nexmark) with its options, or an iterable of record
        batches, tables or lists of dictionaries. Rows are ordered by `time`, or trail by `disorder` or by
        `disorder_rows` rows, or the source promises by an expression, `punctuated_by`, to all or `per` group; in each
        partition, if `partitioned_by` columns. `also` are further time columns, each with its disorder or None.
        `ets` is "none", "on demand" or how often a silent stream is spoken for, by its `skew` or `lull` if its time
        comes from outside; with one of these, "on demand" goes without saying. Late rows can be read under the name
        `late_into`.
        """
        connector = _connector(source)
        order = order_clause(disorder, disorder_rows, punctuated_by, per)
        clauses = [f"CREATE STREAM {name} ({columns})", time_clause(time, order, internal, latent)]
        clauses += [*also_clauses(also or {}), *partition_clause(partitioned_by), *ets_clause(ets, skew, lull)]
        clauses += [f"MAX FUTURE SKEW INTERVAL {max_future_skew}"] if max_future_skew else []
        clauses += [f"LATE INTO {late_into}"] if late_into else []
        clauses += [f"FROM {connector}{option_clause(options)}"]
        clauses += [f"REPLAY BY {replay_by}"] if replay_by else []
        self._accept("\n  ".join(clauses))
        if not isinstance(source, str):
            self._feeds[name] = Once(name, source) if isinstance(source, Iterator) else source
        return Relation(self, name)

    def late(self, name: str) -> Relation:
        """The late rows of the stream that was declared with `late_into=name`."""
        return Relation(self, name)._checked()

    def aggregate(self, name: str, computes: type | str, *, takes: str | Sequence[str], returns: str) -> Network:
        """Define an aggregate by a class with `initialize`, `iterate`, `terminate` and, if it can, `merge`.

        The class, or its place "package.module:Class", must be importable where the query runs. Types are SQL's.
        """
        kinds, result = sql_types("takes", takes), sql_types("returns", returns)
        place = class_place(computes)
        self._accept(f"CREATE AGGREGATE {name}({kinds}) RETURNS {result} LANGUAGE PYTHON AS '{place}'")
        return self

    def query(
        self,
        name: str,
        relation: Relation,
        *,
        sink: str = "memory",
        settings: Mapping[str, object] | None = None,
        **options: object,
    ) -> Network:
        """Add a continuous query; `sink` is memory, console, or a file format with its options.

        `settings` are the options of the query itself, as SQL has them in WITH: {"slack": "5 seconds"}.
        """
        _check_member(self, relation)
        self._accept(*query_statements(name, relation.sql, sink, options, settings or {}))
        return self

    def bound(self, *further: str) -> nodes.Network:
        """The network's plan, as it would be with further statements; raises what is wrong with it."""
        return parse_network(_script([*self._statements, *further]))

    @property
    def script(self) -> str:
        """All statements so far, as SQL."""
        return _script(self._statements)

    def _accept(self, *statements: str) -> None:
        """Add statements as a whole, or not at all."""
        self.bound(*statements)
        self._statements += statements

    def explain(self) -> str:
        """How the queries will be run, as text."""
        return explain(physical(self.bound()))

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

        A run that ends by itself is waited for, unless `background` is true; other options are those of `RunOptions`.
        """
        endings: dict[str | None, Ending] = {None: "stopped", "available": "available", "end": "end"}
        if until not in endings:
            raise RequestError(f'a run cannot last until "{until}"', hint='Use until="end" or until="available".')
        network = self.bound()
        if not network.queries:
            raise RequestError("the network has no query", hint="Add one with net.query(name, relation).")
        check_further(options)
        chosen = RunOptions(on, endings[until], Path(checkpoint) if checkpoint else None, **options)
        handle = Handle(network, chosen, self._feeds, self)
        return handle if (until is None if background is None else background) else handle.wait()


@dataclass(frozen=True)
class Relation:
    """Rows of a stream or a query, not yet computed."""

    network: Network
    source: str
    predicate: str = ""
    items: str = "*"
    ordered: bool = False
    state_limit: int | None = None

    @property
    def sql(self) -> str:
        """The query as SQL."""
        return self._select + (f" WITH (state_limit = {self.state_limit})" if self.state_limit else "")

    @property
    def _select(self) -> str:
        """The query without its options, as it stands inside another."""
        where = f" WHERE {self.predicate}" if self.predicate else ""
        order = f" ORDER BY {self._time()}" if self.ordered else ""
        return f"SELECT {self.items} FROM {self.source}{where}{order}"

    @property
    def schema(self) -> pa.Schema:
        """The columns it has."""
        return self.network.bound(self.sql).queries[-1].root.schema

    def where(self, predicate: str) -> Relation:
        """The rows where a condition holds."""
        base = self._base()
        both = f"({base.predicate}) AND ({predicate})" if base.predicate else predicate
        return replace(base, predicate=both, ordered=self.ordered)._checked()

    def select(self, *items: str, **named: str) -> Relation:
        """Columns and expressions, by themselves or under a name."""
        chosen = [*items, *(f"{text} AS {name}" for name, text in named.items())]
        return replace(self._base(), items=", ".join(chosen), ordered=self.ordered)._checked()

    def union(self, *others: Relation) -> Relation:
        """All rows of all relations; columns meet by position."""
        relations = (self, *others)
        for each in others:
            _check_member(self.network, each)
        if all(each._is_stream() for each in relations):
            source = " UNION ".join(each.source for each in relations)
        else:
            source = f"({' UNION ALL '.join(each._select for each in relations)})"
        limit = max((each.state_limit or 0 for each in relations), default=0)
        return Relation(self.network, source, state_limit=limit or None)._checked()

    def distinct(self) -> Relation:
        """Each row once; the time must be among the columns."""
        plain = replace(self, ordered=False)
        text = f"(SELECT DISTINCT{plain._select.removeprefix('SELECT')})"
        return replace(self, source=text, predicate="", items="*")._checked()

    def top(self, n: int, *, by: str, partition_by: str | Sequence[str] = (), ties: bool = False) -> Relation:
        """The first n results of each window, in the order of `by`, such as "n desc", in each partition.

        With `ties`, all that are as good as the last of them.
        """
        further = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        parts = ", ".join([nodes.WINDOW_START, nodes.WINDOW_END, *further])
        base = self._base()
        rank = f"{'rank' if ties else 'row_number'}() OVER (PARTITION BY {parts} ORDER BY {by})"
        return replace(base, source=f"({base._select} QUALIFY {rank} <= {n})", predicate="")._checked()

    def order_by_time(self) -> Relation:
        """The rows as a sequence sorted by their time, which is a bound of its window for an aggregate."""
        return replace(self, ordered=True)._checked()

    def window(
        self,
        *,
        range: str | None = None,
        rows: int | None = None,
        session: str | None = None,
        slide: str | int | None = None,
        by: str | None = None,
        partition_by: str | Sequence[str] = (),
        state_limit: int | None = None,
    ) -> Windowed:
        """Windows of a length of time or a number of rows, one every `slide` (default: one after another).

        With `slide="row"` a window ends at each row. `range="unlimited"` reaches back to the beginning, and needs a
        `state_limit` of groups; a `session` ends when nothing has come for so long. `by` is the time column if not the
        stream's own; with `partition_by` rows are counted in each partition.
        """
        base = self._base()
        limit = state_limit or base.state_limit
        text = window_clause(range, rows, session, slide, by, partition_by, limited=limit is not None)
        return Windowed(replace(base, state_limit=limit), text)

    def _base(self) -> Relation:
        """The rows without their order, to build on: order holds for a whole query and is asked for last."""
        plain = replace(self, ordered=False)
        if self.items == "*":
            return plain
        return Relation(self.network, f"({plain._select})", state_limit=self.state_limit)

    def _is_stream(self) -> bool:
        return not self.predicate and self.items == "*" and not self.ordered and not self.source.startswith("(")

    def _time(self) -> str:
        """The name of the time column: a bound of an aggregate's window, or as its stream declares it."""
        parts = list(nodes.walk(self.network.bound(replace(self, ordered=False).sql).queries[-1].root))
        outermost = next((each for each in reversed(parts) if isinstance(each, nodes.Aggregate)), None)
        if outermost is not None:
            return _time_of(outermost)
        scan = next(each for each in parts if isinstance(each, nodes.Scan))
        return scan.stream.time.column or "ts"

    def _checked(self) -> Relation:
        self.network.bound(self.sql)
        return self


@dataclass(frozen=True)
class Windowed:
    """Rows cut into windows, to be aggregated by keys."""

    relation: Relation
    window: str
    keys: tuple[str, ...] = ()

    def group_by(self, *keys: str) -> Windowed:
        """The same windows, a group for each value of the keys."""
        return replace(self, keys=(*self.keys, *keys))

    def agg(self, **aggregates: str) -> Relation:
        """One row a window and group, with the named aggregates."""
        base = self.relation
        items = ", ".join([*self.keys, *(f"{text} AS {name}" for name, text in aggregates.items())])
        where = f" WHERE {base.predicate}" if base.predicate else ""
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        text = f"(SELECT {items} FROM {base.source} {self.window}{where}{group})"
        return Relation(base.network, text, state_limit=base.state_limit)._checked()


def _connector(source: object) -> str:
    """The connector that a source names; an iterable is a connector of its own."""
    if isinstance(source, Iterable) and not isinstance(source, str):
        return "iterable"
    if not isinstance(source, str) or source.lower() not in (*SOURCES, "iterable"):
        raise RequestError(
            f'there is no source "{source}"',
            hint=f"{near(str(source), SOURCES)}The sources are {listed(SOURCES)}, or an iterable of rows.",
        )
    return source


def _check_member(network: Network, relation: object) -> None:
    """Refuse what is no relation of the network."""
    if isinstance(relation, Windowed):
        raise RequestError("windows are no rows yet", hint="Say what to compute of each: .agg(n='count(*)').")
    if not isinstance(relation, Relation):
        raise RequestError(
            f'"{relation}" is no relation', hint="Use what net.stream(...) gives, or write the query with net.sql(...)."
        )
    if relation.network is not network:
        raise RequestError(
            f'"{relation.sql}" belongs to another network',
            hint="Declare its streams in this network and build it there.",
        )


def _time_of(aggregate: nodes.Aggregate) -> str:
    """The column of an aggregate's results that grows with their time."""
    match aggregate.window:
        case nodes.InstantWindow():
            return aggregate.keys[0][0]
        case nodes.SessionWindow() | nodes.TrailingWindow():
            return nodes.WINDOW_END
        case _:
            return nodes.WINDOW_START


def _script(statements: Iterable[str]) -> str:
    # A line of its own for the semicolon: the statement before it may end in a comment.
    return "\n;\n".join(statements)
