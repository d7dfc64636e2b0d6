"""Relations: queries built step by step in Python, as text of SQL.

A relation is a piece of SQL and its network; every method returns a new one. So checks, plans and meaning are those of
the language, and `relation.sql` shows what was built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from millrace.api.durations import Extent
from millrace.api.join_text import (
    Columns,
    Counts,
    How,
    InputText,
    JoinText,
    Lengths,
    Mode,
    asof_condition,
    asof_kind,
    check_sequence,
    columns_of,
    join_condition,
    join_kind,
    latest,
    looked_from,
    named,
    sequence_clauses,
    side_windows,
    times_shown,
    unbounded_join,
    with_window,
    with_windows,
)
from millrace.api.relation_times import ends_windows, time_column
from millrace.api.window_text import window_clause
from millrace.errors import RequestError, UnboundedState
from millrace.plan.nodes.aggregate_nodes import WINDOW_END, WINDOW_START
from millrace.plan.nodes.node import Node

if TYPE_CHECKING:
    from millrace.api.network import Network


@dataclass(frozen=True)
class Relation:
    """Rows of a stream, a join or a query, not yet computed."""

    network: Network
    source: str
    predicate: str = ""
    items: str = "*"
    ordered: bool = False
    state_limit: int | None = None
    joined: JoinText | None = None
    """The join that the source is, if further relations can be joined to it."""
    timed: tuple[InputText, ...] | None = None
    """Of a join, the inputs whose latest time is the time of its rows; None if it is no join."""

    @property
    def sql(self) -> str:
        """The query as SQL."""
        return self._select + (f" WITH (state_limit = {self.state_limit})" if self.state_limit else "")

    @property
    def _select(self) -> str:
        """The query without its options, as a subquery has it."""
        where = f" WHERE {self.predicate}" if self.predicate else ""
        order = f" ORDER BY {self._time()}" if self.ordered else ""
        return f"SELECT {self.items} FROM {self.source}{where}{order}"

    @property
    def schema(self) -> pa.Schema:
        """The columns it has."""
        return self.network.root(self.sql).schema

    def where(self, predicate: str) -> Relation:
        """The rows where a condition holds."""
        base = self._base()
        both = f"({base.predicate}) AND ({predicate})" if base.predicate else predicate
        return replace(base, predicate=both, ordered=self.ordered)._checked()

    def select(self, *items: str, **named: str) -> Relation:
        """Columns and expressions, by themselves or under a name."""
        chosen = [*items, *(f"{text} AS {name}" for name, text in named.items())]
        return replace(self._base(), items=", ".join(chosen), ordered=self.ordered)._checked()

    def union(self, *others: Relation, truth: Relation | None = None) -> Relation:
        """All rows of all relations; columns are matched by position.

        Where two streams update one key at the same time, the update of the stream `truth` wins; without it, the one
        that arrives first.
        """
        relations = (self, *others)
        for each in others:
            check_member(self.network, each)
        if all(each._is_stream() for each in relations):
            source = " UNION ".join(each.source for each in relations) + (f" TRUTH {truth.source}" if truth else "")
        elif truth is not None:
            raise RequestError(
                "truth works only in a union of streams",
                hint="Unite the streams, a.union(b, truth=b), and filter or select after that.",
            )
        else:
            source = f"({' UNION ALL '.join(each._select for each in relations)})"
        return Relation(self.network, source, state_limit=_limit(relations))._checked()

    def distinct(self) -> Relation:
        """Each row once; the time must be among the columns."""
        plain = replace(self, ordered=False)
        text = f"(SELECT DISTINCT{plain._select.removeprefix('SELECT')})"
        return Relation(self.network, text, ordered=self.ordered, state_limit=self.state_limit)._checked()

    def top(self, n: int, *, by: str, partition_by: str | Sequence[str] = (), ties: bool = False) -> Relation:
        """The first n results of each window and partition, in the order of `by`, such as "n desc".

        With `ties`, also the results that rank equal with the last of them.
        """
        further = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        parts = ", ".join([WINDOW_START, WINDOW_END, *further])
        base = self._base()
        rank = f"{'rank' if ties else 'row_number'}() OVER (PARTITION BY {parts} ORDER BY {by})"
        text = f"({base._select} QUALIFY {rank} <= {n})"
        return Relation(self.network, text, state_limit=base.state_limit)._checked()

    def order_by_time(self) -> Relation:
        """The rows sorted by their time, which for an aggregate is a bound of its window.

        The time of joined rows is the latest of their inputs. How a join keeps the order is a setting of the query:
        `net.query(name, relation, settings={"join": "filter_order"})`.
        """
        return replace(self, ordered=True)._checked()

    def window(
        self,
        *,
        range: Extent | None = None,
        rows: int | None = None,
        session: Extent | None = None,
        slide: Extent | None = None,
        by: str | None = None,
        partition_by: str | Sequence[str] = (),
        state_limit: int | None = None,
    ) -> Windowed:
        """Windows over a length of time or a number of rows, one every `slide`; by default they do not overlap.

        Where rows progress by a BIGINT, `range`, `session` and `slide` are numbers.

        With `slide="row"` a window ends at each row. `range="unlimited"` reaches back to the beginning, and needs a
        `state_limit` of groups. A `session` ends when no row has come for that long. `by` is another time column than
        the stream's own; of a join, one such as "x.ts" instead of the latest. With `partition_by`, `rows` are counted
        per partition.
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
        """Each row with the rows of another relation that match it; `how` is inner, left, right or full.

        `on` names columns that are equal, or is a condition over the `names` of both (by default those of the streams).
        `within` limits how far apart their times may be: one length, or {"left": "3 minutes", "right": "2 minutes"},
        where a row of the *other* side may be that much later than a row of the named side. Instead, `on` may compare
        the times ("y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS"), or `rows` limits how many rows of each side
        count, per partition if there are `partition_by` columns.

        A join can be joined again, which makes one join of all; `names` is then the name of the new relation alone.

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
        chain, right = before._beside(other, names)
        windows = side_windows(within, rows, partition_by)
        condition = join_condition(on)
        kind = join_kind(how, without=not condition)
        chain = replace(chain, inputs=with_windows(chain.inputs, windows))
        chain = chain.with_next(replace(right, window=windows.get("right", "")), kind, condition)
        try:
            return before._chained(chain, other, chain.inputs)
        except UnboundedState as error:
            raise unbounded_join(error, within) from None

    def asof_join(
        self,
        other: Relation,
        on: Columns = (),
        *,
        tolerance: Extent | None = None,
        how: str = "inner",
        strict: bool = False,
        by: tuple[str, str] | None = None,
        names: str | tuple[str, str] | None = None,
    ) -> Relation:
        """Each row with the latest row of another relation that is not after it, and at most `tolerance` before it.

        With `strict` that row is before it, not at the same time. `how` is inner, or left, which keeps rows without a
        match. `by` gives other time columns of both than their own; those of a join with the name of their input:
        ("a.ts", "ts"). `on` and `names` are as for `join`; two names make a join so far one relation, whose columns are
        named as in its results.

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
        check_member(self.network, other)
        base = self._base()
        before = base if base.joined and isinstance(names, str | None) else replace(self, ordered=False, joined=None)
        chain, right = before._beside(other, names)
        left = looked_from((before.joined and before.timed) or chain.inputs, by and by[0])
        right = replace(right, times=(by[1],)) if by else looked_from([right], None, "right")
        condition = asof_condition(left, right, on, tolerance, strict=strict)
        return before._chained(chain.with_next(right, asof_kind(how), condition), other, (left,))

    def seq(
        self,
        *others: Relation,
        mode: Mode = "recent",
        on: Columns = (),
        within: Extent | None = None,
        outer: bool = False,
        state_limit: int | None = None,
        names: Sequence[str] | None = None,
    ) -> Relation:
        """Rows that follow each other: each row of the last relation with one row of the relation before, and so on.

        In mode "recent" that is the latest row that is not after it; in mode "chronicle" the earliest that no other row
        has used, which needs `within`, or a `state_limit` of rows. `outer` keeps rows of the last relation without a
        match. `on` names columns that are equal, or is a condition over the `names`. Unlike in a join, these columns
        stay in every relation, such as `products.gate`.

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
        limit = state_limit or _limit(relations)
        check_sequence(mode, len(relations), limited=within is not None or limit is not None)
        found = named([each._stream_name() for each in relations], names)
        inputs = [each._as_input(name) for each, name in zip(relations, found, strict=True)]
        text = " SEQ ".join(map(str, inputs)) + sequence_clauses(inputs, on, mode, within, outer=outer)
        return Relation(self.network, text, state_limit=limit, timed=(inputs[-1],))._checked()

    def _beside(self, other: Relation, names: object) -> tuple[JoinText, InputText]:
        """The join so far, or this relation as its first input, and the other relation as the next input."""
        free = [other] if self.joined else [self, other]
        taken = [each.name for each in self.joined.inputs] if self.joined else []
        found = named([each._stream_name() for each in free], names, taken=taken)
        return self.joined or JoinText((self._as_input(found[0]),), (), ()), other._as_input(found[-1])

    def _chained(self, chain: JoinText, other: Relation, timed: tuple[InputText, ...]) -> Relation:
        kept = self.predicate if self.joined else ""
        limit = _limit([self, other])
        return Relation(self.network, str(chain), kept, state_limit=limit, joined=chain, timed=timed)._checked()

    def _as_input(self, name: str) -> InputText:
        """The relation as an input of a join."""
        plain = replace(self, ordered=False)
        text = self.source if plain._is_stream() else f"({plain._select})"
        root = self._root()
        if self.timed is not None and self.items == "*":
            times = times_shown(self.timed, root.schema.names)
            return InputText(text, name, times, ends=len(times) == 1 and any(each.ends for each in self.timed))
        ends = ends_windows(root)
        time = WINDOW_END if ends else time_column(root)
        return InputText(text, name, (time,) if time is not None and time in root.schema.names else (), ends)

    def _to_join(self, how: str) -> Relation:
        """What a further relation is joined to: a join that can take one more input, or this relation as a whole.

        A condition on joined rows may be checked after a further join only if that join loses none of them.
        """
        base = self._base()
        if base.joined is None or base.joined.looks_back or (base.predicate and how in ("right", "full")):
            return replace(self, ordered=False, joined=None)
        return base

    def _stream_name(self) -> str | None:
        """The name of the stream whose rows these are; None if they are not those of one stream."""
        name = self.source
        return name if columns_of(name) is not None and self.items == "*" else None

    def _base(self) -> Relation:
        """The rows without their order, as the base of a further step: only a whole query has an order."""
        plain = replace(self, ordered=False)
        if self.items == "*":
            return plain
        return Relation(self.network, f"({plain._select})", state_limit=self.state_limit)

    def _is_stream(self) -> bool:
        plain = not self.predicate and self.items == "*" and not self.ordered
        return plain and self.timed is None and not self.source.startswith("(")

    def _time(self) -> str:
        """The expression for ORDER BY."""
        return latest(self.timed or ()) or time_column(self._root()) or "ts"

    def _root(self) -> Node:
        return self.network.root(replace(self, ordered=False).sql)

    def _checked(self) -> Relation:
        self.network.root(self.sql)
        return self


@dataclass(frozen=True)
class Windowed:
    """Rows in windows, to be aggregated by keys."""

    relation: Relation
    window: str
    keys: tuple[str, ...] = ()

    def group_by(self, *keys: str) -> Windowed:
        """The same windows, with one group per value of the keys."""
        return replace(self, keys=(*self.keys, *keys))

    def agg(self, **aggregates: str) -> Relation:
        """One row per window and group, with the named aggregates."""
        base = self.relation
        is_join = base.timed is not None
        window = "" if is_join else f" {self.window}"
        computed = with_window(aggregates, self.window) if is_join else aggregates
        items = ", ".join([*self.keys, *(f"{text} AS {name}" for name, text in computed.items())])
        where = f" WHERE {base.predicate}" if base.predicate else ""
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        text = f"(SELECT {items} FROM {base.source}{window}{where}{group})"
        return Relation(base.network, text, state_limit=base.state_limit)._checked()

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse the methods of rows."""
        if not name.startswith("_") and hasattr(Relation, name):
            raise _no_rows()
        raise AttributeError(f"windows have no {name!r}", name=name, obj=self)


def _no_rows() -> RequestError:
    return RequestError("windows are no rows yet", hint="Aggregate them: .agg(n='count(*)').")


def check_member(network: object, relation: object) -> None:
    """Refuse what is no relation of the network."""
    if isinstance(relation, Windowed):
        raise _no_rows()
    if not isinstance(relation, Relation):
        raise RequestError(
            f'"{relation}" is no relation', hint="Use what net.stream(...) gives, or write the query with net.sql(...)."
        )
    if relation.network is not network:
        raise RequestError(
            f'"{relation.sql}" belongs to another network',
            hint="Declare its streams in this network and build it there.",
        )


def _limit(relations: Sequence[Relation]) -> int | None:
    return max((each.state_limit or 0 for each in relations), default=0) or None
