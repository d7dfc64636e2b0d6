"""Joins with tables as they are written: JOIN and LEFT JOIN of a declared table, IN and NOT IN over its rows.

Rules:
- A table cannot be the first input, part of a union, or under a window.
- WHERE over streams alone stays below the join, where it leaves less to look up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from millrace.errors import QueryError
from millrace.language.expressions.scopes import Scope
from millrace.language.grammar.statements import FromItem, JoinClause, Name, Select
from millrace.language.grammar.text.places import place_of, placed_as
from millrace.language.joins.join_conditions import written_conjuncts
from millrace.plan.nodes.endpoints import Table

_HINT = "Write FROM stream AS s JOIN table AS t ON s.key = t.key."
Tables = Mapping[str, Table]


@dataclass(frozen=True)
class WrittenTable:
    """A join with a table as it is written."""

    clause: JoinClause
    table: Table
    qualifier: str

    @property
    def scope(self) -> Scope:
        return Scope(self.table.schema, self.qualifier)


def without_tables(select: Select, tables: Tables) -> tuple[Select, tuple[WrittenTable, ...]]:
    """A select without its joins with tables, and those."""
    if not tables:
        return select, ()
    if (first := _table_of(select.source, tables)) is not None:
        raise QueryError(f'table "{first.name}" stands where a stream should', hint=_HINT, place=select.source.place)
    found: list[WrittenTable] = []
    streams: list[JoinClause] = []
    for clause in select.joins:
        table = _table_of(clause.item, tables)
        if table is None:
            _check_stream_after(clause, found)
            streams.append(clause)
        else:
            _check_clause(clause, table)
            found.append(WrittenTable(clause, table, clause.item.alias.text if clause.item.alias else table.name))
    return (replace(select, joins=tuple(streams)), tuple(found)) if found else (select, ())


def _table_of(item: FromItem, tables: Tables) -> Table | None:
    named = [tables.get(each.text.lower()) if isinstance(each, Name) else None for each in item.sources]
    table = next((each for each in named if each is not None), None)
    if table is not None and len(named) > 1:
        raise QueryError(f'table "{table.name}" is part of a union', hint=_HINT, place=item.place)
    return table


def _check_stream_after(clause: JoinClause, before: Sequence[WrittenTable]) -> None:
    """Refuse a join that keeps rows of a later stream which an earlier join with a table would drop."""
    if before and clause.kind in ("right", "full"):
        raise QueryError(
            f'{clause.kind.upper()} JOIN after a join with table "{before[0].table.name}" is not supported yet',
            hint="Join the table last, or in a subquery.",
            place=clause.place,
        )


def _check_clause(clause: JoinClause, table: Table) -> None:
    if clause.kind not in ("inner", "left"):
        words = {"seq": "SEQ", "asof": "ASOF JOIN"}.get(clause.kind, f"{clause.kind.upper()} JOIN")
        hint = {
            "asof": "A row meets the table as it is at its time anyway: write JOIN or LEFT JOIN.",
            "seq": "Put the sequence into a subquery, and join the table to it.",
        }.get(clause.kind, "Which rows of the table no row will match is never known: write JOIN or LEFT JOIN.")
        raise QueryError(f'{words} of table "{table.name}" is not possible', hint=hint, place=clause.place)
    if clause.item.window is not None:
        raise QueryError(
            f'table "{table.name}" has a window',
            hint="A table is there as a whole: leave the window out.",
            place=clause.item.window.place,
        )


def parted(
    select: Select, written: Sequence[WrittenTable], tables: Tables, *, all_above: bool
) -> tuple[Select, list[exp.Expr]]:
    """A select with only the conditions of WHERE that are about streams alone, and the other conditions; or with none
    of them."""
    if select.where is None:
        return select, []
    below: list[exp.Expr] = []
    above: list[exp.Expr] = []
    for each in written_conjuncts(select.where):
        reads = all_above or membership(each, tables) is not None
        (above if reads or _reads_tables(each, written) else below).append(each)
    if not above:
        return select, []
    where = None
    for each in below:
        where = each if where is None else placed_as(exp.And(this=where, expression=each), select.where)
    return replace(select, where=where), above


def _reads_tables(node: exp.Expr, written: Sequence[WrittenTable]) -> bool:
    """True if a condition names a column of a table, or one that it may be of."""
    for column in node.find_all(exp.Column):
        owner = column.parts[0].name.lower() if len(column.parts) > 1 else None
        if owner is not None and any(owner == each.qualifier.lower() for each in written):
            return True
        if owner is None and any(each.scope.find(column.name) is not None for each in written):
            return True
    return False


@dataclass(frozen=True)
class Membership:
    """`value [NOT] IN (SELECT column FROM table [WHERE ...])`."""

    value: exp.Expr
    table: Table
    qualifier: str
    column: exp.Column
    where: exp.Expr | None
    negated: bool


def membership(node: exp.Expr, tables: Tables) -> Membership | None:
    """What a condition says of a table's rows, if it is IN over a table."""
    negated = bool(node.args.get("negate"))
    while isinstance(node, exp.Not | exp.Paren):
        negated ^= isinstance(node, exp.Not)
        node = node.this
        negated ^= bool(node.args.get("negate"))
    query = node.args.get("query") if isinstance(node, exp.In) else None
    select = query.unnest() if isinstance(query, exp.Subquery) else query
    if not isinstance(select, exp.Select):
        return None
    source = next(iter(_sources(select)), None)
    table = None if source is None else tables.get(source.name.lower())
    if source is None or table is None:
        return None
    if any(map(select.args.get, ("group", "having", "order", "limit", "joins", "qualify"))):
        raise QueryError(
            f'IN over table "{table.name}" takes a column and WHERE, and nothing else',
            hint=f"Write IN (SELECT column FROM {table.name} WHERE ...).",
            place=place_of(node.this),
        )
    if len(select.expressions) != 1 or not isinstance(select.expressions[0], exp.Column):
        raise QueryError(
            f'IN over table "{table.name}" takes one column of it',
            hint=f"Write IN (SELECT column FROM {table.name}).",
            place=place_of(node.this),
        )
    where = select.args.get("where")
    name = source.alias or table.name
    return Membership(node.this, table, name, select.expressions[0], where and where.this, negated)


def _sources(select: exp.Select) -> Iterator[exp.Table]:
    source = select.args.get("from_") or select.args.get("from")
    if source is not None and isinstance(source.this, exp.Table):
        yield source.this
