"""The clauses of CREATE STREAM, in any order, each at most once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot.tokenizer_core import TokenType

from millrace.errors import QueryError
from millrace.language.grammar.select_parser import SelectParser
from millrace.language.grammar.statements import (
    ColumnDefinition,
    ColumnsClause,
    ConnectorClause,
    EtsClause,
    Length,
    Name,
    Options,
    ReplayClause,
    Setting,
    StreamStatement,
    TimeClause,
    Watermark,
)

_COLUMNS_HINT = "Columns read (name TYPE, name TYPE, ...)."
_TIME_HINT = (
    "Write TIMESTAMP BY ts ORDERED, TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS, TIMESTAMP BY ts DISORDER 100 ROWS "
    "or TIMESTAMP BY ts PUNCTUATED BY expression."
)
_ETS_HINT = (
    "Write ETS ON DEMAND or ETS EVERY INTERVAL 10 MILLISECONDS, with SKEW INTERVAL 1 SECOND or LULL INTERVAL 1 MINUTE "
    "if timestamps are external, or ETS NONE."
)
_CLAUSES_HINT = (
    "The clauses are TIMESTAMP BY ... ALSO BY, INTERNAL TIMESTAMP AS, LATENT TIMESTAMP, PARTITIONED BY, ETS, "
    "MAX FUTURE SKEW, UPDATE KEY, LATE INTO, FROM ... OPTIONS, REPLAY BY and WITH."
)


class StreamParser(SelectParser):
    """Reads the declaration of a stream, and the connectors and options of other statements."""

    def stream_statement(self) -> StreamStatement:
        """`name (columns) clauses`, after CREATE STREAM."""
        name = self.name(
            "the name of the stream", "Write CREATE STREAM name (columns) TIMESTAMP BY ts ORDERED FROM csv ..."
        )
        definitions = self.parenthesised(self.definition, _COLUMNS_HINT)
        clauses: dict[str, Any] = {}
        while self._curr:
            place = self.place()
            kind, clause = self._clause()
            if kind in clauses:
                raise QueryError(
                    f'stream "{name.text}" has two clauses of one kind', hint="Keep one of them.", place=place
                )
            clauses[kind] = clause
        columns = tuple(each for each in definitions if isinstance(each, ColumnDefinition))
        watermarks = tuple(each for each in definitions if isinstance(each, Watermark))
        return StreamStatement(name, columns, watermarks, **clauses)

    def definition(self) -> ColumnDefinition | Watermark:
        """`name TYPE`, or a watermark."""
        first = self._curr
        if self.take("WATERMARK", "FOR"):
            column = self.name("the time column", _COLUMNS_HINT)
            if not self._match(TokenType.ALIAS):
                raise self.wrong("AS", "Write WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS.")
            expression = self.expression_here("an expression", "Write WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS.")
            return Watermark(column, expression, place=self.place_since(first))
        name = self.name("a column", _COLUMNS_HINT)
        return ColumnDefinition(name, self._type())

    def _type(self) -> Name:
        token = self._curr
        if not token or token.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            raise self.wrong("a type", _COLUMNS_HINT)
        self._advance()
        if self._match(TokenType.L_PAREN):
            while self._curr and not self._match(TokenType.R_PAREN):
                self._advance()
        return Name(token.text.upper(), place=self.source.of_token(token))

    def _clause(self) -> tuple[str, Any]:
        """The field of `StreamStatement` that the next clause fills, and the clause."""
        readers: tuple[tuple[str, tuple[str, ...], Callable[[], Any]], ...] = (
            ("time", ("TIMESTAMP", "BY"), self._external),
            ("time", ("INTERNAL", "TIMESTAMP"), self._internal),
            ("time", ("LATENT", "TIMESTAMP"), self._latent),
            ("ets", ("ETS",), self._ets),
            (
                "max_future_skew",
                ("MAX", "FUTURE", "SKEW"),
                lambda: self.length("Write MAX FUTURE SKEW INTERVAL 5 MINUTES."),
            ),
            ("update_key", ("UPDATE", "KEY"), self._update_key),
            ("late_into", ("LATE", "INTO"), lambda: self.name("a stream", "Write LATE INTO name.")),
            ("connector", ("FROM",), lambda: self.connector("Write FROM csv OPTIONS (path 'file.csv').")),
            ("replay", ("REPLAY", "BY"), self._replay),
            ("options", ("WITH",), lambda: self.options("Write WITH (queue = 'inplace').")),
        )
        if self._match(TokenType.PARTITION_BY):
            return "partitioned", self._column_list()
        for field, words, read in readers:
            if self.take(*words):
                return field, read()
        raise self.wrong("a clause of CREATE STREAM", _CLAUSES_HINT)

    def _external(self) -> TimeClause:
        found = self._order_of_time()
        further = []
        while self.take("ALSO", "BY"):
            further.append(self._further_time())
        return replace(found, also=tuple(further))

    def _further_time(self) -> TimeClause:
        """`column [ORDERED | DISORDER INTERVAL i]` after ALSO BY."""
        hint = "Write ALSO BY column ORDERED, or ALSO BY column DISORDER INTERVAL 30 MINUTES."
        first = self._prev
        column = self.name("a time column", hint)
        disordered = self.take("DISORDER")
        if disordered and self._at_rows():
            raise QueryError(
                "the DISORDER of ALSO BY is an interval, not a number of rows", hint=hint, place=self.place()
            )
        disorder = self.length(hint) if disordered else None
        if disorder is None:
            self.take("ORDERED")
        return TimeClause("external", column, disorder, place=self.place_since(first))

    def _order_of_time(self) -> TimeClause:
        first = self._prev
        column = self.name("the time column", _TIME_HINT)
        if self.take("ORDERED"):
            return TimeClause("external", column, place=self.place_since(first))
        if self.take("PUNCTUATED", "BY"):
            expression = self.expression_here("an expression", "Write PUNCTUATED BY expression.")
            per = self._names() if self.take("PER") else ()
            return TimeClause("external", column, punctuated_by=expression, per=per, place=self.place_since(first))
        self.expect("DISORDER", hint=_TIME_HINT)
        if self._at_rows():
            rows = Name(self._curr.text, place=self.place())
            self._advance(2)
            return TimeClause("external", column, rows=rows, place=self.place_since(first))
        disorder = self.length(_TIME_HINT)
        return TimeClause("external", column, disorder, place=self.place_since(first))

    def _at_rows(self) -> bool:
        return self._curr.token_type == TokenType.NUMBER and self._next.text.upper() == "ROWS"

    def _internal(self) -> TimeClause:
        first = self._prev
        if not self._match(TokenType.ALIAS):
            raise self.wrong("AS", "Write INTERNAL TIMESTAMP AS ts.")
        column = self.name("a column", "Write INTERNAL TIMESTAMP AS ts.")
        return TimeClause("internal", column, place=self.place_since(first))

    def _latent(self) -> TimeClause:
        return TimeClause("latent", place=self.source.of_token(self._prev))

    def _ets(self) -> EtsClause:
        first = self._prev
        if self.take("NONE"):
            return EtsClause("none", place=self.place_since(first))
        every = self.length(_ETS_HINT) if self.take("EVERY") else None
        if every is None:
            self.expect("ON", "DEMAND", hint=_ETS_HINT)
        place = self.place_since(first)
        lengths: dict[str, Length] = {}
        while (word := next((each for each in ("SKEW", "LULL") if self.take(each)), None)) is not None:
            if word.lower() in lengths:
                raise QueryError(
                    f"{word} stands twice", hint="Keep one of them.", place=self.source.of_token(self._prev)
                )
            lengths[word.lower()] = self.length(_ETS_HINT)
        return EtsClause("on_demand" if every is None else "every", every, **lengths, place=place)

    def _column_list(self) -> ColumnsClause:
        first = self._prev
        return ColumnsClause(self._names(), place=self.place_since(first))

    def _update_key(self) -> ColumnsClause:
        """`(column, ...)`, or `()`: all rows are updates of one thing."""
        first = self._prev
        if self._match(TokenType.L_PAREN, advance=False) and self._next.token_type == TokenType.R_PAREN:
            self._advance(2)
            return ColumnsClause((), place=self.place_since(first))
        return ColumnsClause(self._names(), place=self.place_since(first))

    def _names(self) -> tuple[Name, ...]:
        return self.parenthesised(
            lambda: self.name("a column", "Write the columns in parentheses."), "Write the columns in parentheses."
        )

    def _replay(self) -> ReplayClause:
        first = self._prev
        column = self.name("the arrival column", "Write REPLAY BY column [SPEED x].")
        speed = self.option_value("Write SPEED 10 to replay ten times as fast.") if self.take("SPEED") else None
        return ReplayClause(column, speed, place=self.place_since(first))

    # Connectors and options

    def connector(self, hint: str) -> ConnectorClause:
        """`format [OPTIONS (...)]`; a format that is more than a word stands in quotes."""
        token = self._curr
        if token and token.token_type == TokenType.STRING:
            self._advance()
            format_name = Name(str(token.text), place=self.source.of_token(token))
        else:
            format_name = self.name("a format", hint)
        return ConnectorClause(format_name, self.options(hint) if self.take("OPTIONS") else {})

    def options(self, hint: str, before: Options | None = None) -> Options:
        """`(key 'value', key = 'value', ...)`, each key once, `before` included."""
        found: dict[str, Setting] = {}
        for setting in self.parenthesised(lambda: self._option(hint), hint):
            key = setting.key
            if key.text in found or (before and key.text in before):
                raise QueryError(f'option "{key.text}" stands twice', hint="Keep one of them.", place=key.place)
            found[key.text] = setting
        return found

    def _option(self, hint: str) -> Setting:
        first = self._curr
        parts = [self._option_key(hint)]
        while self._match(TokenType.DOT):
            parts.append(self._option_key(hint))
        key = Name(".".join(parts).lower(), place=self.place_since(first))
        self._match(TokenType.EQ)
        return Setting(key, self.option_value(hint))

    def _option_key(self, hint: str) -> str:
        """Any word may be a key, keywords and quoted text too."""
        token = self._curr
        if not token or token.token_type in (TokenType.COMMA, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.EQ):
            raise self.wrong("the name of an option", hint)
        self._advance()
        return str(token.text)
