"""Whole statements: what CREATE declares, and what `request_parser` reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import Place, QueryError
from millrace.language.grammar.code_parser import aggregate_statement, function_statement
from millrace.language.grammar.request_parser import (
    added_query,
    alter_statement,
    bare_query,
    describe_statement,
    drop_statement,
    explain_statement,
    insert_statement,
    query_statement,
    set_statement,
    show_statement,
)
from millrace.language.grammar.select_parser import SelectParser
from millrace.language.grammar.statements import Declared, QueryStatement, Statement, ViewStatement
from millrace.language.grammar.stream_parser import sink_statement, stream_statement
from millrace.language.grammar.table_parser import refresh_statement, table_statement
from millrace.language.grammar.text.complaints import incomplete
from millrace.language.grammar.text.cursor import Cursor
from millrace.language.grammar.text.dialect import tokens_of
from millrace.language.grammar.text.places import SourceText
from millrace.language.grammar.text.variables import filled
from millrace.language.grammar.unsupported import CREATED, STATEMENTS, refuse_if_exists

Found = TypeVar("Found")

_STATEMENTS = (
    "The statements are CREATE STREAM, TABLE, SINK, VIEW, QUERY, AGGREGATE or FUNCTION, INSERT INTO, ALTER QUERY, "
    "DROP QUERY, REFRESH TABLE, SHOW, DESCRIBE, EXPLAIN, SET and SELECT."
)


def parse_script(text: str) -> tuple[Statement, ...]:
    """The statements of a text, with the place of every name in it; its variables are filled in."""
    source = SourceText(filled(text))
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
    if "END after CASE" in str(error):
        return QueryError("CASE has no END", hint="Write CASE WHEN condition THEN value ELSE value END.", place=place)
    expected = re.match(r"(?:Expected|Expecting) (\S+)", str(error))
    if expected or "Required keyword" in str(error):
        return incomplete(cursor, place, expected[1] if expected else "")
    found = f'"{place.text}"' if place.text else "the end"
    return QueryError(f"unexpected {found}", hint="Check the text at and before this place.", place=place)


# Statements


def _statement(queries: SelectParser) -> Statement:
    cursor = queries.cursor
    if cursor.take("CREATE"):
        replaces = cursor.take("OR", "REPLACE")
        return replace(_created(queries), replaces=True) if replaces else _created(queries)
    for word, read in _ASKED.items():
        if cursor.take(word):
            return read(queries)
    if cursor.at_type(TokenType.SELECT, TokenType.L_PAREN, TokenType.WITH):
        return bare_query(queries)
    raise cursor.wrong("a statement", STATEMENTS.get(cursor.token.text.upper(), _STATEMENTS))


def _created(queries: SelectParser) -> Declared | QueryStatement:
    cursor = queries.cursor
    if cursor.take("QUERY"):
        refuse_if_exists(cursor)
        return query_statement(queries)
    if cursor.take("VIEW") or cursor.take("TEMPORARY", "VIEW") or cursor.take("TEMP", "VIEW"):
        refuse_if_exists(cursor)
        return _view(queries)
    for word, read in _DECLARED.items():
        if cursor.take(word):
            refuse_if_exists(cursor)
            return read(cursor)
    raise cursor.wrong(
        "STREAM, TABLE, SINK, VIEW, AGGREGATE, FUNCTION or QUERY", CREATED.get(cursor.token.text.upper(), _STATEMENTS)
    )


def _view(queries: SelectParser) -> ViewStatement:
    cursor = queries.cursor
    hint = "Write CREATE VIEW name [(column, ...)] AS SELECT ..."
    name = cursor.name("the name of the view", hint)
    columns = cursor.names("a column", hint) if cursor.at_type(TokenType.L_PAREN) else ()
    cursor.expect("AS", hint=hint, what="AS and a SELECT")
    return ViewStatement(name, replace(queries.body(), columns=columns))


_DECLARED: dict[str, Callable[[Cursor], Declared]] = {
    "STREAM": stream_statement,
    "TABLE": table_statement,
    "SINK": sink_statement,
    "AGGREGATE": aggregate_statement,
    "FUNCTION": function_statement,
}
"""What CREATE declares, by its word."""
_ASKED: dict[str, Callable[[SelectParser], Statement]] = {
    "ADD": added_query,
    "INSERT": insert_statement,
    "DROP": drop_statement,
    "ALTER": alter_statement,
    "REFRESH": lambda queries: refresh_statement(queries.cursor),
    "SHOW": show_statement,
    "DESCRIBE": describe_statement,
    "DESC": describe_statement,
    "EXPLAIN": explain_statement,
    "SET": set_statement,
}
"""Further statements, by their first word."""
