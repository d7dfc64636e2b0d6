"""Whole statements: CREATE STREAM, SINK, AGGREGATE, FUNCTION and QUERY, ADD, ALTER and DROP QUERY, SHOW, selects."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import Place, QueryError
from millrace.language.grammar.code_parser import aggregate_statement, function_statement
from millrace.language.grammar.cursor import Cursor
from millrace.language.grammar.dialect import tokens_of
from millrace.language.grammar.places import SourceText
from millrace.language.grammar.select_parser import SelectParser
from millrace.language.grammar.statements import (
    AccessClause,
    AlterStatement,
    DropStatement,
    Options,
    QueryStatement,
    ShowStatement,
    Statement,
)
from millrace.language.grammar.stream_parser import sink_statement, stream_statement
from millrace.language.grammar.unsupported import CREATED, STATEMENTS

Found = TypeVar("Found")

_STATEMENTS = (
    "The statements are CREATE STREAM, CREATE SINK, CREATE AGGREGATE, CREATE FUNCTION, CREATE QUERY, ALTER QUERY, "
    "DROP QUERY and SELECT."
)


def parse_script(text: str) -> tuple[Statement, ...]:
    """The statements of a text, with the place of every name in it."""
    source = SourceText(text)
    return tuple(_parse(source, tokens, _statement) for tokens in tokens_of(source))


def parse_expression(text: str) -> exp.Expr:
    """One expression, and nothing after it."""
    source = SourceText(text)
    statements = tokens_of(source)
    if len(statements) != 1:
        raise QueryError(
            "expected one expression", hint="Write one expression, without a semicolon.", place=source.place(0, 0)
        )
    hint = "Write one expression."
    return _parse(source, statements[0], lambda queries: queries.cursor.expression("an expression", hint))


def _parse(source: SourceText, tokens: list[Token], read: Callable[[SelectParser], Found]) -> Found:
    """What `read` finds in the tokens, all of which it must use up."""
    cursor = Cursor(source, tokens)
    try:
        # It reads windows after aggregates, in whatever statement they stand.
        found = read(SelectParser(cursor))
    except ParseError as error:
        raise _complaint(error, cursor) from None
    except RecursionError:
        raise QueryError(
            "the statement is nested too deeply", hint="Split it.", place=source.of_token(tokens[0])
        ) from None
    except (AttributeError, TypeError, ValueError, IndexError, KeyError, AssertionError):
        # Sqlglot's parser is written for valid text; on some invalid text it fails inside.
        raise cursor.wrong("something else", _STATEMENTS) from None
    if cursor.token:
        raise cursor.left_over()
    return found


def _complaint(error: ParseError, cursor: Cursor) -> QueryError:
    """The error for sqlglot's complaint, whose own words are about its classes."""
    place: Place = getattr(error, "place", cursor.place())
    found = f'"{place.text}"' if place.text else "the end"
    expected = re.match(r"(?:Expected|Expecting) (\S+)", str(error))
    if expected:
        fact = f'expected "{expected[1]}" before {found}'
    elif "Required keyword" in str(error):
        fact = f"something is missing before {found}"
    else:
        fact = f"unexpected {found}"
    return QueryError(fact, hint="Check the text at and before this place.", place=place)


# Statements


def _statement(queries: SelectParser) -> Statement:
    cursor = queries.cursor
    if cursor.take("CREATE", "QUERY") or cursor.take("ADD", "QUERY"):
        return _query_statement(queries)
    if cursor.take("CREATE"):
        for word, read in _DECLARED.items():
            if cursor.take(word):
                return read(cursor)
        raise cursor.wrong(
            "STREAM, SINK, AGGREGATE, FUNCTION or QUERY", CREATED.get(cursor.token.text.upper(), _STATEMENTS)
        )
    if cursor.take("DROP"):
        cursor.expect("QUERY", hint="Only queries can be dropped: DROP QUERY name.")
        return DropStatement(cursor.name("the name of a query", "Write DROP QUERY name."))
    if cursor.take("ADD"):
        raise cursor.wrong("QUERY", "Write ADD QUERY name AS SELECT ...")
    if cursor.take("ALTER"):
        return _alter_statement(cursor)
    if cursor.at("SHOW"):
        return _show_statement(cursor)
    if cursor.at_type(TokenType.SELECT, TokenType.L_PAREN, TokenType.WITH):
        return QueryStatement(queries.body(), options=_with_options(cursor))
    raise cursor.wrong("a statement", STATEMENTS.get(cursor.token.text.upper(), _STATEMENTS))


def _query_statement(queries: SelectParser) -> QueryStatement:
    cursor = queries.cursor
    hint = "Write CREATE QUERY name [WITH (...)] [INTO sink] [ACCESS EVERY ...] AS SELECT ..."
    name = cursor.name("the name of the query", hint)
    options = _with_options(cursor)
    into = cursor.name("a sink", hint) if cursor.take("INTO") else None
    access = cursor.listed(lambda: _access(cursor)) if cursor.take("ACCESS") else ()
    options = _with_options(cursor, options)
    cursor.expect("AS", hint=hint, what="AS and a SELECT")
    body = queries.body()
    return QueryStatement(body, name, into, _with_options(cursor, options), access)


def _access(cursor: Cursor) -> AccessClause:
    hint = "Write ACCESS EVERY INTERVAL 1 MINUTE WHEN symbol = 'GOOG', EVERY INTERVAL 1 HOUR."
    first = cursor.token
    cursor.expect("EVERY", hint=hint)
    every = cursor.length(hint)
    when = cursor.expression("a condition", hint) if cursor.take_type(TokenType.WHEN) else None
    return AccessClause(every, when, place=cursor.place_since(first))


def _alter_statement(cursor: Cursor) -> AlterStatement:
    hint = "Write ALTER QUERY name SET (strategy = 'bfs')."
    cursor.expect("QUERY", hint=hint)
    name = cursor.name("the name of a query", hint)
    cursor.expect("SET", hint=hint)
    return AlterStatement(name, cursor.options(hint))


def _show_statement(cursor: Cursor) -> ShowStatement:
    first = cursor.token
    waits = cursor.take("SHOW", "WAITS")
    if not waits:
        cursor.expect("SHOW", "QUERIES", hint="Write SHOW QUERIES or SHOW WAITS.")
    return ShowStatement(waits=waits, place=cursor.place_since(first))


def _with_options(cursor: Cursor, before: Options | None = None) -> Options:
    """The options `before`, and those of `WITH (key = value, ...)` if it comes next."""
    before = before or {}
    if not cursor.take_type(TokenType.WITH):
        return before
    return {**before, **cursor.options("Options read WITH (key = 'value', ...).", before)}


_DECLARED: dict[str, Callable[[Cursor], Statement]] = {
    "STREAM": stream_statement,
    "SINK": sink_statement,
    "AGGREGATE": aggregate_statement,
    "FUNCTION": function_statement,
}
"""What CREATE declares, by its word."""
