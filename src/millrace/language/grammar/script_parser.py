"""Whole statements: CREATE STREAM, SINK, AGGREGATE, FUNCTION and QUERY, ADD, ALTER and DROP QUERY, SHOW, selects."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from millrace.errors import Place, QueryError
from millrace.language.grammar.aggregate_parser import AggregateParser
from millrace.language.grammar.dialect import tokens_of
from millrace.language.grammar.places import Source
from millrace.language.grammar.statements import (
    AccessClause,
    AlterStatement,
    Body,
    ColumnDefinition,
    DropStatement,
    Options,
    QueryStatement,
    SelectItem,
    ShowStatement,
    SinkStatement,
    Statement,
    Watermark,
)

Found = TypeVar("Found")

_STATEMENTS = (
    "The statements are CREATE STREAM, CREATE SINK, CREATE AGGREGATE, CREATE FUNCTION, CREATE QUERY, ALTER QUERY, "
    "DROP QUERY and SELECT."
)
_OPTIONS_HINT = "Options read WITH (key = 'value', ...)."


def parse_script(text: str) -> tuple[Statement, ...]:
    """The statements of a text, with the place of every name in it."""
    source = Source(text)
    return tuple(_parse(source, tokens, ScriptParser.statement) for tokens in tokens_of(source))


def parse_expression(text: str) -> exp.Expr:
    """One expression, and nothing after it."""
    return _parse_one(text, lambda parser: parser.expression_here("an expression", "Write one expression."))


def parse_item(text: str) -> SelectItem:
    """One item of a select list, `expression [AS name]`, and nothing after it."""
    return _parse_one(text, ScriptParser.item)


def parse_columns(text: str) -> tuple[ColumnDefinition | Watermark, ...]:
    """The column list of CREATE STREAM without its parentheses."""
    return _parse_one(text, lambda parser: parser.listed(parser.definition))


def parse_body(text: str) -> Body:
    """One query: selects under UNION, and nothing after them."""
    return _parse_one(text, ScriptParser.body)


def _parse_one(text: str, read: Callable[[ScriptParser], Found]) -> Found:
    source = Source(text)
    statements = tokens_of(source)
    if len(statements) != 1:
        raise QueryError(
            "expected one expression", hint="Write one expression, without a semicolon.", place=source.place(0, 0)
        )
    return _parse(source, statements[0], read)


def _parse(source: Source, tokens: list[Token], read: Callable[[ScriptParser], Found]) -> Found:
    """What `read` finds in the tokens, all of which it must use up."""
    parser = ScriptParser(source)
    parser.load(tokens)
    try:
        found = read(parser)
        parser.expect_end()
    except ParseError as error:
        raise _complaint(error, parser) from None
    except RecursionError:
        raise QueryError(
            "the statement is nested too deeply", hint="Split it.", place=source.of_token(tokens[0])
        ) from None
    except (AttributeError, TypeError, ValueError, IndexError, KeyError, AssertionError):
        # Sqlglot's parser is written for valid text; on some invalid text it fails inside.
        raise parser.wrong("something else", _STATEMENTS) from None
    return found


def _complaint(error: ParseError, parser: ScriptParser) -> QueryError:
    """Sqlglot's complaint in our words; its own name its classes."""
    place: Place = getattr(error, "place", parser.place())
    found = f'"{place.text}"' if place.text else "the end"
    expected = re.match(r"(?:Expected|Expecting) (\S+)", str(error))
    if expected:
        fact = f'expected "{expected[1]}" before {found}'
    elif "Required keyword" in str(error):
        fact = f"something is missing before {found}"
    else:
        fact = f"{found} does not fit here"
    return QueryError(fact, hint="Check the text at and before this place.", place=place)


class ScriptParser(AggregateParser):
    """Reads one statement."""

    def statement(self) -> Statement:
        """The statement that comes next."""
        if self.take("CREATE"):
            return self._create()
        if self.take("DROP"):
            self.expect("QUERY", hint="Only queries can be dropped: DROP QUERY name.")
            return DropStatement(self.name("the name of a query", "Write DROP QUERY name."))
        if self.take("ADD"):
            self.expect("QUERY", hint="Write ADD QUERY name AS SELECT ...")
            return self._query_statement()
        if self.take("ALTER"):
            return self._alter_statement()
        if self.at("SHOW"):
            return self._show_statement()
        if self._curr.token_type in (TokenType.SELECT, TokenType.L_PAREN):
            body = self.body()
            return QueryStatement(body, options=self._with_options())
        raise self.wrong("a statement", _STATEMENTS)

    def _create(self) -> Statement:
        if self.take("STREAM"):
            return self.stream_statement()
        if self.take("SINK"):
            return self._sink_statement()
        if self.take("QUERY"):
            return self._query_statement()
        if self.take("AGGREGATE"):
            return self.aggregate_statement()
        if self.take("FUNCTION"):
            return self.function_statement()
        raise self.wrong("STREAM, SINK, AGGREGATE, FUNCTION or QUERY", _STATEMENTS)

    def _sink_statement(self) -> SinkStatement:
        hint = "Write CREATE SINK name TO parquet OPTIONS (path 'folder')."
        name = self.name("the name of the sink", hint)
        self.expect("TO", hint=hint)
        return SinkStatement(name, self.connector(hint))

    def _query_statement(self) -> QueryStatement:
        hint = "Write CREATE QUERY name [WITH (...)] [INTO sink] [ACCESS EVERY ...] AS SELECT ..."
        name = self.name("the name of the query", hint)
        early = self._with_options()
        into = self.name("a sink", hint) if self.take("INTO") else None
        access = self.listed(self._access) if self.take("ACCESS") else ()
        early = {**early, **self._with_options(early)}
        if not self._match(TokenType.ALIAS):
            raise self.wrong("AS and a SELECT", hint)
        body = self.body()
        return QueryStatement(body, name, into, {**early, **self._with_options(early)}, access)

    def _access(self) -> AccessClause:
        hint = "Write ACCESS EVERY INTERVAL 1 MINUTE WHEN symbol = 'GOOG', EVERY INTERVAL 1 HOUR."
        first = self._curr
        self.expect("EVERY", hint=hint)
        every = self.length(hint)
        when = self.expression_here("a condition", hint) if self._match(TokenType.WHEN) else None
        return AccessClause(every, when, place=self.place_since(first))

    def _alter_statement(self) -> AlterStatement:
        hint = "Write ALTER QUERY name SET (strategy = 'bfs')."
        self.expect("QUERY", hint=hint)
        name = self.name("the name of a query", hint)
        self.expect("SET", hint=hint)
        return AlterStatement(name, self.options(hint))

    def _show_statement(self) -> ShowStatement:
        first = self._curr
        if self.take("SHOW", "WAITS"):
            return ShowStatement(waits=True, place=self.place_since(first))
        self.expect("SHOW", "QUERIES", hint="Write SHOW QUERIES or SHOW WAITS.")
        return ShowStatement(place=self.place_since(first))

    def _with_options(self, before: Options | None = None) -> Options:
        """Read `WITH (key = value, ...)` if it comes next."""
        if not self._match(TokenType.WITH):
            return {}
        return self.options(_OPTIONS_HINT, before)

    def expect_end(self) -> None:
        """Refuse what is left over."""
        if self._curr:
            raise QueryError(
                f'"{self._curr.text}" does not fit here',
                hint="Something before it is missing or misspelt, or a semicolon is missing.",
                place=self.place(),
            )
