"""Spark's expressions as sqlglot reads them, with places; a cursor owns the reader and moves it.

Every function call is read as a plain name with arguments, so that the binder alone decides what a name means.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from millrace.language.grammar.text.dialect import StreamDialect
from millrace.language.grammar.text.intervals import months_in, spanned

if TYPE_CHECKING:
    from millrace.language.grammar.text.cursor import Cursor


_BITS = (
    (TokenType.AMP, exp.BitwiseAnd),
    (TokenType.CARET, exp.BitwiseXor),
    (TokenType.PIPE, exp.BitwiseOr),
)
"""The operators of bits, those first that bind more."""
_CASE_HINT = "Write CASE WHEN condition THEN value ELSE value END."
_NESTED = (TokenType.STRUCT, TokenType.ARRAY, TokenType.MAP)


class ExpressionReader(SparkParser):
    """Spark's expressions, with real places, plain function calls and intervals in microseconds."""

    COLON_IS_VARIANT_EXTRACT = True
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    BITWISE: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "SUBSTR", "TRIM", "OVERLAY")
    }

    def __init__(self, cursor: Cursor, tokens: list[Token]) -> None:
        super().__init__(dialect=StreamDialect)
        self.reset()
        self.cursor = cursor
        self.sql = cursor.source.text
        self._tokens = tokens
        self._tokens_size = len(tokens)
        self._index = -1
        self._advance()

    def raise_error(self, message: str, token: Any = None) -> None:
        """Sqlglot's own complaints, with the token they are about; it may still backtrack over them."""
        error = ParseError(message)
        error.place = self.cursor.source.of_token(token) if token else self.cursor.place()  # type: ignore[attr-defined]
        raise error

    def _marked(self, parse: Callable[[], Any]) -> Any:
        first = self._curr
        node = parse()
        if isinstance(node, exp.Expr) and first and self._prev:
            self.cursor.source.mark(node, first.start, max(first.end, self._prev.end))
        return node

    def _parse_unary(self) -> Any:
        return self._marked(super()._parse_unary)

    def _parse_bitwise(self) -> Any:
        """Sqlglot reads the operators of bits from left to right."""
        return self._parse_bits(len(_BITS) - 1)

    def _parse_bits(self, level: int) -> Any:
        if level < 0:
            return super()._parse_bitwise()
        token, kind = _BITS[level]
        this = self._parse_bits(level - 1)
        while self._match(token):
            this = self.expression(kind(this=this, expression=self._parse_bits(level - 1)))
        return this

    def _parse_atom(self) -> Any:
        return self._marked(super()._parse_atom)

    def _parse_types(self, *given: Any, **named: Any) -> Any:
        """A type; with a parenthesis STRUCT, ARRAY and MAP are functions."""
        if self._curr and self._curr.token_type in _NESTED and self._next.token_type == TokenType.L_PAREN:
            return None
        return self._marked(lambda: super(ExpressionReader, self)._parse_types(*given, **named))

    def _parse_csv(self, *given: Any, **named: Any) -> Any:
        """Sqlglot passes over a comma with nothing after it."""
        found = super()._parse_csv(*given, **named)
        if self._prev and self._prev.token_type == TokenType.COMMA:
            raise self.cursor.wrong("a value after the comma", "Remove the comma, or add what is missing.")
        return found

    def _parse_between(self, this: Any) -> Any:
        """Sqlglot passes over a missing AND."""
        if self._match_text_seq("SYMMETRIC"):
            raise self.cursor.wrong("a value", "Write value BETWEEN least AND greatest, without SYMMETRIC.")
        low = self._parse_bitwise()
        self.cursor.expect("AND", hint="Write value BETWEEN 1 AND 5.", what="AND and a second value for BETWEEN")
        return self.expression(exp.Between(this=this, low=low, high=self._parse_bitwise()))

    def _parse_colon_as_variant_extract(self, this: Any) -> Any:
        """Sqlglot passes over a missing name of a field, and takes the AS after it for one."""
        begin = self._index
        found = super()._parse_colon_as_variant_extract(this)
        for place, (token, after) in enumerate(pairwise(self._tokens[begin : self._index + 1]), begin):
            unnamed = (TokenType.DOT, TokenType.COLON, TokenType.ALIAS)
            misses = token.token_type in unnamed[:2] and after.token_type in unnamed
            if misses or (token.token_type == TokenType.DOT and after.token_type == TokenType.L_BRACKET):
                self._retreat(place + 1)
                raise self.cursor.wrong("the name of a field", "Write text:a.b[0], and `as` in backquotes.")
        return found

    def _parse_in(self, this: Any, alias: bool = False) -> Any:
        """Sqlglot takes one value without parentheses."""
        if self._curr.token_type in (TokenType.STRING, TokenType.NUMBER) and self._next.token_type == TokenType.COMMA:
            raise self.cursor.wrong('"(" after IN', "Write column IN (1, 2, 3).")
        return super()._parse_in(this, alias)

    def _parse_case(self) -> Any:
        """Sqlglot passes over a missing THEN."""
        if self._match(TokenType.DOT, advance=False):
            return super()._parse_case()
        subject, branches = self._parse_disjunction(), []
        if self._curr.token_type != TokenType.WHEN:
            raise self.cursor.wrong("WHEN", _CASE_HINT)
        while self._match(TokenType.WHEN):
            condition = self._parse_disjunction()
            self.cursor.expect("THEN", hint=_CASE_HINT)
            branches.append(self.expression(exp.If(this=condition, true=self._parse_disjunction())))
        default = self._parse_disjunction() if self._match(TokenType.ELSE) else None
        if not self._match(TokenType.END):
            self.raise_error("Expected END after CASE", self._prev)
        return self.expression(exp.Case(this=subject, ifs=branches, default=default))

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
        """`INTERVAL ...` inside an expression, as a number of microseconds."""
        if not self.cursor.at_interval():
            return None
        size, in_months = self._months_or_span() or (self.cursor.length().micros, False)
        # Literal.number would take the sign off.
        literal = exp.Literal(this=str(size), is_string=False)
        return exp.Interval(this=literal, unit=exp.var("MONTH") if in_months else None)

    def _months_or_span(self) -> tuple[int, bool] | None:
        """`INTERVAL 2 YEARS 3 MONTHS` or `INTERVAL '3:30' MINUTE TO SECOND`, and whether these are months."""
        signed = self._tokens[self._index + 1].token_type == TokenType.DASH
        start = self._index + 1 + signed
        words = [token.text for token in self._tokens[start : start + 12]]
        if self._tokens[start].token_type == TokenType.STRING and [each.upper() for each in words[2:3]] == ["TO"]:
            place = self.cursor.source.of_token(self._tokens[start])
            (size, in_months), count = spanned(words[0], words[1], words[3] if len(words) > 3 else "", place), 4
        elif found := months_in(words):
            (size, count), in_months = found, True
        else:
            return None
        self._advance(1 + signed + count)
        return (-size if signed else size), in_months

    def _parse_bracket(self, this: Any = None) -> Any:
        """A window in brackets after an expression is not part of it."""
        if this is not None and self._curr.token_type == TokenType.L_BRACKET and self.cursor.windows(this):
            return this
        if isinstance(this, exp.Anonymous) and self._curr.token_type == TokenType.L_BRACKET:
            # Sqlglot would read array(x)[0] as ARRAY[0].
            this = exp.Paren(this=this)
        return super()._parse_bracket(this)
