"""Windows in all their spellings: `[RANGE i SLIDE j WA col]` and the table functions TUMBLE and HOP."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import NotYet, QueryError
from millrace.language.statements import Length, Name, WindowClause
from millrace.language.words import WordParser

_WINDOW_HINT = "A window reads [RANGE 5 MINUTES SLIDE 1 MINUTE WA ts]."
_WINDOW_WORDS = {"RANGE", "SLIDE", "WA", "ROWS", "SESSION", "WINDOW", "PARTITION", "PARTITION BY"}
_TABLE_FUNCTIONS = {"TUMBLE": 1, "HOP": 2}
_TUMBLE_HINT = (
    "Write TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE), or HOP(TABLE s, DESCRIPTOR(ts), slide, size)."
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
        parts: dict[str, Length | Name] = {}
        while not self._match(TokenType.R_BRACKET):
            word = self._curr
            part = self._window_part()
            if word.text.upper() in parts:
                raise QueryError(
                    f"{word.text.upper()} stands twice in a window", hint=_WINDOW_HINT, place=self.source.of_token(word)
                )
            parts[word.text.upper()] = part
            self._match(TokenType.COMMA)
        return self._window_of(parts, first)

    def _window_part(self) -> Length | Name:
        self._refuse_other_windows()
        if self.take("RANGE"):
            self._refuse_unlimited()
            found = self.length(_WINDOW_HINT)
            self.take("PRECEDING")
            return found
        if self.take("SLIDE"):
            return self.length(_WINDOW_HINT)
        if self.take("WA"):
            return self.name("the time column after WA", _WINDOW_HINT)
        raise self.wrong('RANGE, SLIDE, WA or "]"', _WINDOW_HINT)

    def _window_of(self, parts: dict[str, Length | Name], first: Token) -> WindowClause:
        place = self.place_since(first)
        reach, slide, attribute = parts.get("RANGE"), parts.get("SLIDE"), parts.get("WA")
        if not isinstance(reach, Length):
            raise QueryError("a window has no RANGE", hint=_WINDOW_HINT, place=place)
        assert slide is None or isinstance(slide, Length)
        assert attribute is None or isinstance(attribute, Name)
        return WindowClause(place, reach, slide, attribute)

    def _refuse_other_windows(self) -> None:
        word = self._curr.text.upper()
        if word in ("ROWS", "SESSION", "WINDOW", "PARTITION", "PARTITION BY"):
            raise NotYet(
                f"{word} windows have no engine part yet", hint=f"Use a time window. {_WINDOW_HINT}", place=self.place()
            )

    def _refuse_unlimited(self) -> None:
        if self.at("UNLIMITED") or self.at("UNBOUNDED"):
            raise NotYet(
                "unlimited windows have no engine part yet",
                hint=f"Bound the window. {_WINDOW_HINT}",
                place=self.place(),
            )

    # TUMBLE(TABLE s, DESCRIPTOR(ts), size), HOP(TABLE s, DESCRIPTOR(ts), slide, size)

    def table_function(self) -> tuple[Name, WindowClause] | None:
        """Read a window written as a table function; None when something else comes next."""
        here = self._index
        wrapped = self.take("TABLE", "(")
        word = self._curr
        if self._next.token_type != TokenType.L_PAREN or not word.text:
            self._retreat(here)
            return None
        if word.text.upper() in ("SESSION", "CUMULATE"):
            raise NotYet(
                f"{word.text.upper()} windows have no engine part yet",
                hint=_TUMBLE_HINT,
                place=self.source.of_token(word),
            )
        if word.text.upper() not in _TABLE_FUNCTIONS:
            raise QueryError(
                f'"{word.text}" is no table function',
                hint="FROM takes TUMBLE and HOP.",
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
        self._comma()
        self.expect("DESCRIPTOR", hint=_TUMBLE_HINT)
        attribute = self.parenthesised(lambda: self.name("the time column", _TUMBLE_HINT), _TUMBLE_HINT)[0]
        lengths = []
        for _ in range(_TABLE_FUNCTIONS[word.text.upper()]):
            self._comma()
            lengths.append(self.length(_TUMBLE_HINT))
        self._close_function()
        return stream, WindowClause(self.place_since(word), lengths[-1], lengths[0], attribute)

    def _comma(self) -> None:
        if not self._match(TokenType.COMMA):
            raise self.wrong('","', _TUMBLE_HINT)

    def _close_function(self) -> None:
        if not self._match(TokenType.R_PAREN):
            raise self.wrong('")"', _TUMBLE_HINT)
