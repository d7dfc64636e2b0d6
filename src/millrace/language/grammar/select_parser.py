"""Queries: select lists, FROM, and the clauses after it, with UNION and ORDER BY around them."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from millrace.errors import NotYet, QueryError
from millrace.language.grammar.from_parser import SELECT_HINT, FromParser
from millrace.language.grammar.statements import Body, Name, OrderItem, Placed, Select, SelectItem, WindowClause
from millrace.language.grammar.text.cursor import Cursor
from millrace.language.grammar.unsupported import LIMIT, refuse_unsupported
from millrace.language.grammar.window_parser import at_window, window

_WITH_HINT = "Write WITH name AS (SELECT ...), other (column, ...) AS (SELECT ...) SELECT ... FROM name ..."
_ORDER_HINT = "ORDER BY takes the time column of the stream, and columns of the result after it."

_DISTINCT_ON = (
    "For the last row of each key in a window write "
    "SELECT k, max_by(v, ts) AS v FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k."
)
_NAMES_HINT = "Write posexplode(column) AS (place, element)."


class SelectParser:
    """Reads a query; a window after an aggregate is kept for the select that it stands in."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.inputs = FromParser(cursor, self.body)
        self.aggregate_windows: list[WindowClause] = []
        cursor.windows = self._take_window

    def body(self, *, console: bool = False) -> Body:
        """Selects under UNION, ORDER BY for the whole, and common tables before them.

        Rows that are shown on the `console` may be limited after it.
        """
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
        self._emit()
        refuse_unsupported(cursor)
        if not console and cursor.at("LIMIT"):
            raise QueryError("LIMIT is for a SELECT whose rows are shown, at its end", hint=LIMIT, place=cursor.place())
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
        columns = cursor.names("a column", _WITH_HINT) if cursor.at_type(TokenType.L_PAREN) else ()
        cursor.expect("AS", hint=_WITH_HINT)
        cursor.expect("(", hint=_WITH_HINT, what='"("')
        body = replace(self.inputs.subquery(), columns=columns)
        self.inputs.common_tables = {**self.inputs.common_tables, name.text.lower(): body}
        return name

    def _operand(self) -> Select | Body:
        return self.inputs.subquery() if self.cursor.take_type(TokenType.L_PAREN) else self._select()

    def _select(self) -> Select:
        cursor = self.cursor
        first = cursor.token
        hint = SELECT_HINT
        if cursor.at("INSERT"):
            hint = "Write INSERT INTO sink WITH ... SELECT ..., or CREATE QUERY name INTO sink AS SELECT ..."
        elif cursor.last and cursor.last.text == ")" and cursor.second.text.upper() == "AS":
            hint = "Write a comma between two common tables: WITH a AS (SELECT ...), b AS (SELECT ...) SELECT ..."
        elif cursor.last and cursor.last.text == "(":
            hint = "In parentheses stands a query; a stream is written without them: FROM s."
        cursor.expect("SELECT", hint=hint)
        distinct = Placed(place=cursor.source.of_token(cursor.last)) if cursor.take("DISTINCT") else None
        if distinct is not None and cursor.at("ON", "("):
            raise NotYet("DISTINCT ON is not supported yet", hint=_DISTINCT_ON, place=cursor.place())
        cursor.take_type(TokenType.ALL)
        numbers = (TokenType.NUMBER, TokenType.L_PAREN) if cursor.at("TOP") else (TokenType.NUMBER,)
        if (cursor.at("TOP") or cursor.at("FIRST")) and cursor.second.token_type in numbers:
            raise QueryError(f"{cursor.token.text.upper()} is not supported", hint=LIMIT, place=cursor.place())
        outer, self.aggregate_windows = self.aggregate_windows, []
        items = cursor.listed(self._item)
        cursor.expect("FROM", hint=self._after_item(), what='"," or FROM')
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

    def _after_item(self) -> str:
        """What to write where neither a comma nor FROM follows an item of the list."""
        token, last = self.cursor.token, self.cursor.last
        if last and last.text.upper() == "FILTER":
            return "Write FILTER (WHERE condition)."
        if token and token.text.upper() == "INTO":
            return "Write INSERT INTO sink SELECT ..., or CREATE QUERY name INTO sink AS SELECT ..."
        if not token:
            return "Write FROM and a stream: a query reads one."
        word = last.text if token.text == "(" and last else token.text
        return f'Write a comma before "{word}" if it is a further column. {SELECT_HINT}'

    def _item(self) -> SelectItem:
        first = self.cursor.token
        expression = self.cursor.expression("a column or an expression", SELECT_HINT)
        here = self.cursor.position
        if self.cursor.take_type(TokenType.ALIAS) and self.cursor.at_type(TokenType.L_PAREN):
            names = self.cursor.names("the name of a column", _NAMES_HINT)
            return SelectItem(expression, names=names, place=self.cursor.place_since(first))
        self.cursor.back_to(here)
        return SelectItem(expression, self.cursor.alias(), place=self.cursor.place_since(first))

    def _condition(self) -> exp.Expr:
        return self.cursor.expression("a condition", SELECT_HINT)

    def _group(self) -> exp.Expr:
        refuse_unsupported(self.cursor)
        return self.cursor.expression("a column to group by", SELECT_HINT)

    def _order_item(self) -> OrderItem:
        cursor = self.cursor
        expression = cursor.expression("the time column", _ORDER_HINT)
        descending = cursor.take_type(TokenType.DESC)
        cursor.take_type(TokenType.ASC)
        if not cursor.take("NULLS"):
            return OrderItem(expression, descending)
        first = cursor.take("FIRST")
        if not first:
            cursor.expect("LAST", hint=_ORDER_HINT, what="FIRST or LAST")
        return OrderItem(expression, descending, first)

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
