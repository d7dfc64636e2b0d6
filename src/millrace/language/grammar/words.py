"""The part of the parser that every statement uses: names, keywords, intervals, options, places.

Every function call is read as a plain name with arguments, so that the binder alone decides what a name means.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import Place, QueryError
from millrace.language.grammar.dialect import StreamDialect
from millrace.language.grammar.intervals import UNITS, interval_of_words, microseconds
from millrace.language.grammar.places import Source
from millrace.language.grammar.statements import Length, Name

Item = TypeVar("Item")

_GLUED = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]+)")
_NO_ALIAS = {
    "SEQ", "ASOF", "EMIT", "LIMIT", "OFFSET", "WINDOW", "MODE", "MATCH_CONDITION", "WITH", "WITHIN", "QUALIFY", "UNION",
    "TRUTH",
}  # fmt: skip


class WordParser(SparkParser):
    """Spark's expressions, with real places, plain function calls and intervals in microseconds."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "SUBSTR", "TRIM")
    }

    def __init__(self, source: Source) -> None:
        super().__init__(dialect=StreamDialect)
        self.source = source

    def load(self, tokens: list[Token]) -> None:
        """Begin to read a statement."""
        self.reset()
        self.sql = self.source.text
        self._tokens = tokens
        self._tokens_size = len(tokens)
        self._index = -1
        self._advance()

    # Places

    def place(self) -> Place:
        """Where the next token stands, or the end of the statement."""
        if self._curr:
            return self.source.of_token(self._curr)
        return self.source.place(self._prev.end + 1, self._prev.end) if self._prev else self.source.end()

    def place_since(self, first: Token) -> Place:
        """The place from `first` to the last token read."""
        return self.source.place(first.start, max(first.end, self._prev.end if self._prev else 0))

    def raise_error(self, message: str, token: Any = None) -> None:
        """Sqlglot's own complaints, with the token they are about; it may still backtrack over them."""
        error = ParseError(message)
        error.place = self.source.of_token(token) if token else self.place()  # type: ignore[attr-defined]
        raise error

    def wrong(self, expected: str, hint: str) -> QueryError:
        """The error for a token that does not fit here."""
        found = f'"{self._curr.text}"' if self._curr else "the end"
        return QueryError(f"expected {expected}, found {found}", hint=hint, place=self.place())

    def _marked(self, parse: Callable[[], Any]) -> Any:
        first = self._curr
        node = parse()
        if isinstance(node, exp.Expr) and first and self._prev:
            self.source.mark(node, first.start, max(first.end, self._prev.end))
        return node

    def _parse_unary(self) -> Any:
        return self._marked(super()._parse_unary)

    def _parse_atom(self) -> Any:
        return self._marked(super()._parse_atom)

    # Words

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these words."""
        return bool(self._match_text_seq(*words, advance=False))

    def take(self, *words: str) -> bool:
        """Read these words if they come next."""
        return bool(self._match_text_seq(*words))

    def expect(self, *words: str, hint: str) -> None:
        """Read these words, or refuse."""
        if not self.take(*words):
            raise self.wrong(" ".join(words), hint)

    def name(self, what: str, hint: str) -> Name:
        """Read a name."""
        token = self._curr
        found = self._parse_id_var(any_token=False) if token else None
        if found is None:
            raise self.wrong(what, hint)
        return Name(found.name, place=self.source.of_token(token))

    def alias(self) -> Name | None:
        """Read `AS name`, or a name alone."""
        if self._match(TokenType.ALIAS):
            return self.name("a name after AS", "Names with other characters stand in `backquotes`.")
        token = self._curr
        if not token or (token.token_type != TokenType.IDENTIFIER and token.text.upper() in _NO_ALIAS):
            return None
        found = self._parse_id_var(any_token=False, tokens=self.TABLE_ALIAS_TOKENS)
        return None if found is None else Name(found.name, place=self.source.of_token(token))

    def expression_here(self, what: str, hint: str) -> exp.Expr:
        """Read an expression, or refuse."""
        found = self._parse_disjunction()
        if found is None:
            raise self.wrong(what, hint)
        return found

    def listed(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        """Read one or more items between commas."""
        found = [item()]
        while self._match(TokenType.COMMA):
            found.append(item())
        return tuple(found)

    def parenthesised(self, item: Callable[[], Item], hint: str) -> tuple[Item, ...]:
        """Read `(item, item, ...)`."""
        if not self._match(TokenType.L_PAREN):
            raise self.wrong('"("', hint)
        found = self.listed(item)
        if not self._match(TokenType.R_PAREN):
            raise self.wrong('"," or ")"', hint)
        return found

    # Intervals

    def length(self, hint: str = "Write a number and a unit, for example 5 MINUTES.") -> Length:
        """Read an interval, with or without the word INTERVAL."""
        first = self._curr
        # Elsewhere a dash is no part of a length.
        sign = -1 if self._match(TokenType.INTERVAL) and self._match(TokenType.DASH) else 1
        total = self._length_part()
        if total is None:
            raise self.wrong("a length of time", hint)
        while (more := self._length_part()) is not None:
            total += more
        return Length(sign * total, place=self.place_since(first))

    def _length_part(self) -> int | None:
        """`5 MINUTES`, `'5' MINUTES`, `'5 minutes'` or `5min`; None when something else comes next."""
        token = self._curr
        if token.token_type == TokenType.VAR and (glued := _GLUED.fullmatch(token.text)):
            self._advance()
            return microseconds(glued[1], glued[2], self.source.of_token(token))
        if token.token_type == TokenType.STRING and not re.fullmatch(r"\s*[+-]?\d+(\.\d+)?\s*", token.text):
            self._advance()
            return interval_of_words(token.text, self.source.of_token(token))
        if token.token_type not in (TokenType.NUMBER, TokenType.STRING) or not self._next:
            return None
        if not re.fullmatch(r"\s*[+-]?\d+(\.\d+)?\s*", token.text):
            return None
        self._advance(2)
        return microseconds(token.text.strip(), self._prev.text, self.place_since(token))

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
        """`INTERVAL ...` inside an expression, as a number of microseconds."""
        token, after = self._curr, self._next
        starts = after.token_type in (TokenType.NUMBER, TokenType.STRING) or bool(_GLUED.fullmatch(after.text or ""))
        if token.token_type != TokenType.INTERVAL or not (starts or self._at_negative_interval()):
            return None
        # Literal.number would take the sign off.
        return exp.Interval(this=exp.Literal(this=str(self.length().micros), is_string=False))

    def _at_negative_interval(self) -> bool:
        """Whether `INTERVAL -2 SECONDS` comes next, and not a column of that name less something."""
        dash, number, unit = ([*self._tokens, *[None] * 3])[self._index + 1 : self._index + 4]
        if dash is None or dash.token_type != TokenType.DASH or number is None:
            return False
        is_counted = number.token_type in (TokenType.NUMBER, TokenType.STRING)
        return bool(_GLUED.fullmatch(number.text)) or (is_counted and unit is not None and unit.text.lower() in UNITS)

    def option_value(self, hint: str) -> Name:
        """Read the value of an option: a string, a number, a word or an interval."""
        first = self._curr
        if self._match(TokenType.INTERVAL, advance=False):
            return Name(f"{self.length().micros} microseconds", place=self.place_since(first))
        sign = "-" if self._match(TokenType.DASH) else ""
        token = self._curr
        quoted = token.token_type in (TokenType.STRING, TokenType.NUMBER)
        if not token or not (quoted or re.fullmatch(r"[\w.]+", token.text)):
            raise self.wrong("a value", hint)
        self._advance()
        text = sign + token.text
        if token.token_type == TokenType.NUMBER and self._curr.text.lower() in UNITS:
            text += f" {self._curr.text}"
            self._advance()
        return Name(text, place=self.place_since(first))
