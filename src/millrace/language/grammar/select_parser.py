"""Queries: select lists, and the clauses after FROM, QUALIFY included.

What is understood but has no engine part yet is refused here, where its place is known best.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import NotYet, Place, QueryError
from millrace.language.grammar.from_parser import SELECT_HINT
from millrace.language.grammar.join_parser import JoinParser
from millrace.language.grammar.statements import Body, OrderItem, Select, SelectItem, Written


class SelectParser(JoinParser):
    """Reads the body of a query."""

    def body(self) -> Body:
        """Selects under UNION, and ORDER BY for the whole."""
        first = self._curr
        selects = [self._select_operand()]
        while self._match(TokenType.UNION):
            self.union_kind()
            selects.append(self._select_operand())
        self._refuse_after_select()
        order = self._order() if self._match(TokenType.ORDER_BY) else ()
        self._refuse_after_select()
        self._emit()
        return Body(tuple(selects), order, place=self.source.of_token(first))

    def _select_operand(self) -> Select | Body:
        if self._match(TokenType.L_PAREN):
            body = self.body()
            self.close("the subquery")
            return body
        return self._one_select()

    def _one_select(self) -> Select:
        first = self._curr
        if not self._match(TokenType.SELECT):
            raise self.wrong("SELECT", SELECT_HINT)
        distinct = Written(place=self.source.of_token(self._prev)) if self.take("DISTINCT") else None
        self._match(TokenType.ALL)
        outer, self.aggregate_windows = self.aggregate_windows, []
        items = self.listed(self.item)
        if not self._match(TokenType.FROM):
            raise self.wrong('"," or FROM', SELECT_HINT)
        read = self.read_from()
        where = self.expression_here("a condition", SELECT_HINT) if self._match(TokenType.WHERE) else None
        read = self.with_window_after(read)
        groups = self._groups() if self._match(TokenType.GROUP_BY) else ()
        having = self.expression_here("a condition", SELECT_HINT) if self._match(TokenType.HAVING) else None
        qualify = self.expression_here("a condition", SELECT_HINT) if self.take("QUALIFY") else None
        windows, self.aggregate_windows = tuple(self.aggregate_windows), outer
        place = self.source.of_token(first)
        return Select(
            items, read.source, where, groups, having, windows, distinct, qualify,
            read.joins, read.sequence, read.window, place=place,
        )  # fmt: skip

    def item(self) -> SelectItem:
        """`expression [AS name]`."""
        first = self._curr
        expression = self.expression_here("a column or an expression", SELECT_HINT)
        alias = self.alias()
        return SelectItem(expression, alias, place=self.place_since(first))

    # After FROM

    def _groups(self) -> tuple[exp.Expr, ...]:
        return self.listed(lambda: self.expression_here("a column to group by", SELECT_HINT))

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
