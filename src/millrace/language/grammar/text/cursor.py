"""The tokens of one statement with a position: names, words, intervals, options and expressions, each with its place.

Sqlglot reads expressions; statements and clauses are read by the parsers of this folder, each by way of the cursor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import Place, QueryError
from millrace.language.grammar.statements import Length, Name, NumberOfRows, Options, Setting
from millrace.language.grammar.text.complaints import ended, left_over, wrong
from millrace.language.grammar.text.expression_reader import ExpressionReader
from millrace.language.grammar.text.intervals import MONTHS_OF, UNITS, interval_of_words, microseconds, spanned
from millrace.language.grammar.text.places import SourceText

Item = TypeVar("Item")

_GLUED = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]+)")
_WORD = re.compile(r"[A-Za-z]+.*")
_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d+)?\s*")
_NO_ALIAS = {
    "SEQ", "ASOF", "EMIT", "LIMIT", "OFFSET", "WINDOW", "MODE", "MATCH_CONDITION", "WITH", "WITHIN", "QUALIFY", "UNION",
    "TRUTH", "MATCH_RECOGNIZE", "PIVOT", "UNPIVOT",
}  # fmt: skip
_CLAUSES = ("FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "ON")
_AFTER_LISTS = {
    "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "QUALIFY", "LIMIT", "UNION", "AS", ")", "INTO", "LANGUAGE",
}  # fmt: skip
"""What may follow a list, and begins no item of one."""
_QUANTITIES = (TokenType.NUMBER, TokenType.STRING)
_COLUMNS_HINT = "Columns read (name TYPE, name TYPE, ...)."


class Cursor:
    """Reads the tokens of a statement from left to right; the end is a token that is false.

    `windows` reads a window in brackets after an expression, if one stands there; it is set by the parser of selects.
    """

    def __init__(self, source: SourceText, tokens: list[Token]) -> None:
        self.source = source
        self.windows: Callable[[exp.Expr], bool] = lambda node: False
        self._reader = ExpressionReader(self, tokens)

    @property
    def token(self) -> Token:
        """The next token."""
        return self._reader._curr

    @property
    def second(self) -> Token:
        """The token after the next."""
        return self._reader._next

    @property
    def last(self) -> Token:
        """The last token that was read."""
        return self._reader._prev

    @property
    def position(self) -> int:
        return self._reader._index

    def back_to(self, position: int) -> None:
        """Go back to a position."""
        self._reader._retreat(position)

    def skip(self, tokens: int = 1) -> None:
        """Pass over tokens."""
        self._reader._advance(tokens)

    # Places

    def place(self) -> Place:
        """Where the next token stands, or the end of the statement."""
        if self.token:
            return self.source.of_token(self.token)
        return self.source.place(self.last.end + 1, self.last.end) if self.last else self.source.end()

    def place_since(self, first: Token) -> Place:
        """The place from `first` to the last token read."""
        return self.source.place(first.start, max(first.end, self.last.end if self.last else 0))

    def wrong(self, expected: str, hint: str) -> QueryError:
        """The error for a token that does not fit here."""
        return wrong(self, expected, hint)

    def left_over(self) -> QueryError:
        """The error for a token after the end of a statement."""
        return left_over(self)

    def ended(self, hint: str) -> str:
        """A hint for where a statement could have ended, and another seems to begin."""
        return ended(self, hint)

    # Words

    def at(self, *words: str) -> bool:
        """True if the next tokens are these words."""
        return bool(self._reader._match_text_seq(*words, advance=False))

    def take(self, *words: str) -> bool:
        """Read these words if they come next; True if they did."""
        return bool(self._reader._match_text_seq(*words))

    def at_type(self, *types: TokenType) -> bool:
        """True if the next token is of one of these types."""
        return self.token.token_type in types

    def take_type(self, kind: TokenType) -> bool:
        """Read a token of this type if it comes next; True if it did."""
        return bool(self._reader._match(kind))

    def expect(self, *words: str, hint: str, what: str | None = None) -> None:
        """Read these words, or refuse."""
        if not self.take(*words):
            raise self.wrong(what or " ".join(words), hint)

    def ahead(self, count: int) -> list[str]:
        """The texts of the next tokens, as many as there are."""
        return [each.text for each in self._reader._tokens[self.position : self.position + count]]

    def text(self, what: str, hint: str) -> Name:
        """Read a text in quotes."""
        token = self.token
        if not self.at_type(TokenType.STRING) or not token.text:
            raise self.wrong(what, hint)
        self.skip()
        return Name(token.text, place=self.source.of_token(token))

    def name(self, what: str, hint: str) -> Name:
        """Read a name; one with other characters stands in backquotes or double quotes."""
        token = self.token
        # Where only a name can stand, double quotes are as good as backquotes.
        if self.at_type(TokenType.STRING) and self.source.text[token.start] == '"' and token.text:
            self.skip()
            return Name(token.text, place=self.source.of_token(token))
        found = self._reader._parse_id_var(any_token=False) if token else None
        if found is None:
            raise self.wrong(what, hint)
        return Name(found.name, place=self.source.of_token(token))

    def names(self, what: str, hint: str) -> tuple[Name, ...]:
        """Read `(name, name, ...)`."""
        return self.parenthesised(lambda: self.name(what, hint), hint)

    def alias(self) -> Name | None:
        """Read `AS name`, or a name alone."""
        if self.take_type(TokenType.ALIAS):
            return self.name("a name after AS", "Names with other characters stand in `backquotes`.")
        token = self.token
        if not token or (token.token_type != TokenType.IDENTIFIER and token.text.upper() in _NO_ALIAS):
            return None
        found = self._reader._parse_id_var(any_token=False, tokens=self._reader.TABLE_ALIAS_TOKENS)
        return None if found is None else Name(found.name, place=self.source.of_token(token))

    def type_name(self) -> Name:
        """Read a type as it is written, with what stands in parentheses and angle brackets."""
        token = self.token
        if not token or self.at_type(TokenType.COMMA, TokenType.R_PAREN):
            raise self.wrong("a type", _COLUMNS_HINT)
        if self.at_type(TokenType.COLON, TokenType.EQ):
            raise self.wrong("a type", "The type follows the name at once: (name TYPE, name TYPE, ...).")
        self.skip()
        if token.token_type == TokenType.INTERVAL:
            while self.token and self.token.text.upper() in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "TO"):
                self.skip()
        depth, angles = 0, 0
        while self.token and (depth or self.at_type(TokenType.L_PAREN, TokenType.LT)):
            depth += _depth(self.token)
            angles += self.token.text.count("<") - self.token.text.count(">")
            if angles > depth:
                opening = next(each for each in self.before(99) if each.text == "<" and each.start > token.start)
                place = self.source.of_token(opening)
                raise QueryError('"<" is never closed', hint='Add the ">": ARRAY<STRING>.', place=place)
            self.skip()
        place = self.source.place(token.start, self.last.end)
        return Name(self.source.text[token.start : self.last.end + 1], place=place)

    def expression(self, what: str, hint: str) -> exp.Expr:
        """Read an expression, or refuse."""
        found = self._reader._parse_disjunction()
        if found is None:
            raise self.wrong(what, hint)
        return found

    def listed(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        """Read one or more items between commas."""
        found = [item()]
        while self.take_type(TokenType.COMMA):
            self.refuse_end_of_list()
            found.append(item())
        return tuple(found)

    def refuse_end_of_list(self) -> None:
        """Refuse a comma that was read if no further item of a list follows it."""
        word = self.token.text.upper() if self.token else ""
        if self.at_type(TokenType.IDENTIFIER, TokenType.STRING) or not (word in _AFTER_LISTS or not self.token):
            return
        found = f'"{self.token.text}"' if self.token else "the end"
        raise QueryError(
            f"a comma stands before {found}",
            hint="Remove the comma, or write what should follow it.",
            place=self.source.of_token(self.last),
        )

    def before(self, count: int) -> list[Token]:
        """The last tokens that were read, as many as there are."""
        return self._reader._tokens[max(0, self.position - count) : self.position]

    def at_source(self) -> bool:
        """True if the last word that was read is an input, and no keyword that is misspelt."""
        words = [each.text.upper() for each in self.before(2)]
        return len(words) == 2 and words[0] in ("FROM", "JOIN", ",", "UNION")

    def clause(self) -> str:
        """The word of the last clause outside of parentheses that has begun."""
        found, depth = "", 0
        for each in self.before(self.position):
            depth += (each.text in ("(", "[")) - (each.text in (")", "]"))
            if depth == 0 and each.token_type != TokenType.IDENTIFIER and each.text.upper() in _CLAUSES:
                found = each.text.upper()
        return found

    def word_around(self, mark: Token) -> tuple[int, int]:
        """The first and the last place of the word without spaces that a mark is in."""
        text, begin, end = self.source.text, mark.start, mark.end
        while begin > 0 and (text[begin - 1].isalnum() or text[begin - 1] in "_-."):
            begin -= 1
        while end + 1 < len(text) and (text[end + 1].isalnum() or text[end + 1] in "_-."):
            end += 1
        return begin, end

    def open_call(self) -> str:
        """The name before the innermost parenthesis that is open here; empty if there is none."""
        depth = 0
        tokens = self._reader._tokens
        for place in range(min(self.position, len(tokens)) - 1, 0, -1):
            depth += (tokens[place].token_type == TokenType.R_PAREN) - (tokens[place].token_type == TokenType.L_PAREN)
            if depth < 0:
                return str(tokens[place - 1].text)
        return ""

    def parenthesised(self, item: Callable[[], Item], hint: str) -> tuple[Item, ...]:
        """Read `(item, item, ...)`."""
        self.expect("(", hint=hint, what='"("')
        found = self.listed(item)
        self.expect(")", hint=hint, what='"," or ")"')
        return found

    # Intervals

    def length(self, hint: str = "Write a number and a unit, for example 5 MINUTES.") -> Length:
        """Read an interval, with or without the word INTERVAL."""
        first = self.token
        # Elsewhere a dash is no part of a length.
        sign = -1 if self.take_type(TokenType.INTERVAL) and self.take_type(TokenType.DASH) else 1
        total = self._length_part()
        if total is None:
            raise self.wrong("a length of time", hint)
        while (more := self._length_part()) is not None:
            total += more
        return Length(sign * total, place=self.place_since(first))

    def extent(self, hint: str, stop: Container[str]) -> Length | NumberOfRows:
        """Read an interval, or a number without a unit before one of the words in `stop` or the end."""
        token = self.token
        plain = token.token_type == TokenType.NUMBER and token.text.isdigit()
        if not plain or (self.second and self.second.text.upper() not in stop):
            return self.length(hint)
        self.skip()
        return NumberOfRows(int(token.text), place=self.source.of_token(token))

    def _length_part(self) -> int | None:
        """`5 MINUTES`, `'5' MINUTES`, `'5 minutes'` or `5min`; None when something else comes next."""
        token = self.token
        if token.token_type == TokenType.VAR and (glued := _GLUED.fullmatch(token.text)):
            self.skip()
            return microseconds(glued[1], glued[2], self.source.of_token(token))
        if not self.at_type(*_QUANTITIES):
            return None
        if _NUMBER.fullmatch(token.text):
            if not _WORD.fullmatch(self.second.text):
                return None
            self.skip(2)
            return microseconds(token.text.strip(), self.last.text, self.place_since(token))
        if token.token_type == TokenType.NUMBER:
            return None
        ahead = self.ahead(4)
        if len(ahead) == 4 and ahead[2].upper() == "TO":
            self.skip(4)
            size, in_months = spanned(ahead[0], ahead[1], ahead[3], self.place_since(token))
            return microseconds("1", "month", self.place_since(token)) if in_months else size
        self.skip()
        return interval_of_words(token.text, self.source.of_token(token))

    def at_interval(self) -> bool:
        """True if `INTERVAL` and a length come next, and not a column of that name."""
        tokens = [*self._reader._tokens[self.position : self.position + 4], *[None] * 4]
        interval, first, second, unit = tokens[:4]
        if interval is None or interval.token_type != TokenType.INTERVAL or first is None:
            return False
        if _counts(first):
            return True
        if first.token_type != TokenType.DASH or second is None:
            return False
        has_unit = unit is not None and unit.text.lower() in (*UNITS, *MONTHS_OF)
        return bool(_GLUED.fullmatch(second.text)) or (_counts(second) and has_unit)

    # Options

    def options(self, hint: str, before: Options | None = None) -> Options:
        """Read `(key 'value', key = 'value', ...)`, each key once, `before` included."""
        found: dict[str, Setting] = {}
        for setting in self.parenthesised(lambda: self._option(hint), hint):
            key = setting.key
            if key.text in found or (before and key.text in before):
                raise QueryError(f'option "{key.text}" is given twice', hint="Keep one of them.", place=key.place)
            found[key.text] = setting
        return found

    def _option(self, hint: str) -> Setting:
        first = self.token
        parts = [self._option_key(hint)]
        while self.take_type(TokenType.DOT):
            parts.append(self._option_key(hint))
        key = Name(".".join(parts).lower(), place=self.place_since(first))
        self.take_type(TokenType.EQ)
        return Setting(key, self.option_value(hint))

    def _option_key(self, hint: str) -> str:
        """Any word may be a key, keywords and quoted text too."""
        token = self.token
        if not token or self.at_type(TokenType.COMMA, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.EQ):
            raise self.wrong("the name of an option", hint)
        self.skip()
        return str(token.text)

    def option_value(self, hint: str) -> Name:
        """Read the value of an option: a string, a number, a word or an interval."""
        first = self.token
        if self.at_type(TokenType.INTERVAL):
            return Name(f"{self.length().micros} microseconds", place=self.place_since(first))
        sign = "-" if self.take_type(TokenType.DASH) else ""
        token = self.token
        if not token or not (token.token_type in _QUANTITIES or re.fullmatch(r"[\w.]+", token.text)):
            raise self.wrong("a value", hint)
        self.skip()
        text = sign + token.text
        if token.token_type == TokenType.NUMBER and self.token.text.lower() in UNITS:
            text += f" {self.token.text}"
            self.skip()
        return Name(text, place=self.place_since(first))


def _counts(token: Token) -> bool:
    """True if a token begins a length of time."""
    return token.token_type in _QUANTITIES or bool(_GLUED.fullmatch(token.text))


def _depth(token: Token) -> int:
    """How many brackets a token opens, less those that it closes."""
    return sum(token.text.count(each) for each in "(<") - sum(token.text.count(each) for each in ")>")
