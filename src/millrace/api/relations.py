"""Relations: queries built step by step in Python, as text of SQL.

A relation is a piece of SQL and its network; every method returns a new one. So checks, plans and meaning are those of
the language, and `relation.sql` shows what was built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from millrace.api.relation_inputs import beside, extended, inputs_of
from millrace.api.relation_times import time_column
from millrace.api.sql_text.durations import Extent
from millrace.api.sql_text.join_text import Columns, Counts, How, InputText, JoinText, Lengths, latest, unbounded_join
from millrace.api.sql_text.sequence_text import (
    Mode,
    asof_condition,
    asof_kind,
    check_sequence,
    looked_from,
    sequence_clauses,
)
from millrace.api.sql_text.window_text import window_clause
from millrace.api.windowed import Windowed, no_rows
from millrace.callers import at_caller
from millrace.errors import RequestError, UnboundedState
from millrace.plan.explain.html_text import column_types, html_table
from millrace.plan.nodes.aggregate_nodes import WINDOW_END, WINDOW_START
from millrace.plan.nodes.node import Node

if TYPE_CHECKING:
    from millrace.api.network import Network


@at_caller
@dataclass(frozen=True)
class Relation:
    """Rows of a stream, a join or a query, not yet computed."""

    network: Network
    source: str
    predicate: str = ""
    items: str = "*"
    ordered: tuple[str, ...] | None = None
    """The columns that its order goes by after the time; None if it has no order."""
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
        order = "" if self.ordered is None else f" ORDER BY {', '.join([self._time(), *self.ordered])}"
        return f"SELECT {self.items} FROM {self.source}{where}{order}"

    def __repr__(self) -> str:
        return f"{self.sql}\n" + "\n".join(f"  {name} {kind}" for name, kind in column_types(self.schema))

    def _repr_html_(self) -> str:
        """What a notebook shows: the columns, and the query as SQL."""
        return html_table(self.sql, ["column", "type"], column_types(self.schema))

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
        plain = replace(self, ordered=None)
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

    def order_by_time(self, *further: str) -> Relation:
        """The rows sorted by their time, which for an aggregate is a bound of its window, then by columns: "n DESC".

        The time of joined rows is the latest of their inputs. How a join keeps the order is a setting of the query:
        `net.query(name, relation, settings={"join": "filter_order"})`.
        """
        return replace(self, ordered=further)._checked()

    def window(
        self,
        *,
        range: Extent | None = None,
        rows: int | None = None,
        session: Extent | None = None,
        slide: Extent | None = None,
        by: str | None = None,
        partition_by: str | Sequence[str] = (),
        offset: Extent | None = None,
        zone: str | None = None,
        state_limit: int | None = None,
    ) -> Windowed:
        """Windows over a length of time or a number of rows, one every `slide`; by default they do not overlap.

        Where rows progress by a BIGINT, `range`, `session` and `slide` are numbers.

        With `slide="row"` a window ends at each row. `range="unlimited"` reaches back to the beginning, and needs a
        `state_limit` of groups. A `session` ends when no row has come for that long. `by` is another time column than
        the stream's own; of a join, one such as "x.ts" instead of the latest. With `partition_by`, `rows` are counted
        per partition.

        With `zone`, such as "Europe/Berlin", windows of a `range` begin when the clock there shows a multiple of the
        slide: `range="1 day"` is a day there, whatever its length. `range="1 month"` is a month. An `offset` moves
        their starts, `range="1 day", offset="6 hours"`.
        """
        base = self._base()
        limit = state_limit or base.state_limit
        text = window_clause(
            range, rows, session, slide, by, partition_by, offset=offset, zone=zone, limited=limit is not None
        )
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
        before = extended(self, how)
        chain, right = beside(before, other, names)
        chain = chain.joined(right, on, how, within, rows, partition_by)
        try:
            return before._chained(chain, other, chain.inputs)
        except UnboundedState as error:
            raise unbounded_join(error, within) from None

    def join_table(
        self, table: str, on: Columns, *, how: str = "inner", names: str | tuple[str, str] | None = None
    ) -> Relation:
        """Each row with the rows of a table (see `Network.table`) that match it, as the table is at the row's time.

        It never waits, and has the time of the row. `on` names columns that are equal, or is a condition over the
        `names` of both with an equality in it. `how` is inner, or left, which keeps rows without a match. To keep rows
        by a table alone, write `where("user_id IN (SELECT id FROM users)")`.

        >>> from millrace import Network
        >>> net = Network().table("users", "id INT, name STRING", [{"id": 1, "name": "Ada"}], key="id")
        >>> clicks = net.stream("clicks", "id INT, ts TIMESTAMP", time="ts", source=[[{"id": 1, "ts": 0}]])
        >>> named = clicks.join_table("users", on="id").select("id", "name")
        >>> net.query("named", named).run(on="local", until="end").results("named").to_pylist()
        [{'id': 1, 'name': 'Ada'}]
        """
        if how not in ("inner", "left"):
            raise RequestError(f'a join with a table cannot be "{how}"', hint="Write how='inner' or how='left'.")
        before = extended(self, how)
        given = [names] if isinstance(names, str) else list(names or ())
        if before.joined:
            chain, timed = before.joined, before.timed
        else:
            chain = JoinText(tuple(inputs_of([before], given[:1] or None, taken=[table])), (), ())
            timed = chain.inputs
        right = InputText(table, given[-1] if given else table)
        return before._chained(chain.joined(right, on, how, None, None, ()), before, timed or ())

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
        before = base if base.joined and isinstance(names, str | None) else replace(self, ordered=None, joined=None)
        chain, right = beside(before, other, names)
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
        inputs = inputs_of(relations, names)
        text = " SEQ ".join(map(str, inputs)) + sequence_clauses(inputs, on, mode, within, outer=outer)
        return Relation(self.network, text, state_limit=limit, timed=(inputs[-1],))._checked()

    def _chained(self, chain: JoinText, other: Relation, timed: tuple[InputText, ...]) -> Relation:
        kept = self.predicate if self.joined else ""
        limit = _limit([self, other])
        return Relation(self.network, str(chain), kept, state_limit=limit, joined=chain, timed=timed)._checked()

    def _base(self) -> Relation:
        """The rows without their order, as the base of a further step: only a whole query has an order."""
        plain = replace(self, ordered=None)
        if self.items == "*":
            return plain
        return Relation(self.network, f"({plain._select})", state_limit=self.state_limit)

    def _is_stream(self) -> bool:
        plain = not self.predicate and self.items == "*" and self.ordered is None
        return plain and self.timed is None and not self.source.startswith("(")

    def _time(self) -> str:
        """The expression for ORDER BY."""
        return latest(self.timed or ()) or time_column(self._root()) or "ts"

    def _root(self) -> Node:
        return self.network.root(replace(self, ordered=None).sql)

    def _checked(self) -> Relation:
        self.network.root(self.sql)
        return self


def check_member(network: object, relation: object) -> None:
    """Refuse what is no relation of the network."""
    if isinstance(relation, Windowed):
        raise no_rows()
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
