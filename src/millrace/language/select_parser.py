"""Queries: select lists, FROM with unions and windows, and the clauses after them, QUALIFY included.

What is understood but has no engine part yet is refused here, where its place is known best.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import NotYet, Place, QueryError
from millrace.language.statements import Body, FromItem, Name, OrderItem, Select, SelectItem, WindowClause
from millrace.language.window_parser import WindowParser

_JOIN_WORDS = {
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "FULL",
    "CROSS",
    "OUTER",
    "SEMI",
    "ANTI",
    "NATURAL",
    "ASOF",
    "SEQ",
    "LATERAL",
}
_SELECT_HINT = "A query reads SELECT columns FROM stream [window] WHERE ... GROUP BY ... HAVING ..."


class SelectParser(WindowParser):
    """Reads the body of a query."""

    def body(self) -> Body:
        """Selects under UNION, and ORDER BY for the whole."""
        first = self._curr
        selects = [self._select_operand()]
        while self._match(TokenType.UNION):
            self._union_kind()
            selects.append(self._select_operand())
        self._refuse_after_select()
        order = self._order() if self._match(TokenType.ORDER_BY) else ()
        self._refuse_after_select()
        self._emit()
        return Body(tuple(selects), self.source.of_token(first), order)

    def _select_operand(self) -> Select | Body:
        if self._match(TokenType.L_PAREN):
            body = self.body()
            self._close("the subquery")
            return body
        return self._one_select()

    def _one_select(self) -> Select:
        first = self._curr
        if not self._match(TokenType.SELECT):
            raise self.wrong("SELECT", _SELECT_HINT)
        distinct = self.source.of_token(self._prev) if self.take("DISTINCT") else None
        self._match(TokenType.ALL)
        outer, self.aggregate_windows = self.aggregate_windows, []
        items = self.listed(self._item)
        if not self._match(TokenType.FROM):
            raise self.wrong('"," or FROM', _SELECT_HINT)
        source = self._from_item()
        where = self.expression_here("a condition", _SELECT_HINT) if self._match(TokenType.WHERE) else None
        groups = self._groups() if self._match(TokenType.GROUP_BY) else ()
        having = self.expression_here("a condition", _SELECT_HINT) if self._match(TokenType.HAVING) else None
        qualify = self.expression_here("a condition", _SELECT_HINT) if self.take("QUALIFY") else None
        windows, self.aggregate_windows = tuple(self.aggregate_windows), outer
        place = self.source.of_token(first)
        return Select(place, items, source, where, groups, having, windows, distinct, qualify)

    def _item(self) -> SelectItem:
        first = self._curr
        expression = self.expression_here("a column or an expression", _SELECT_HINT)
        alias = self.alias()
        return SelectItem(expression, alias, self.place_since(first))

    # FROM

    def _from_item(self) -> FromItem:
        """`a UNION b UNION c [window] AS name`: the window and the name hold for the whole union."""
        first = self._curr
        sources: list[Name | Body] = []
        window: WindowClause | None = None
        alias: Name | None = None
        while True:
            found, window = self._source()
            sources.append(found)
            alias = self.alias()
            window = window or self._window_after()
            alias = alias or self.alias()
            if not self._at_union_of_streams():
                break
            self._refuse_in_the_middle(window, alias)
        self._refuse_join()
        return FromItem(tuple(sources), self.place_since(first), window, alias)

    def _source(self) -> tuple[Name | Body, WindowClause | None]:
        if self._match(TokenType.L_PAREN):
            body = self.body()
            self._close("the subquery")
            return body, None
        if (called := self.table_function()) is not None:
            return called
        name = self.name("a stream", "FROM takes a stream, a union of streams or a subquery in parentheses.")
        if self._match(TokenType.DOT):
            raise QueryError(
                f'stream "{name.text}" has no parts', hint="Streams have one name, without a dot.", place=name.place
            )
        return name, None

    def _window_after(self) -> WindowClause | None:
        if self._match(TokenType.L_BRACKET, advance=False):
            return self.window()
        return self.bare_window() if self.at("WINDOW") else None

    def _at_union_of_streams(self) -> bool:
        """Read UNION if a stream follows it; UNION before a select joins whole selects."""
        here = self._index
        if not self._match(TokenType.UNION):
            return False
        self._union_kind()
        if self._curr.token_type in (TokenType.SELECT, TokenType.L_PAREN):
            self._retreat(here)
            return False
        return True

    def _union_kind(self) -> None:
        if self.at("DISTINCT"):
            raise NotYet("UNION DISTINCT has no engine part yet", hint="UNION keeps all rows.", place=self.place())
        self._match(TokenType.ALL)

    def _refuse_in_the_middle(self, window: WindowClause | None, alias: Name | None) -> None:
        place = window.place if window else alias.place if alias else None
        if place is not None:
            what = "a window" if window else "a name"
            raise QueryError(
                f"{what} stands in the middle of a union",
                hint="It holds for the whole union: put it after the last stream.",
                place=place,
            )

    def _refuse_join(self) -> None:
        if self._curr.token_type == TokenType.COMMA or self._curr.text.upper() in _JOIN_WORDS:
            raise NotYet(
                "joins have no engine part yet",
                hint="Bring the streams together with UNION, or run one query for each.",
                place=self.place(),
            )

    # After FROM

    def _groups(self) -> tuple[exp.Expr, ...]:
        return self.listed(lambda: self.expression_here("a column to group by", _SELECT_HINT))

    def _order(self) -> tuple[OrderItem, ...]:
        return self.listed(self._order_item)

    def _order_item(self) -> OrderItem:
        expression = self.expression_here("the time column", "ORDER BY takes the time column of the stream.")
        descending = bool(self._match(TokenType.DESC))
        self._match(TokenType.ASC)
        if self.take("NULLS"):
            self._advance()
        return OrderItem(expression, descending)

    def _refuse_after_select(self) -> None:
        """What may follow a select elsewhere, but not here yet."""
        if self.at("LIMIT") or self.at("OFFSET") or self.at("FETCH"):
            raise NotYet(
                f"{self._curr.text.upper()} has no engine part yet",
                hint="An unbounded stream goes on; filter with WHERE or HAVING instead.",
                place=self.place(),
            )
        if self._curr.token_type in (TokenType.EXCEPT, TokenType.INTERSECT):
            raise NotYet(
                f"{self._curr.text.upper()} has no engine part yet", hint="Filter with WHERE.", place=self.place()
            )

    def _emit(self) -> None:
        """`EMIT ON WINDOW CLOSE` is what happens anyway."""
        first = self._curr
        if not self.take("EMIT"):
            return
        if self.take("CHANGES"):
            raise NotYet(
                "EMIT CHANGES has no engine part yet",
                hint="Leave it out: each window is reported when it closes.",
                place=self.place_since(first),
            )
        self.expect("ON", "WINDOW", "CLOSE", hint="Write EMIT ON WINDOW CLOSE, or leave it out.")

    def _close(self, what: str) -> None:
        if not self._match(TokenType.R_PAREN):
            raise self.wrong(f'")" at the end of {what}', _SELECT_HINT)

    def _parse_bracket(self, this: Any = None) -> Any:
        """A window in brackets after an aggregate holds for the select it stands in."""
        if this is None or self._curr.token_type != TokenType.L_BRACKET or not self.at_window():
            return super()._parse_bracket(this)
        if not isinstance(this, (exp.Anonymous, exp.Filter)):
            raise self._misplaced_window(self._curr)
        self.aggregate_windows.append(self.window())
        return this

    def _misplaced_window(self, token: Token) -> QueryError:
        place: Place = self.source.of_token(token)
        return QueryError(
            "a window stands after something that is no aggregate",
            hint="Put the window after the stream in FROM, or after an aggregate such as count(*).",
            place=place,
        )
