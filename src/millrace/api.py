"""The Python API: relations built lazily, as the same queries that SQL writes.

A relation is a piece of SQL that knows its network; every method gives a new one. So the checks, the plans and the
meanings are those of the language, and `relation.sql` shows what was built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.clauses import ets_clause, order_clause, partition_clause, time_clause
from millrace.connectors import FORMATS
from millrace.errors import RequestError
from millrace.handle import Handle, option_clause, query_statements
from millrace.hosts.report import Ending
from millrace.language import parse_network
from millrace.language.places import listed, near
from millrace.plan import nodes
from millrace.plan.explain import explain
from millrace.plan.stages import physical
from millrace.runs import HostName, Once, RunOptions, check_further

__all__ = ["Handle", "Network", "Relation", "Windowed"]

SOURCES = (*FORMATS, "generate")


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
        partitioned_by: str | Sequence[str] = (),
        internal: str | None = None,
        latent: bool = False,
        ets: str | None = None,
        skew: str | None = None,
        lull: str | None = None,
        max_future_skew: str | None = None,
        source: str | Iterable[Any] = "iterable",
        replay_by: str | None = None,
        **options: object,
    ) -> Relation:
        """Declare a stream: `time` names its time column, or `internal`, or it is `latent`.

        `source` is a connector (csv, json, parquet, generate) with its options, or an iterable of record batches,
        tables or lists of dictionaries. Rows are ordered by `time`, or trail by `disorder` or by `disorder_rows` rows,
        or the source promises by an expression, `punctuated_by`; in each partition, if `partitioned_by` columns.
        `ets` is "none", "on demand" or how often a silent stream is spoken for, by its `skew` or `lull` if its time
        comes from outside; with one of these, "on demand" goes without saying.
        """
        connector = _connector(source)
        order = order_clause(disorder, disorder_rows, punctuated_by)
        clauses = [f"CREATE STREAM {name} ({columns})", time_clause(time, order, internal, latent)]
        clauses += [*partition_clause(partitioned_by), *ets_clause(ets, skew, lull)]
        clauses += [f"MAX FUTURE SKEW INTERVAL {max_future_skew}"] if max_future_skew else []
        clauses += [f"FROM {connector}{option_clause(options)}"]
        clauses += [f"REPLAY BY {replay_by}"] if replay_by else []
        self._accept("\n  ".join(clauses))
        if not isinstance(source, str):
            self._feeds[name] = Once(name, source) if isinstance(source, Iterator) else source
        return Relation(self, name)

    def query(self, name: str, relation: Relation, *, sink: str = "memory", **options: object) -> Network:
        """Add a continuous query; `sink` is memory, console, or a file format with its options."""
        _check_member(self, relation)
        self._accept(*query_statements(name, relation.sql, sink, options))
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

    @property
    def sql(self) -> str:
        """The query as SQL."""
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
            source = f"({' UNION ALL '.join(each.sql for each in relations)})"
        return Relation(self.network, source)._checked()

    def order_by_time(self) -> Relation:
        """The rows as a sequence sorted by their time, which is `window_start` for an aggregate."""
        return replace(self, ordered=True)._checked()

    def window(self, *, range: str, slide: str | None = None) -> Windowed:
        """Time windows of a length, one every `slide` (default: one after another)."""
        length = _length("range", range)
        step = length if slide is None else _length("slide", slide)
        return Windowed(self._base(), f"[RANGE {length} SLIDE {step}]")

    def _base(self) -> Relation:
        """The rows without their order, to build on: order holds for a whole query and is asked for last."""
        plain = replace(self, ordered=False)
        return plain if self.items == "*" else Relation(self.network, f"({plain.sql})")

    def _is_stream(self) -> bool:
        return not self.predicate and self.items == "*" and not self.ordered and not self.source.startswith("(")

    def _time(self) -> str:
        """The name of the time column: the start of an aggregate's window, or as its stream declares it."""
        parts = list(nodes.walk(self.network.bound(replace(self, ordered=False).sql).queries[-1].root))
        if any(isinstance(each, nodes.Aggregate) for each in parts):
            return nodes.WINDOW_START
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
        return Relation(base.network, text)._checked()


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


def _length(name: str, given: object) -> str:
    """A length of time in words."""
    if not isinstance(given, str):
        raise RequestError(f'a {name} is a length of time in words, not "{given}"', hint=f"Write {name}='1 minute'.")
    return given


def _script(statements: Iterable[str]) -> str:
    # A line of its own for the semicolon: the statement before it may end in a comment.
    return "\n;\n".join(statements)
