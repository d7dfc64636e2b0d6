"""Windows in all their spellings: in brackets, `WINDOW 10 minutes`, and the table functions TUMBLE, HOP and SESSION."""

from __future__ import annotations

from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import NotYet, QueryError
from millrace.language.grammar.statements import Length, Name, RowCount, WindowClause, WindowKind
from millrace.language.grammar.words import WordParser

_WINDOW_HINT = "A window reads [RANGE 5 MINUTES SLIDE 1 MINUTE WA ts], [ROWS 100 SLIDE 10] or [SESSION 5 MINUTES]."
_WINDOW_WORDS = {"RANGE", "SLIDE", "WA", "ROWS", "SESSION", "PARTITION", "PARTITION BY"}
_SIZES: tuple[WindowKind, ...] = ("range", "rows", "session")
_TABLE_FUNCTIONS = {"TUMBLE": 1, "HOP": 2, "SESSION": 1}
_TUMBLE_HINT = (
    "Write TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE), HOP(TABLE s, DESCRIPTOR(ts), slide, size) "
    "or SESSION(TABLE s, DESCRIPTOR(ts), gap)."
)


class WindowParser(WordParser):
    """Reads windows; those after an aggregate are kept for the select they stand in."""

    aggregate_windows: list[WindowClause]

    def load(self, tokens: list[Token]) -> None:
        super().load(tokens)
        self.aggregate_windows = []

    def at_window(self) -> bool:
        """Whether the bracket that comes next opens a window."""
        return self._next.text.upper() in _WINDOW_WORDS

    def window(self) -> WindowClause:
        """Read `[...]`: clauses in any order, with or without commas, each once."""
        first = self._curr
        self._match(TokenType.L_BRACKET)
        parts: dict[str, Any] = {}
        while not self._match(TokenType.R_BRACKET):
            word = self._curr
            name, part = self._window_part()
            if name == "attribute" and self._match(TokenType.DOT):
                parts["qualifier"], part = part, self.name("the time column after WA", _WINDOW_HINT)
            if name in parts:
                raise QueryError(
                    f"{name.upper()} stands twice in a window", hint=_WINDOW_HINT, place=self.source.of_token(word)
                )
            parts[name] = part
            self._match(TokenType.COMMA)
        return self._window_of(parts, first)

    def bare_window(self) -> WindowClause:
        """Read `WINDOW 10 minutes`, which is `[RANGE 10 minutes]`."""
        first = self._curr
        self.expect("WINDOW", hint=_WINDOW_HINT)
        size = self.length("Write WINDOW 10 MINUTES.")
        return WindowClause("range", size, bare=True, place=self.place_since(first))

    def _window_part(self) -> tuple[str, Any]:
        """One clause: the field it fills, and what it says (None for no limit)."""
        if self.take("RANGE"):
            return "range", self._reach()
        if self.take("ROWS"):
            return "rows", self._count()
        if self.take("SESSION"):
            return "session", self.length(_WINDOW_HINT)
        if self.take("SLIDE"):
            return "slide", self._count() if self._at_count() else self.length(_WINDOW_HINT)
        if self.take("WA"):
            return "attribute", self.name("the time column after WA", _WINDOW_HINT)
        if self._match(TokenType.PARTITION_BY):
            return "partition", self._columns()
        raise self.wrong('RANGE, ROWS, SESSION, SLIDE, PARTITION BY, WA or "]"', _WINDOW_HINT)

    def _reach(self) -> Length | None:
        """A length; None for UNLIMITED."""
        found = None if self.take("UNLIMITED") or self.take("UNBOUNDED") else self.length(_WINDOW_HINT)
        self.take("PRECEDING")
        return found

    def _at_count(self) -> bool:
        closing = self._next.text.upper() in {*_WINDOW_WORDS, "]", ",", "PRECEDING"}
        return self._curr.token_type == TokenType.NUMBER and closing

    def _count(self) -> RowCount:
        token = self._curr
        if token.token_type != TokenType.NUMBER or not token.text.isdigit():
            raise self.wrong("a number of rows", _WINDOW_HINT)
        self._advance()
        place = self.source.of_token(token)
        self.take("PRECEDING")
        return RowCount(int(token.text), place=place)

    def _columns(self) -> tuple[Name, ...]:
        """Columns after PARTITION BY, up to the next clause of the window."""
        found = [self.name("a column after PARTITION BY", _WINDOW_HINT)]
        while self._curr.token_type == TokenType.COMMA and self._next.text.upper() not in _WINDOW_WORDS:
            self._advance()
            found.append(self.name("a column after PARTITION BY", _WINDOW_HINT))
        return tuple(found)

    def _window_of(self, parts: dict[str, Any], first: Token) -> WindowClause:
        place = self.place_since(first)
        kinds = [kind for kind in _SIZES if kind in parts]
        if len(kinds) != 1:
            fact = (
                f"a window has {' and '.join(each.upper() for each in kinds)}"
                if kinds
                else "a window has no RANGE, ROWS or SESSION"
            )
            raise QueryError(fact, hint=_WINDOW_HINT, place=place)
        size = parts[kinds[0]]
        further = {name: part for name, part in parts.items() if name != kinds[0]}
        return WindowClause("unlimited" if size is None else kinds[0], size, **further, place=place)

    # TUMBLE(TABLE s, DESCRIPTOR(ts), size), HOP(TABLE s, DESCRIPTOR(ts), slide, size), SESSION(TABLE s, ...)

    def table_function(self) -> tuple[Name, WindowClause] | None:
        """Read a window written as a table function; None when something else comes next."""
        here = self._index
        wrapped = self.take("TABLE", "(")
        word = self._curr
        if self._next.token_type != TokenType.L_PAREN or not word.text:
            self._retreat(here)
            return None
        if word.text.upper() == "CUMULATE":
            raise NotYet(
                "CUMULATE windows have no engine part yet", hint=_TUMBLE_HINT, place=self.source.of_token(word)
            )
        if word.text.upper() == "LATERAL":
            raise NotYet(
                "LATERAL has no engine part yet",
                hint="Use JOIN with a window or a band on the times.",
                place=self.source.of_token(word),
            )
        if word.text.upper() not in _TABLE_FUNCTIONS:
            raise QueryError(
                f'"{word.text}" is no table function',
                hint="FROM takes TUMBLE, HOP and SESSION.",
                place=self.source.of_token(word),
            )
        found = self._table_function_body(word)
        if wrapped:
            self._close_function()
        return found

    def _table_function_body(self, word: Token) -> tuple[Name, WindowClause]:
        self._advance(2)
        self.take("DATA", "=", ">")
        self.take("TABLE")
        stream = self.name("a stream", _TUMBLE_HINT)
        partition = self._partition_of_table()
        self._comma()
        attribute = self._descriptor()
        lengths = []
        for _ in range(_TABLE_FUNCTIONS[word.text.upper()]):
            self._comma()
            lengths.append(self.length(_TUMBLE_HINT))
        self._close_function()
        place = self.place_since(word)
        if word.text.upper() == "SESSION":
            return stream, WindowClause("session", lengths[0], None, attribute, partition, place=place)
        return stream, WindowClause("range", lengths[-1], lengths[0], attribute, place=place)

    def _partition_of_table(self) -> tuple[Name, ...]:
        """`PARTITION BY key` after the stream, as Flink writes it for sessions."""
        if not self._match(TokenType.PARTITION_BY):
            return ()
        if self._curr.token_type == TokenType.L_PAREN:
            return self.parenthesised(lambda: self.name("a column", _TUMBLE_HINT), _TUMBLE_HINT)
        found = [self.name("a column", _TUMBLE_HINT)]
        while self._curr.token_type == TokenType.COMMA and self._next.text.upper() != "DESCRIPTOR":
            self._advance()
            found.append(self.name("a column", _TUMBLE_HINT))
        return tuple(found)

    def _descriptor(self) -> Name:
        """`DESCRIPTOR(ts)` as in Flink, or the column alone."""
        if self.take("DESCRIPTOR"):
            return self.parenthesised(lambda: self.name("the time column", _TUMBLE_HINT), _TUMBLE_HINT)[0]
        return self.name("DESCRIPTOR or the time column", _TUMBLE_HINT)

    def _comma(self) -> None:
        if not self._match(TokenType.COMMA):
            raise self.wrong('","', _TUMBLE_HINT)

    def _close_function(self) -> None:
        if not self._match(TokenType.R_PAREN):
            raise self.wrong('")"', _TUMBLE_HINT)
