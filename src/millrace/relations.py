"""Relations: queries built lazily in Python, as the same text that SQL writes.

A relation is a piece of SQL that knows its network; every method gives a new one. So the checks, the plans and the
meanings are those of the language, and `relation.sql` shows what was built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from millrace.errors import RequestError
from millrace.join_clauses import (
    Columns,
    Counts,
    How,
    Joined,
    Lengths,
    Mode,
    Part,
    asof_condition,
    asof_kind,
    columns_of,
    join_condition,
    join_kind,
    latest,
    named,
    sequence_clauses,
    side_windows,
    with_window,
    with_windows,
)
from millrace.plan import nodes
from millrace.window_clauses import window_clause


class Author(Protocol):
    """The network that relations belong to."""

    @property
    def script(self) -> str:
        """All statements so far, as SQL."""

    def bound(self, *further: str) -> nodes.Network:
        """The network's plan, as it would be with further statements; raises what is wrong with it."""


@dataclass(frozen=True)
class Relation:
    """Rows of a stream, a join or a query, not yet computed."""

    network: Author
    source: str
    predicate: str = ""
    items: str = "*"
    ordered: bool = False
    state_limit: int | None = None
    joined: Joined | None = None
    """How the source is made, where further relations can be joined to it."""
    own_time: str | None = None
    """Of a join, what holds the time of its rows, if that is known. A window behind it would be that of an input."""

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
            check_member(self.network, each)
        if all(each._is_stream() for each in relations):
            source = " UNION ".join(each.source for each in relations)
        else:
            source = f"({' UNION ALL '.join(each._select for each in relations)})"
        return Relation(self.network, source, state_limit=_limit(relations))._checked()

    def distinct(self) -> Relation:
        """Each row once; the time must be among the columns."""
        plain = replace(self, ordered=False)
        text = f"(SELECT DISTINCT{plain._select.removeprefix('SELECT')})"
        return Relation(self.network, text, ordered=self.ordered, state_limit=self.state_limit)._checked()

    def top(self, n: int, *, by: str, partition_by: str | Sequence[str] = (), ties: bool = False) -> Relation:
        """The first n results of each window, in the order of `by`, such as "n desc", in each partition.

        With `ties`, all that are as good as the last of them.
        """
        further = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        parts = ", ".join([nodes.WINDOW_START, nodes.WINDOW_END, *further])
        base = self._base()
        rank = f"{'rank' if ties else 'row_number'}() OVER (PARTITION BY {parts} ORDER BY {by})"
        text = f"({base._select} QUALIFY {rank} <= {n})"
        return Relation(self.network, text, state_limit=base.state_limit)._checked()

    def order_by_time(self) -> Relation:
        """The rows as a sequence sorted by their time, which is a bound of its window for an aggregate.

        Joined rows have the time of their latest part. How a join keeps the order is a setting of the query:
        `net.query(name, relation, settings={"join": "filter_order"})`.
        """
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
        stream's own, of a join such as "x.ts" if not the later; with `partition_by` rows are counted in each partition.
        """
        base = self._base()
        limit = state_limit or base.state_limit
        text = window_clause(range, rows, session, slide, by, partition_by, limited=limit is not None)
        return Windowed(replace(base, state_limit=limit), text)

    # Joins

    def join(
        self,
        other: Relation,
        on: Columns = (),
        *,
        within: Lengths | None = None,
        rows: Counts | None = None,
        partition_by: Columns = (),
        how: How = "inner",
        names: str | tuple[str, str] | None = None,
    ) -> Relation:
        """Each row with the rows of another relation that match it.

        `on` names columns that are equal, or is a condition over the `names` of both (the streams' own if none are
        given). `within` says how far apart their times may be: one length, or {"left": "3 minutes", "right":
        "2 minutes"}, how much later a row of the *other* side may be than one of this side. Instead, `on` may say it
        ("y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS"), or `rows` how many rows of each side count, of each
        partition if `partition_by` columns. `how` is inner, left, right or full.

        A join can be joined again, which is one join of all: `names` is then the name of the new one alone.

        >>> from millrace import Network
        >>> net = Network()
        >>> orders = net.stream("orders", "id INT, ts TIMESTAMP", time="ts", source=[[{"id": 1, "ts": 0}]])
        >>> paid = net.stream("paid", "id INT, ts TIMESTAMP", time="ts", source=[[{"id": 1, "ts": 5_000_000}]])
        >>> joined = orders.join(paid, on="id", within={"left": "5 seconds", "right": "0 seconds"})
        >>> joined.sql
        'SELECT * FROM orders [RANGE 5 seconds] AS orders JOIN paid [RANGE 0 seconds] AS paid USING (id)'
        >>> net.query("both", joined).run(on="local", until="end").results("both").column_names
        ['id', 'orders_ts', 'paid_ts']
        """
        check_member(self.network, other)
        before = self._to_join(how)
        left = [each.name for each in before.joined.parts] if before.joined else []
        free = [other] if before.joined else [before, other]
        found = named([each._stream_name() for each in free], names, taken=left)
        windows = side_windows(within, rows, partition_by)
        first = before.joined.parts if before.joined else (before._part(found[0]),)
        chain = replace(before.joined or Joined(first, (), ()), parts=with_windows(first, windows))
        right = replace(other._part(found[-1]), window=windows.get("right", ""))
        condition = join_condition(on)
        chain = chain.with_next(right, join_kind(how, without=not condition), condition)
        kept = before.predicate if before.joined else ""
        return self._joined([self, other], str(chain), latest(chain.parts), predicate=kept, joined=chain)

    def asof_join(
        self,
        other: Relation,
        on: Columns = (),
        *,
        tolerance: str | None = None,
        how: str = "inner",
        strict: bool = False,
        by: tuple[str, str] | None = None,
        names: tuple[str, str] | None = None,
    ) -> Relation:
        """Each row with the latest row of another relation that is not after it, and at most `tolerance` before.

        With `strict` it is before the row, not at its time. `how` is inner, or left, which keeps rows without one. `by`
        are the time columns of both, if not their own; `on` and `names` are as for `join`.

        >>> from millrace import Network
        >>> net = Network()
        >>> trades = net.stream("trades", "k STRING, ts TIMESTAMP", time="ts", source=[[{"k": "x", "ts": 9}]])
        >>> rows = [{"k": "x", "bid": 1, "ts": 7}, {"k": "x", "bid": 2, "ts": 9}, {"k": "x", "bid": 3, "ts": 10}]
        >>> quotes = net.stream("quotes", "k STRING, bid INT, ts TIMESTAMP", time="ts", source=[rows])
        >>> net = net.query("now", trades.asof_join(quotes, on="k").select("bid"))
        >>> net = net.query("before", trades.asof_join(quotes, on="k", strict=True).select("bid"))
        >>> handle = net.run(on="local", until="end")
        >>> handle.results("now").to_pylist(), handle.results("before").to_pylist()
        ([{'bid': 2}], [{'bid': 1}])
        """
        left, right = self._pair(other, names, by)
        text = f"{left} {asof_kind(how)} {right}{asof_condition(left, right, on, tolerance, strict=strict)}"
        return self._joined([self, other], text, latest([left]))

    def seq(
        self,
        *others: Relation,
        mode: Mode = "recent",
        on: Columns = (),
        within: str | None = None,
        outer: bool = False,
        state_limit: int | None = None,
        names: Sequence[str] | None = None,
    ) -> Relation:
        """Rows that follow each other: each row of the last relation with one of the one before, and so on.

        In mode "recent" it is the latest that is not after it; in mode "chronicle" the earliest that no other row has
        used, which needs `within`, or a `state_limit` of rows. With `outer` rows of the last relation without one are
        kept. `on` names columns that are equal, or is a condition over the `names`.

        >>> from millrace import Network
        >>> net = Network()
        >>> cases = net.stream("cases", "gate INT, ts TIMESTAMP", time="ts", source=[])
        >>> products = net.stream("products", "gate INT, ts TIMESTAMP", time="ts", source=[])
        >>> cases.seq(products, on="gate", mode="chronicle", within="5 minutes").sql.partition(" ON ")[2]
        'cases.gate = products.gate MODE CHRONICLE WITHIN INTERVAL 5 minutes'
        """
        relations = (self, *others)
        for each in others:
            check_member(self.network, each)
        found = named([each._stream_name() for each in relations], names)
        parts = [each._part(name) for each, name in zip(relations, found, strict=True)]
        text = " SEQ ".join(map(str, parts)) + sequence_clauses(parts, on, mode, within, outer=outer)
        return self._joined(relations, text, latest(parts[-1:]), limit=state_limit)

    def _joined(
        self,
        relations: Sequence[Relation],
        source: str,
        own_time: str,
        *,
        predicate: str = "",
        joined: Joined | None = None,
        limit: int | None = None,
    ) -> Relation:
        limit = limit or _limit(relations)
        made = Relation(self.network, source, predicate, state_limit=limit, joined=joined, own_time=own_time)
        return made._checked()

    def _pair(self, other: Relation, names: object, by: tuple[str, str] | None) -> tuple[Part, Part]:
        check_member(self.network, other)
        relations = (self, other)
        found = named([each._stream_name() for each in relations], names)
        left, right = (each._part(name) for each, name in zip(relations, found, strict=True))
        return (replace(left, time=by[0]), replace(right, time=by[1])) if by else (left, right)

    def _part(self, name: str) -> Part:
        """The relation as an input of a join."""
        plain = replace(self, ordered=False)
        outermost = self._outermost()
        window = None if outermost is None else outermost.window
        ends = window is not None and not isinstance(window, nodes.InstantWindow | nodes.TrailingWindow)
        time = nodes.WINDOW_END if ends else self._time_column()
        return Part(self.source if plain._is_stream() else f"({plain._select})", name, time, ends)

    def _to_join(self, how: str) -> Relation:
        """What a further relation is joined to: a join that can go on, or a relation like any other.

        A condition on joined rows may be checked after a further join only if that loses none of them.
        """
        base = self._base()
        if base.joined is None or (base.predicate and how in ("right", "full")):
            return replace(self, ordered=False, joined=None)
        return base

    def _stream_name(self) -> str | None:
        """The name of the one stream that it is made of row by row; None for others."""
        name = self.source
        return name if columns_of(name) is not None and self.items == "*" else None

    def _base(self) -> Relation:
        """The rows without their order, to build on: order holds for a whole query and is asked for last."""
        plain = replace(self, ordered=False)
        if self.items == "*":
            return plain
        return Relation(self.network, f"({plain._select})", state_limit=self.state_limit)

    def _is_stream(self) -> bool:
        plain = not self.predicate and self.items == "*" and not self.ordered
        return plain and self.own_time is None and not self.source.startswith("(")

    def _time(self) -> str:
        """What stands in ORDER BY."""
        return self.own_time or self._time_column() or "ts"

    def _time_column(self) -> str | None:
        """The name of the time column: a bound of an aggregate's window, or as its stream declares it, if it does."""
        outermost = self._outermost()
        if outermost is not None:
            return _time_of(outermost)
        scan = next(each for each in nodes.walk(self._root()) if isinstance(each, nodes.Scan))
        return scan.stream.time.column

    def _outermost(self) -> nodes.Aggregate | None:
        """The aggregate whose results its rows are, if they are."""
        found = [each for each in nodes.walk(self._root()) if isinstance(each, nodes.Aggregate)]
        return found[-1] if found else None

    def _root(self) -> nodes.Node:
        return self.network.bound(replace(self, ordered=False).sql).queries[-1].root

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
        is_join = base.own_time is not None
        window = "" if is_join else f" {self.window}"
        computed = with_window(aggregates, self.window) if is_join else aggregates
        items = ", ".join([*self.keys, *(f"{text} AS {name}" for name, text in computed.items())])
        where = f" WHERE {base.predicate}" if base.predicate else ""
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        text = f"(SELECT {items} FROM {base.source}{window}{where}{group})"
        return Relation(base.network, text, state_limit=base.state_limit)._checked()


def check_member(network: object, relation: object) -> None:
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


def _limit(relations: Sequence[Relation]) -> int | None:
    return max((each.state_limit or 0 for each in relations), default=0) or None
