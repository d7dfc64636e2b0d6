"""Spark's expressions as sqlglot reads them, with places; a cursor owns the reader and moves it.

Every function call is read as a plain name with arguments, so that the binder alone decides what a name means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from millrace.language.grammar.dialect import StreamDialect

if TYPE_CHECKING:
    from millrace.language.grammar.cursor import Cursor


_NESTED = (TokenType.STRUCT, TokenType.ARRAY, TokenType.MAP)


class ExpressionReader(SparkParser):
    """Spark's expressions, with real places, plain function calls and intervals in microseconds."""

    COLON_IS_VARIANT_EXTRACT = True
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "SUBSTR", "TRIM")
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

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
        """`INTERVAL ...` inside an expression, as a number of microseconds."""
        if not self.cursor.at_interval():
            return None
        # Literal.number would take the sign off.
        return exp.Interval(this=exp.Literal(this=str(self.cursor.length().micros), is_string=False))

    def _parse_bracket(self, this: Any = None) -> Any:
        """A window in brackets after an expression is not part of it."""
        if this is not None and self._curr.token_type == TokenType.L_BRACKET and self.cursor.windows(this):
            return this
        if isinstance(this, exp.Anonymous) and self._curr.token_type == TokenType.L_BRACKET:
            # Sqlglot would read array(x)[0] as ARRAY[0].
            this = exp.Paren(this=this)
        return super()._parse_bracket(this)
