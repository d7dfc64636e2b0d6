"""Text into tokens: Spark's words, with the few changes that a stream language needs.

Rules:
- A quote inside a string is doubled or escaped, as in Spark 4.
- `5s` and `100ms` are one word each, not numbers with Spark's type suffixes.
- No word swallows the rest of a statement, and a hint is a comment.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import QueryError
from millrace.language.grammar.text.places import SourceText

_OPENING = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET}
_CLOSING = {closing: opening for opening, closing in _OPENING.items()}
_TURNED = {
    "=!": "!=",
    "=<": "<=",
    "><": "<>",
    "!~": "NOT column RLIKE 'pattern'",
    "~*": "column RLIKE '(?i)pattern'",
    "@>": "array_contains(array, value)",
    "<@": "array_contains(array, value)",
    "**": "power(x, 2)",
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_CURLY = re.compile("[\u2018\u2019\u201c\u201d\u00b4]")
_QUOTED = re.compile(
    r"""'(?:\\.|''|[^'\\])*'|"(?:\\.|""|[^"\\])*"|`(?:``|[^`])*`|--[^\n]*|/\*.*?\*/|[^'"`/-]+|-(?!-)|/(?!\*)""",
    re.DOTALL,
)


class StreamDialect(Spark):
    """Spark SQL's words and expressions; statements are read by the parsers of this folder."""

    # A type that does not exist is for the binder to refuse.
    SUPPORTS_USER_DEFINED_TYPES = True
    # The binder refuses what is no path; sqlglot would write a line on the terminal.
    STRICT_JSON_PATH_SYNTAX = False

    class Tokenizer(Spark.Tokenizer):
        """The changes to Spark's words."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
        COMMANDS: ClassVar[set[TokenType]] = set()
        NUMERIC_LITERALS: ClassVar[dict[str, str]] = {"L": "BIGINT"}
        KEYWORDS: ClassVar[dict[str, Any]] = {
            word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if kind != TokenType.HINT
        }


def tokens_of(source: SourceText) -> list[list[Token]]:
    """The tokens of each statement; refuses what is left open."""
    statements: list[list[Token]] = [[]]
    for token in _tokens(source):
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    for number, statement in enumerate(statements, 1):
        _check_brackets(statement, source, last=number == len(statements))
        _check_operators(statement, source)
    return [statement for statement in statements if statement]


def _tokens(source: SourceText) -> list[Token]:
    if lone := _SURROGATE.search(source.text):
        raise QueryError(
            f"U+{ord(lone[0]):04X} is half of a character",
            hint="Write the whole character: it is no text without its other half.",
            place=source.place(lone.start(), lone.start()),
        )
    try:
        return StreamDialect().tokenize(source.text)
    except (TokenError, ValueError, IndexError) as error:
        raise _unreadable(source, error) from None


def _unreadable(source: SourceText, error: Exception) -> QueryError:
    """Why the text has no tokens: most often a quote or a comment that is never closed."""
    position = 0
    while found := _QUOTED.match(source.text, position):
        begin, position = position, found.end()
        if found[0][0] in "'\"" and source.text[position : position + 1].isalnum():
            # A word follows the text at once: one of its quotes belongs to the text, or is missing before it.
            if "\n" in found[0]:
                position = begin
                break
            return QueryError(
                f"the text {_beginning(found[0])} ends inside of a word",
                hint="Close the text before, or double a quote that belongs to it: 'O''Brien'.",
                place=source.place(begin, position - 1),
            )
    if position < len(source.text):
        opening = "/*" if source.text.startswith("/*", position) else source.text[position]
        return QueryError(
            f"{opening} is never closed",
            hint="Close it, or double the quote if it belongs to the text.",
            place=source.place(position, position + len(opening) - 1),
        )
    reason = str(error.__cause__ or error).split("\n")[0]
    return QueryError(
        f"the text cannot be read: {reason}",
        hint="Check the quotes and the characters outside of quotes.",
        place=source.place(getattr(error, "start", 0), getattr(error, "start", 0)),
    )


def _beginning(text: str) -> str:
    return text if len(text) < 40 else f"{text[:40]}..."


def _check_operators(statement: list[Token], source: SourceText) -> None:
    """Refuse operators of other languages whose characters have a meaning one by one, and quotes of a text editor."""
    for token in statement:
        if token.token_type == TokenType.VAR and (quote := _CURLY.search(token.text)):
            hint = "Write text in straight quotes: 'text'."
            raise QueryError(f'"{quote[0]}" is no quote of SQL', hint=hint, place=source.of_token(token))
    for one, other in pairwise(statement):
        if one.end + 1 == other.start and (meant := _TURNED.get(f"{one.text}{other.text}")):
            place = source.place(one.start, other.end)
            raise QueryError(f'"{place.text}" is no operator', hint=f"Write {meant}.", place=place)


def _check_brackets(statement: list[Token], source: SourceText, *, last: bool) -> None:
    open_tokens: list[Token] = []
    for token in statement:
        if token.token_type in _OPENING:
            open_tokens.append(token)
        elif token.token_type in _CLOSING:
            if not open_tokens or open_tokens[-1].token_type != _CLOSING[token.token_type]:
                raise _unmatched(token, open_tokens, source)
            open_tokens.pop()
    if open_tokens:
        raise _never_closed(
            open_tokens[-1],
            source,
            before="" if last else " before the semicolon; what stands inside is separated by commas",
        )


def _never_closed(token: Token, source: SourceText, before: str = "") -> QueryError:
    closing = ")" if token.token_type == TokenType.L_PAREN else "]"
    hint = f'Add the "{closing}"{before}.'
    return QueryError(f'"{token.text}" is never closed', hint=hint, place=source.of_token(token))


def _unmatched(token: Token, open_tokens: list[Token], source: SourceText) -> QueryError:
    if open_tokens:
        return _never_closed(open_tokens[-1], source)
    return QueryError(
        f'"{token.text}" is never opened',
        hint=f'Remove it, or add the opening "{"(" if token.text == ")" else "["}".',
        place=source.of_token(token),
    )
