"""Where the queries of a text stand in it, and each clause of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from millrace.language.grammar.text.dialect import tokens_of
from millrace.language.grammar.text.places import SourceText

Span = tuple[int, int]
"""The first offset in a text, and the one after the last."""

_CLAUSES = {
    TokenType.SELECT: "select",
    TokenType.FROM: "from",
    TokenType.WHERE: "where",
    TokenType.GROUP_BY: "group",
    TokenType.HAVING: "having",
    TokenType.ORDER_BY: "order",
}
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET)


@dataclass(frozen=True)
class QueryPlace:
    """A statement with a select, and its clauses that are not inside parentheses."""

    query: str
    """The name of the query, or of the stream, view or sink that the statement names."""
    span: Span
    clauses: dict[str, Span] = field(default_factory=dict)


def query_places(text: str) -> list[QueryPlace]:
    """Each statement that names something, in the order of the text.

    >>> (place,) = query_places("CREATE QUERY big AS SELECT k FROM s WHERE v > 3")
    >>> place.query, "CREATE QUERY big AS SELECT k FROM s WHERE v > 3"[slice(*place.clauses["where"])]
    ('big', 'WHERE v > 3')
    """
    unnamed = 0
    found = []
    for tokens in tokens_of(SourceText(text)):
        name = _name(tokens)
        if not name and tokens[0].token_type == TokenType.SELECT:
            unnamed += 1
            name = f"query_{unnamed}"
        if name:
            found.append(QueryPlace(name, _span(tokens), _clauses(tokens)))
    return found


def _name(tokens: list[Token]) -> str:
    """What a statement creates, adds or inserts into."""
    words = [str(token.text) for token in tokens[:8]]
    verbs = [word.upper() for word in words]
    if verbs[0] not in ("CREATE", "ADD", "INSERT"):
        return ""
    skipped = {"CREATE", "OR", "REPLACE", "ADD", "INSERT", "INTO", "QUERY", "STREAM", "VIEW", "TABLE", "SINK"}
    return next((word for word, verb in zip(words, verbs, strict=True) if verb not in skipped), "")


def _clauses(tokens: list[Token]) -> dict[str, Span]:
    begun: list[tuple[str, int]] = []
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth == 0 and token.token_type in _CLAUSES and (begun or token.token_type == TokenType.SELECT):
            begun.append((_CLAUSES[token.token_type], place))
    found: dict[str, Span] = {}
    for (clause, start), (_, end) in pairwise([*begun, ("", len(tokens))]):
        found.setdefault(clause, _span(tokens[start:end]))
    return found


def _span(tokens: list[Token]) -> Span:
    return tokens[0].start, tokens[-1].end + 1
