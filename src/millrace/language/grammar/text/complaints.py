"""What is wrong with a token that does not fit where it stands: what was expected, or which word is misspelt."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import QueryError, did_you_mean

if TYPE_CHECKING:
    from millrace.language.grammar.text.cursor import Cursor

_KEYWORD = re.compile(r"\b[A-Z_]{3,}\b")
_STARTS = {
    "SELECT", "CREATE", "ALTER", "DROP", "SHOW", "INSERT", "DESCRIBE", "EXPLAIN", "SET", "ADD",
}  # fmt: skip
_CLAUSES = (
    "FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "ORDER", "UNION", "JOIN", "LEFT", "RIGHT", "FULL", "ASOF", "SEQ",
    "MODE", "WINDOW", "WITH", "LIMIT",
)  # fmt: skip
"""What may follow a complete part of a query."""
_ORDER = "Clauses stand in this order: FROM, WHERE, GROUP BY, HAVING, QUALIFY, ORDER BY, LIMIT, WITH."
_BY_WORD = {
    **dict.fromkeys(("FROM", "WHERE", "GROUP BY", "HAVING", "QUALIFY", "ORDER BY"), _ORDER),
    "WITHIN": "Give both inputs a window, s [RANGE 5 MINUTES] JOIN t [RANGE 5 MINUTES] ON s.k = t.k, or compare their "
    "times in ON.",
    "INTO": "Write INSERT INTO sink SELECT ..., or CREATE QUERY name INTO sink AS SELECT ...",
    "OPTIONS": "Options of a query stand in WITH (key = 'value').",
}
_LEFT_OVER = "Something before it is missing or misspelt, or a semicolon is missing."


def wrong(cursor: Cursor, expected: str, hint: str) -> QueryError:
    """The error for a token that does not fit."""
    known = _KEYWORD.findall(f"{expected} {hint}")
    if (error := _misspelt(cursor.last, cursor, _KEYWORD.findall(expected), hint)) is not None:
        return error
    found = f'"{cursor.source.word(cursor.token)}"' if cursor.token else "the end"
    fact = f"expected {expected}, found {found}"
    return QueryError(fact, hint=_meant(cursor.token, known) + hint, place=cursor.place())


def left_over(cursor: Cursor) -> QueryError:
    """The error for a token after the end of a statement."""
    word = cursor.token.text.upper()
    if word in _BY_WORD:
        return QueryError(f'unexpected "{cursor.token.text}"', hint=_BY_WORD[word], place=cursor.place())
    if not _meant(cursor.token, _CLAUSES):
        error = _misspelt(cursor.last, cursor, _CLAUSES, _LEFT_OVER)
        if error is not None:
            return error
    hint = ended(cursor, _meant(cursor.token, _CLAUSES) + _LEFT_OVER)
    return QueryError(f'unexpected "{cursor.source.word(cursor.token)}"', hint=hint, place=cursor.place())


def ended(cursor: Cursor, hint: str) -> str:
    """A hint for where a statement could have ended, and another seems to begin."""
    return "A semicolon is missing before it." if cursor.token.text.upper() in _STARTS else hint


def _misspelt(token: Token, cursor: Cursor, known: Collection[str], hint: str) -> QueryError | None:
    """The error for a keyword that was read as a name, because it is misspelt."""
    meant = _meant(token, known)
    if not meant or _meant(cursor.token, known):
        return None
    return QueryError(f'unexpected "{token.text}"', hint=meant + hint, place=cursor.source.of_token(token))


def _meant(token: Token, known: Collection[str]) -> str:
    """A sentence that suggests a keyword if a token is nearly one."""
    is_other = token and token.token_type == TokenType.VAR and token.text.upper() not in known
    return did_you_mean(token.text, known, near=0.75) if is_other else ""
