"""Queries: select lists, FROM, and the clauses after it, with UNION and ORDER BY around them."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from millrace.errors import NotYet, QueryError
from millrace.language.grammar.cursor import Cursor
from millrace.language.grammar.from_parser import SELECT_HINT, FromParser
from millrace.language.grammar.statements import Body, Name, OrderItem, Placed, Select, SelectItem, WindowClause
from millrace.language.grammar.unsupported import refuse_unsupported
from millrace.language.grammar.window_parser import at_window, window

_WITH_HINT = "Write WITH name AS (SELECT ...), other AS (SELECT ...) SELECT ... FROM name ..."


class SelectParser:
    """Reads a query; a window after an aggregate is kept for the select that it stands in."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.inputs = FromParser(cursor, self.body)
        self.aggregate_windows: list[WindowClause] = []
        cursor.windows = self._take_window

    def body(self) -> Body:
        """Selects under UNION, ORDER BY for the whole, and common tables before them."""
        cursor = self.cursor
        known = self.inputs.common_tables
        if cursor.take_type(TokenType.WITH):
            self._common_tables()
        first = cursor.token
        selects = [self._operand()]
        while self.inputs.take_union():
            selects.append(self._operand())
        refuse_unsupported(cursor)
        order = cursor.listed(self._order_item) if cursor.take_type(TokenType.ORDER_BY) else ()
        refuse_unsupported(cursor)
        self._emit()
        self.inputs.common_tables = known
        return Body(tuple(selects), order, place=cursor.source.of_token(first))

    def _common_tables(self) -> None:
        """`name AS (query), ...` after WITH: each is known to those after it and to the query, as a subquery."""
        cursor = self.cursor
        if cursor.at("RECURSIVE"):
            raise NotYet("WITH RECURSIVE is not supported yet", hint=_WITH_HINT, place=cursor.place())
        names = cursor.listed(self._common_table)
        for position, name in enumerate(names):
            if name.text.lower() in (each.text.lower() for each in names[:position]):
                raise QueryError(f'"{name.text}" is declared twice', hint="Choose another name.", place=name.place)

    def _common_table(self) -> Name:
        cursor = self.cursor
        name = cursor.name("the name of a common table", _WITH_HINT)
        cursor.expect("AS", hint=_WITH_HINT)
        cursor.expect("(", hint=_WITH_HINT, what='"("')
        body = self.inputs.subquery()
        self.inputs.common_tables = {**self.inputs.common_tables, name.text.lower(): body}
        return name

    def _operand(self) -> Select | Body:
        return self.inputs.subquery() if self.cursor.take_type(TokenType.L_PAREN) else self._select()

    def _select(self) -> Select:
        cursor = self.cursor
        first = cursor.token
        cursor.expect("SELECT", hint=SELECT_HINT)
        distinct = Placed(place=cursor.source.of_token(cursor.last)) if cursor.take("DISTINCT") else None
        cursor.take_type(TokenType.ALL)
        outer, self.aggregate_windows = self.aggregate_windows, []
        items = cursor.listed(self._item)
        cursor.expect("FROM", hint=SELECT_HINT, what='"," or FROM')
        read = self.inputs.clause()
        where = self._condition() if cursor.take_type(TokenType.WHERE) else None
        read = self.inputs.with_window_after(read)
        by_group = cursor.take_type(TokenType.GROUP_BY)
        by_all = by_group and cursor.take_type(TokenType.ALL)
        groups = cursor.listed(self._group) if by_group and not by_all else ()
        having = self._condition() if cursor.take_type(TokenType.HAVING) else None
        qualify = self._condition() if cursor.take("QUALIFY") else None
        windows, self.aggregate_windows = tuple(self.aggregate_windows), outer
        return Select(
            items, read.source, where, groups, having, windows, distinct, qualify, read.joins, read.sequence,
            read.window, by_all, read.explodes, place=cursor.source.of_token(first),
        )  # fmt: skip

    def _item(self) -> SelectItem:
        first = self.cursor.token
        expression = self.cursor.expression("a column or an expression", SELECT_HINT)
        alias = self.cursor.alias()
        return SelectItem(expression, alias, place=self.cursor.place_since(first))

    def _condition(self) -> exp.Expr:
        return self.cursor.expression("a condition", SELECT_HINT)

    def _group(self) -> exp.Expr:
        refuse_unsupported(self.cursor)
        return self.cursor.expression("a column to group by", SELECT_HINT)

    def _order_item(self) -> OrderItem:
        cursor = self.cursor
        expression = cursor.expression("the time column", "ORDER BY takes the time column of the stream.")
        descending = cursor.take_type(TokenType.DESC)
        cursor.take_type(TokenType.ASC)
        if cursor.take("NULLS"):
            cursor.skip()
        return OrderItem(expression, descending)

    def _emit(self) -> None:
        """`EMIT ON WINDOW CLOSE` is what happens anyway."""
        if self.cursor.take("EMIT"):
            self.cursor.expect("ON", "WINDOW", "CLOSE", hint="Write EMIT ON WINDOW CLOSE, or leave it out.")

    def _take_window(self, node: exp.Expr) -> bool:
        """Read a window in brackets after an aggregate, if one stands there."""
        if not at_window(self.cursor):
            return False
        if not isinstance(node, (exp.Anonymous, exp.Filter)):
            raise QueryError(
                "a window follows something that is not an aggregate",
                hint="Put the window after the stream in FROM, or after an aggregate such as count(*).",
                place=self.cursor.place(),
            )
        self.aggregate_windows.append(window(self.cursor))
        return True
