"""Windows in all their spellings: in brackets, `WINDOW 10 minutes`, and the table functions TUMBLE, HOP and SESSION."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import NotYet, QueryError, did_you_mean
from millrace.language.grammar.statements import Length, MonthLength, Name, NumberOfRows, WindowClause, WindowKind
from millrace.language.grammar.text.cursor import Cursor
from millrace.language.grammar.text.intervals import months_in

FILES = (
    "A file is declared as a stream first: CREATE STREAM s (columns) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (...)."
)
_GENERATORS = ("GENERATE_SERIES", "RANGE", "NUMBERS", "GENERATOR", "DATAGEN", "SEQUENCE")
_GENERATED = (
    "Rows are made by a stream: CREATE STREAM s (columns) TIMESTAMP BY ts ORDERED FROM generate OPTIONS (rate '10')."
)
_WINDOW_HINT = "A window reads [RANGE 5 MINUTES SLIDE 1 MINUTE WA ts], [ROWS 100 SLIDE 10] or [SESSION 5 MINUTES]."
_WINDOW_WORDS = {"RANGE", "SLIDE", "WA", "ROWS", "SESSION", "PARTITION", "PARTITION BY", "OFFSET", "AT", "TIME"}
_TUMBLING = "Windows that follow each other are written FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE]."
_HOPPING = "Windows that overlap are written FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE]."
_ELSEWHERE = {
    **dict.fromkeys(("TUMBLING", "TUMBLE", "SIZE"), _TUMBLING),
    **dict.fromkeys(("HOPPING", "HOP", "ADVANCE", "SLIDING"), _HOPPING),
}
"""What to write for the words of other systems."""
_OVER_NAMED = (
    "An aggregate for each row, over the rows before it, is one over a window without SLIDE: "
    "SELECT k, sum(v) AS total FROM s [RANGE 5 MINUTES] GROUP BY k."
)
_SIZES: tuple[WindowKind, ...] = ("range", "rows", "session")
_TABLE_FUNCTIONS = {"TUMBLE": 1, "HOP": 2, "SESSION": 1}
_TUMBLE_HINT = (
    "Write TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE), HOP(TABLE s, DESCRIPTOR(ts), slide, size) "
    "or SESSION(TABLE s, DESCRIPTOR(ts), gap)."
)


def at_window(cursor: Cursor) -> bool:
    """True if the bracket that comes next opens a window."""
    return cursor.second.text.upper() in _WINDOW_WORDS


def window(cursor: Cursor) -> WindowClause:
    """Read `[...]`: clauses in any order, with or without commas, each once."""
    first = cursor.token
    cursor.take_type(TokenType.L_BRACKET)
    parts: dict[str, Any] = {}
    while not cursor.take_type(TokenType.R_BRACKET):
        word = cursor.token
        name, part = _window_part(cursor)
        if name == "attribute" and cursor.take_type(TokenType.DOT):
            parts["qualifier"], part = part, cursor.name("the time column after WA", _WINDOW_HINT)
        if name in parts:
            raise QueryError(
                f"{name.upper()} is given twice in a window", hint=_WINDOW_HINT, place=cursor.source.of_token(word)
            )
        parts[name] = part
        cursor.take_type(TokenType.COMMA)
    return _window_of(cursor, parts, first)


def bare_window(cursor: Cursor) -> WindowClause:
    """Read `WINDOW 10 minutes`, which is `[RANGE 10 minutes]`."""
    first = cursor.token
    cursor.expect("WINDOW", hint=_WINDOW_HINT)
    if (word := cursor.token.text.upper()) in (*_ELSEWHERE, "SESSION"):
        raise cursor.wrong("a length of time", _ELSEWHERE.get(word, "Sessions are written FROM s [SESSION 5 MINUTES]."))
    if cursor.second.text.upper() == "AS":
        raise NotYet("named windows are not supported yet", hint=_OVER_NAMED, place=cursor.place())
    size = cursor.length("Write WINDOW 10 MINUTES.")
    return WindowClause("range", size, bare=True, place=cursor.place_since(first))


def _window_part(cursor: Cursor) -> tuple[str, Any]:
    """One clause: the field it fills, and what it says (None for no limit)."""
    if cursor.take("RANGE"):
        return "range", _reach(cursor)
    if cursor.take("ROWS"):
        return "rows", _count(cursor)
    if cursor.take("SESSION"):
        return "session", _extent(cursor)
    if cursor.take("SLIDE"):
        return "slide", _extent(cursor)
    if cursor.take("OFFSET"):
        return "offset", _offset(cursor)
    if cursor.take("AT", "TIME", "ZONE") or cursor.take("TIME", "ZONE"):
        return "zone", cursor.text("the name of a time zone", "Write AT TIME ZONE 'Europe/Berlin'.")
    if cursor.take("WA"):
        return "attribute", cursor.name("the time column after WA", _WINDOW_HINT)
    if cursor.take_type(TokenType.PARTITION_BY):
        return "partition", _columns(cursor, "a column after PARTITION BY", _WINDOW_HINT, _WINDOW_WORDS)
    word = cursor.token.text.upper()
    raise cursor.wrong(
        'RANGE, ROWS, SESSION, SLIDE, OFFSET, AT TIME ZONE, PARTITION BY, WA or "]"', _ELSEWHERE.get(word, _WINDOW_HINT)
    )


def _offset(cursor: Cursor) -> Length | NumberOfRows:
    """How far the starts of windows are moved, forward or back."""
    first = cursor.token
    if not cursor.take_type(TokenType.DASH):
        found = _extent(cursor)
        if isinstance(found, MonthLength):
            raise QueryError(
                "OFFSET takes no months", hint="Write for example OFFSET 14 DAYS.", place=cursor.place_since(first)
            )
        return found
    back = _offset(cursor)
    place = cursor.place_since(first)
    return Length(-back.micros, place=place) if isinstance(back, Length) else NumberOfRows(-back.number, place=place)


def _months(cursor: Cursor) -> MonthLength | None:
    """`3 MONTHS`, `INTERVAL '1' YEAR`; None when something else comes next."""
    here, first = cursor.position, cursor.token
    cursor.take_type(TokenType.INTERVAL)
    found = months_in(cursor.ahead(8))
    if found is None:
        cursor.back_to(here)
        return None
    cursor.skip(found[1])
    return MonthLength(found[0], place=cursor.place_since(first))


def _reach(cursor: Cursor) -> Length | MonthLength | NumberOfRows | None:
    """A length; None for UNLIMITED."""
    found = None if cursor.take("UNLIMITED") or cursor.take("UNBOUNDED") else _extent(cursor)
    cursor.take("PRECEDING")
    return found


def _extent(cursor: Cursor) -> Length | MonthLength | NumberOfRows:
    """A length of time, months, or a number without a unit."""
    return _count(cursor) if _at_count(cursor) else _months(cursor) or cursor.length(_WINDOW_HINT)


def _at_count(cursor: Cursor) -> bool:
    closing = cursor.second.text.upper() in {*_WINDOW_WORDS, "]", ",", "PRECEDING"}
    return cursor.token.token_type == TokenType.NUMBER and closing


def _count(cursor: Cursor) -> NumberOfRows:
    token = cursor.token
    if token.token_type != TokenType.NUMBER or not token.text.isdigit():
        raise cursor.wrong("a number of rows", _WINDOW_HINT)
    cursor.skip()
    place = cursor.source.of_token(token)
    cursor.take("PRECEDING")
    return NumberOfRows(int(token.text), place=place)


def _columns(cursor: Cursor, what: str, hint: str, stop: Collection[str]) -> tuple[Name, ...]:
    """Columns after PARTITION BY, up to a comma before another clause."""
    found = [cursor.name(what, hint)]
    while cursor.at_type(TokenType.COMMA) and cursor.second.text.upper() not in stop:
        cursor.skip()
        found.append(cursor.name(what, hint))
    return tuple(found)


def _window_of(cursor: Cursor, parts: dict[str, Any], first: Token) -> WindowClause:
    place = cursor.place_since(first)
    kinds = [kind for kind in _SIZES if kind in parts]
    if len(kinds) != 1:
        found = " and ".join(each.upper() for each in kinds) or "no RANGE, ROWS or SESSION"
        raise QueryError(f"a window has {found}", hint=_WINDOW_HINT, place=place)
    size = parts[kinds[0]]
    further = {name: part for name, part in parts.items() if name != kinds[0]}
    return WindowClause("unlimited" if size is None else kinds[0], size, **further, place=place)


# TUMBLE(TABLE s, DESCRIPTOR(ts), size), HOP(TABLE s, DESCRIPTOR(ts), slide, size), SESSION(TABLE s, ...)


def table_function(cursor: Cursor) -> tuple[Name, WindowClause] | None:
    """Read a window written as a table function; None when something else comes next."""
    here = cursor.position
    wrapped = cursor.take("TABLE", "(")
    word, called = cursor.token, cursor.token.text.upper()
    if cursor.second.token_type != TokenType.L_PAREN or not called:
        cursor.back_to(here)
        return None
    if called == "CUMULATE":
        raise NotYet("CUMULATE windows are not supported yet", hint=_TUMBLE_HINT, place=cursor.place())
    if called == "LATERAL":
        raise NotYet(
            "LATERAL is not supported yet", hint="Use JOIN with a window or a band on the times.", place=cursor.place()
        )
    if {*cursor.ahead(3)[2:]} & {*_WINDOW_WORDS, *map(str.lower, _WINDOW_WORDS)} and called not in _TABLE_FUNCTIONS:
        hint = f"Write FROM {word.text} [RANGE 5 MINUTES SLIDE 1 MINUTE]."
        raise QueryError(
            "a window stands in brackets, not in parentheses", hint=hint, place=cursor.source.of_token(cursor.second)
        )
    if called.startswith(("READ_", "SCAN_")) or called in ("CSV", "JSON", "PARQUET", "GLOB", "FILE"):
        raise QueryError(f'"{word.text}" is not a table function', hint=FILES, place=cursor.place())
    if called not in _TABLE_FUNCTIONS:
        raise QueryError(
            f'"{word.text}" is not a table function',
            hint=_GENERATED
            if called in _GENERATORS
            else f"{did_you_mean(word.text, [*_TABLE_FUNCTIONS])}FROM takes TUMBLE, HOP and SESSION.",
            place=cursor.place(),
        )
    found = _table_function_body(cursor, word)
    if wrapped:
        cursor.expect(")", hint=_TUMBLE_HINT, what='")"')
    return found


def _table_function_body(cursor: Cursor, word: Token) -> tuple[Name, WindowClause]:
    cursor.skip(2)
    cursor.take("DATA", "=", ">")
    cursor.take("TABLE")
    stream = cursor.name("a stream", _TUMBLE_HINT)
    partition = _partition_of_table(cursor)
    cursor.expect(",", hint=_TUMBLE_HINT, what='","')
    attribute = _descriptor(cursor)
    lengths = []
    for _ in range(_TABLE_FUNCTIONS[word.text.upper()]):
        cursor.expect(",", hint=_TUMBLE_HINT, what='","')
        lengths.append(_months(cursor) or cursor.length(_TUMBLE_HINT))
    has_offset = word.text.upper() != "SESSION" and cursor.take_type(TokenType.COMMA)
    offset = cursor.length(_TUMBLE_HINT) if has_offset else None
    cursor.expect(")", hint=_TUMBLE_HINT, what='")"')
    place = cursor.place_since(word)
    if word.text.upper() == "SESSION":
        return stream, WindowClause("session", lengths[0], None, attribute, partition, borrowed=True, place=place)
    return stream, WindowClause("range", lengths[-1], lengths[0], attribute, offset=offset, place=place)


def _partition_of_table(cursor: Cursor) -> tuple[Name, ...]:
    """`PARTITION BY key` after the stream, as Flink writes it for sessions."""
    if not cursor.take_type(TokenType.PARTITION_BY):
        return ()
    if cursor.at_type(TokenType.L_PAREN):
        return cursor.names("a column", _TUMBLE_HINT)
    return _columns(cursor, "a column", _TUMBLE_HINT, ("DESCRIPTOR",))


def _descriptor(cursor: Cursor) -> Name:
    """`DESCRIPTOR(ts)` as in Flink, or the column alone."""
    if cursor.take("DESCRIPTOR"):
        return cursor.names("the time column", _TUMBLE_HINT)[0]
    return cursor.name("DESCRIPTOR or the time column", _TUMBLE_HINT)
