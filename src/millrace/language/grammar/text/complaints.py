"""What is wrong with a token that does not fit where it stands: what was expected, or which word is misspelt."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import Place, QueryError, did_you_mean
from millrace.language.grammar.text.intervals import MONTHS_OF, UNITS

if TYPE_CHECKING:
    from millrace.language.grammar.text.cursor import Cursor

_KEYWORD = re.compile(r"\b[A-Z_]{3,}\b")
_STARTS = {
    "SELECT", "CREATE", "ALTER", "DROP", "SHOW", "INSERT", "DESCRIBE", "EXPLAIN", "SET", "ADD",
}  # fmt: skip
_OPERATORS = ("AND", "OR", "LIKE", "BETWEEN", "IS", "AS", "ON", "USING", "THEN", "ELSE")
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
    "OFFSET": "Leave OFFSET out: LIMIT 10 shows the first rows that come, and ends the run.",
    "THAN": "Write > or <.",
    "WINDOW": "A window stands after the stream: FROM s [RANGE 5 MINUTES SLIDE 5 MINUTES] ... GROUP BY k.",
    "EVERY": "How often results come is the SLIDE of a window: FROM s [RANGE 5 MINUTES SLIDE 5 MINUTES].",
    "UNION": "LIMIT and ORDER BY stand at the end of the whole: SELECT ... UNION SELECT ... ORDER BY ... LIMIT 10.",
    "OPTIONS": "Options of a query stand in WITH (key = 'value').",
}
_IN_BRACKETS = "Put it into the brackets after the stream: FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE]."
_INSTEAD = {
    "=>": "Write >=.",
    "&&": "Write AND.",
    ":=": "Write =.",
    "!": "Write NOT or <>.",
    "~": "Write column RLIKE 'pattern'.",
}
"""What to write for operators of other languages."""
_BEFORE_VALUES = ("AND", "OR", "NOT", "WHERE", "ON", "HAVING", "(")
_CALLS = {
    **{name: f"Write {name}(value AS type)." for name in ("CAST", "TRY_CAST")},
    "EXTRACT": "Write EXTRACT(HOUR FROM ts).",
    **{name: f"Write {name}(text, 1, 3)." for name in ("SUBSTRING", "SUBSTR")},
    "TRIM": "Write TRIM(text), or TRIM(BOTH 'x' FROM text).",
    "OVERLAY": "Write OVERLAY(text PLACING 'x' FROM 2 FOR 1).",
}
"""Calls with words inside."""
_LEFT_OVER = "Something before it is missing or misspelt, or a semicolon is missing."
_AFTER = {
    "FROM": "After a stream its window in brackets, its name, a comma, JOIN, WHERE, GROUP BY or ORDER BY may follow.",
    "WHERE": "After a condition AND, OR, GROUP BY, ORDER BY or LIMIT may follow.",
    "GROUP BY": "After what is grouped by a comma, HAVING, QUALIFY or ORDER BY may follow.",
    "HAVING": "After a condition AND, OR, QUALIFY or ORDER BY may follow.",
    "ORDER BY": "After a column DESC, a comma or LIMIT may follow.",
    "LIMIT": "After LIMIT and one number nothing may follow but WITH (...).",
    "ON": "After a condition AND, OR, JOIN, WHERE or GROUP BY may follow.",
}
"""What may follow where a query could end, by the last clause that was begun."""


def wrong(cursor: Cursor, expected: str, hint: str) -> QueryError:
    """The error for a token that does not fit."""
    has_dots = "OPTIONS" in hint or hint.startswith("Write SET")
    error = (None if has_dots else _not_a_name(cursor)) or _without_parentheses(cursor)
    if error is not None:
        return error
    known = _KEYWORD.findall(f"{expected} {hint}")
    if (error := _misspelt(cursor.last, cursor, _KEYWORD.findall(expected), hint)) is not None:
        return error
    found = f'"{cursor.source.word(cursor.token)}"' if cursor.token else "the end"
    fact = f"expected {expected}, found {found}"
    return QueryError(fact, hint=_meant(cursor.token, known) + hint, place=cursor.place())


def left_over(cursor: Cursor) -> QueryError:
    """The error for a token after the end of a statement."""
    word = cursor.token.text.upper()
    if (error := _out_of_form(cursor) or _not_a_name(cursor)) is not None:
        return error
    if word == "[" and cursor.last and cursor.last.text == "]":
        hint = "Write all of it into one pair of brackets: [RANGE 5 MINUTES SLIDE 1 MINUTE WA ts]."
        return QueryError("a window is followed by another one", hint=hint, place=cursor.place())
    if word in _BY_WORD:
        return QueryError(f'unexpected "{cursor.token.text}"', hint=_BY_WORD[word], place=cursor.place())
    known = (*_CLAUSES, *_OPERATORS)
    if not _meant(cursor.token, known) and not cursor.at_source():
        error = _misspelt(cursor.last, cursor, known, _LEFT_OVER)
        if error is not None:
            return error
    two_names = cursor.last and {cursor.last.token_type, cursor.token.token_type} == {TokenType.VAR}
    rest = "A comma, an operator or a keyword is missing before it." if two_names else _LEFT_OVER
    rest = f"{rest} {_AFTER.get(cursor.clause(), '')}".strip()
    hint = ended(cursor, _meant(cursor.token, known) + rest)
    return QueryError(f'unexpected "{cursor.source.word(cursor.token)}"', hint=hint, place=cursor.place())


def _out_of_form(cursor: Cursor) -> QueryError | None:
    """The error for a form that lacks a word of its own: BY, INTERVAL, or the brackets of a window."""
    token, last = cursor.token, cursor.last
    before, word = last.text.upper() if last else "", token.text.upper()
    if before in ("GROUP", "ORDER"):
        fact, hint, place = f"{before} stands without BY", f"Write {before} BY {token.text}.", _of(last, cursor)
    elif word in ("GROUP", "ORDER"):
        fact, hint, place = f"{word} stands without BY", f"Write {word} BY {cursor.second.text}.", cursor.place()
    elif last and last.token_type == TokenType.NUMBER and word.lower() in (*UNITS, *MONTHS_OF):
        fact, place = f'"{last.text} {token.text}" is no value', cursor.source.place(last.start, token.end)
        hint = f"A length of time begins with a word: INTERVAL {last.text} {word}."
    elif before in ("SLIDE", "RANGE", "ROWS", "SESSION") and cursor.token.token_type == TokenType.NUMBER:
        fact, hint, place = f"{before} stands outside of a window", _IN_BRACKETS, _of(last, cursor)
    elif before == "SESSION" and token.text == "(":
        fact, place = '"session" is no function', _of(last, cursor)
        hint = "Write GROUP BY session_window(ts, '5 minutes'), or FROM s [SESSION 5 MINUTES]."
    elif word in _INSTEAD:
        fact, hint, place = f'"{word}" is no operator here', _INSTEAD[word], cursor.place()
    else:
        return None
    return QueryError(fact, hint=hint, place=place)


def _not_a_name(cursor: Cursor) -> QueryError | None:
    """The error for a name with a dash or a dot in it."""
    token, last = cursor.token, cursor.last
    for mark in (token, last):
        if not mark or mark.text not in ("-", "."):
            continue
        begin, end = cursor.word_around(mark)
        if begin < mark.start and end > mark.end:
            place = cursor.source.place(begin, end)
            hint = f"Write it in backquotes: `{place.text}`."
            if mark.text == ".":
                hint = "Leave out the dot and what stands before it: the names of a file stand side by side."
            return QueryError(f'"{place.text}" is no name', hint=hint, place=place)
    return None


def _without_parentheses(cursor: Cursor) -> QueryError | None:
    """The error for a call whose parentheses are missing: `CAST x AS INT`, `row_number OVER (...)`, `IF x > 3 THEN`."""
    before = cursor.before(2)
    words = [each.text.upper() for each in before]
    if len(words) < 2 or words[-1] == "(":
        return None
    if words[-1] == "OVER" and cursor.token.text == "(":
        place, hint = _of(before[0], cursor), f"Write {before[0].text}() OVER (...)."
        return QueryError("a function before OVER has no parentheses", hint=hint, place=place)
    if words[0] in _CALLS:
        return QueryError(f'"{words[0]}" has no parentheses', hint=_CALLS[words[0]], place=_of(before[0], cursor))
    if words[0] == "IF":
        hint = "Write if(condition, value, other), or CASE WHEN condition THEN value ELSE other END."
        return QueryError("IF is a function here", hint=hint, place=_of(before[0], cursor))
    return None


def _of(token: Token, cursor: Cursor) -> Place:
    return cursor.source.of_token(token)


def incomplete(cursor: Cursor, place: Place, expected: str = "") -> QueryError:
    """The error for an expression that lacks a part at a place, which may be known."""
    last = cursor.last
    called = cursor.open_call().upper()
    found = f'"{place.text}"' if place.text else "the end"
    if called in _CALLS:
        return QueryError(f'unexpected {found} in "{called}"', hint=_CALLS[called], place=place)
    if expected == ")" and called == "GROUP":
        hint = "Write WITHIN GROUP (ORDER BY column)."
        return QueryError(f"expected ORDER BY before {found}", hint=hint, place=place)
    if place.text.upper() == "SEPARATOR":
        return QueryError(f"unexpected {found}", hint="Write string_agg(text, ',').", place=place)
    if expected == ")" and called:
        hint = "Write a comma between two arguments, and an operator between two values."
        return QueryError(f'expected "," or ")" in "{called.lower()}", found {found}', hint=hint, place=place)
    if expected:
        return QueryError(f'expected "{expected}" before {found}', hint=f'Write "{expected}" there.', place=place)
    if not last or last.token_type in (TokenType.L_PAREN, TokenType.COMMA):
        hint = "Write a value there, or remove what stands around it."
        return QueryError(f"a value is missing before {found}", hint=hint, place=place)
    words = [each.text.upper() for each in cursor.before(3)]
    if len(words) == 3 and words[1] in ("LIKE", "ILIKE", "RLIKE", "IN", "=", "<", ">") and words[0] in _BEFORE_VALUES:
        hint = f"Say of each comparison what is compared: column {words[1]} ..."
        return QueryError(f'a value is missing before "{words[1]}"', hint=hint, place=_of(cursor.before(2)[0], cursor))
    hint = f'Write a value after "{last.text}", or remove it.'
    return QueryError(f'a value is missing after "{last.text}"', hint=hint, place=_of(last, cursor))


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
    if not token or token.token_type != TokenType.VAR or token.text.upper() in known:
        return ""
    turned = next((each for each in known if sorted(each) == sorted(token.text.upper())), None)
    return did_you_mean(token.text, known, near=0.75) or (f'Did you mean "{turned}"? ' if turned else "")
