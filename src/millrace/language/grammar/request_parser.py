"""What is asked of a network: queries in all their forms, ALTER and DROP QUERY, SHOW, DESCRIBE, EXPLAIN, SET."""

from __future__ import annotations

from dataclasses import replace

from sqlglot.tokenizer_core import TokenType

from millrace.errors import NotYet, QueryError
from millrace.language.grammar.select_parser import SelectParser
from millrace.language.grammar.statements import (
    AccessClause,
    AlterStatement,
    DescribeStatement,
    DropStatement,
    ExplainStatement,
    NumberOfRows,
    Options,
    QueryStatement,
    SetStatement,
    ShowStatement,
)
from millrace.language.grammar.text.cursor import Cursor
from millrace.language.grammar.unsupported import refuse_if_exists

SHOWN = ("streams", "tables", "sinks", "views", "queries", "functions", "waits")
"""What SHOW takes."""
_INSERT_HINT = "Write INSERT INTO sink SELECT ..., after CREATE SINK sink TO csv OPTIONS (path 'folder')."
EXPLAIN_FORMATS = ("text", "json", "dot", "svg")
_FORMAT_HINT = "Write EXPLAIN (FORMAT json) SELECT ..."
_EXPLAIN_HINT = "Write EXPLAIN SELECT ...; the command millrace explain shows the queries of a whole file."


def query_statement(queries: SelectParser) -> QueryStatement:
    """What follows CREATE QUERY."""
    cursor = queries.cursor
    hint = "Write CREATE QUERY name [WITH (...)] [INTO sink] [ACCESS EVERY ...] AS SELECT ..."
    name = cursor.name("the name of the query", hint)
    options = _with_options(cursor)
    into = cursor.name("a sink", hint) if cursor.take("INTO") else None
    access = cursor.listed(lambda: _access(cursor)) if cursor.take("ACCESS") else ()
    options = _with_options(cursor, options)
    if into is not None and cursor.at_type(TokenType.COMMA):
        hint = f"A query goes to one sink: write INSERT INTO name SELECT * FROM {name.text} for another."
    cursor.expect("AS", hint=hint, what="AS and a SELECT")
    body = queries.body()
    return QueryStatement(body, name, into, _with_options(cursor, options), access)


def added_query(queries: SelectParser) -> QueryStatement:
    """What follows ADD."""
    queries.cursor.expect("QUERY", hint="Write ADD QUERY name AS SELECT ...")
    return query_statement(queries)


def insert_statement(queries: SelectParser) -> QueryStatement:
    """What follows INSERT: a query that has the name of its sink."""
    cursor = queries.cursor
    if cursor.at("OVERWRITE"):
        raise NotYet(
            "INSERT OVERWRITE is not supported yet",
            hint="Write INSERT INTO, and let the sink say OPTIONS (..., mode 'overwrite').",
            place=cursor.place(),
        )
    cursor.expect("INTO", hint=_INSERT_HINT)
    cursor.take("TABLE")
    sink = cursor.name("a sink", _INSERT_HINT)
    columns = (
        () if not cursor.at_type(TokenType.L_PAREN) or _at_select(cursor) else cursor.names("a column", _INSERT_HINT)
    )
    if cursor.at_type(TokenType.VALUES):
        raise QueryError(
            "INSERT INTO takes a SELECT, not VALUES",
            hint="Rows come from streams: from files, from Python (stream.push), or from sources of Spark's.",
            place=cursor.place(),
        )
    if not cursor.at_type(TokenType.SELECT, TokenType.L_PAREN, TokenType.WITH):
        raise cursor.wrong("SELECT", "Write INSERT INTO sink SELECT ..., or INSERT INTO sink (a, b) SELECT ...")
    body = replace(queries.body(), columns=columns)
    return QueryStatement(body, None, sink, _with_options(cursor))


def _at_select(cursor: Cursor) -> bool:
    return cursor.second.token_type in (TokenType.SELECT, TokenType.L_PAREN, TokenType.WITH)


def bare_query(queries: SelectParser) -> QueryStatement:
    """A select whose rows are shown; with LIMIT only that number of them."""
    cursor = queries.cursor
    body = queries.body(console=True)
    limit = None
    if cursor.take("LIMIT"):
        token = cursor.token
        if token.token_type != TokenType.NUMBER or not token.text.isdigit() or not int(token.text):
            raise cursor.wrong("a number of rows", "Write LIMIT 10.")
        cursor.skip()
        limit = NumberOfRows(int(token.text), place=cursor.source.of_token(token))
    return QueryStatement(body, options=_with_options(cursor), limit=limit)


def _access(cursor: Cursor) -> AccessClause:
    hint = "Write ACCESS EVERY INTERVAL 1 MINUTE WHEN symbol = 'GOOG', EVERY INTERVAL 1 HOUR."
    first = cursor.token
    cursor.expect("EVERY", hint=hint)
    every = cursor.length(hint)
    when = cursor.expression("a condition", hint) if cursor.take_type(TokenType.WHEN) else None
    return AccessClause(every, when, place=cursor.place_since(first))


def _with_options(cursor: Cursor, before: Options | None = None) -> Options:
    """The options `before`, and those of `WITH (key = value, ...)` if it comes next."""
    before = before or {}
    if not cursor.take_type(TokenType.WITH):
        return before
    return {**before, **cursor.options("Options read WITH (key = 'value', ...).", before)}


# Changes and questions


def drop_statement(queries: SelectParser) -> DropStatement:
    """What follows DROP."""
    cursor = queries.cursor
    cursor.expect(
        "QUERY",
        hint="Only queries can be dropped: DROP QUERY name. Of anything else remove the CREATE from the file.",
    )
    refuse_if_exists(cursor)
    return DropStatement(cursor.name("the name of a query", "Write DROP QUERY name."))


def alter_statement(queries: SelectParser) -> AlterStatement:
    """What follows ALTER."""
    cursor = queries.cursor
    hint = "Write ALTER QUERY name SET (strategy = 'bfs')."
    declared = cursor.at("STREAM") or cursor.at("TABLE") or cursor.at("VIEW") or cursor.at("SINK")
    changed = (
        "Change its CREATE in the file, and start the run again on its checkpoint. Of a query options can be set: "
    )
    cursor.expect("QUERY", hint=f"{changed}{hint.removeprefix('Write ')}" if declared else hint)
    name = cursor.name("the name of a query", hint)
    cursor.expect("SET", hint=hint)
    return AlterStatement(name, cursor.options(hint))


def show_statement(queries: SelectParser) -> ShowStatement:
    """What follows SHOW."""
    cursor = queries.cursor
    first = cursor.last
    for word in SHOWN:
        if cursor.take(word.upper()):
            if cursor.token:
                raise cursor.wrong("the end", f"Write SHOW {word.upper()}, and nothing after it.")
            return ShowStatement(word, place=cursor.place_since(first))
    words = ", ".join(each.upper() for each in SHOWN)
    columns = (
        "DESCRIBE name shows the columns. " if cursor.token.text.upper() in ("COLUMNS", "CREATE", "FIELDS") else ""
    )
    raise cursor.wrong("what to show", f"{columns}Write SHOW and one of {words}.")


def describe_statement(queries: SelectParser) -> DescribeStatement:
    """What follows DESCRIBE."""
    cursor = queries.cursor
    if not cursor.take("EXTENDED") and cursor.second:
        cursor.take("FORMATTED")
    for word in ("STREAM", "SINK", "VIEW", "QUERY", "TABLE"):
        if cursor.second and cursor.take(word):
            break
    hint = "Write DESCRIBE and the name of a stream, view, query or sink."
    found = DescribeStatement(cursor.name("a name", hint))
    if cursor.token and not cursor.at("EXTENDED"):
        raise cursor.wrong("the end", hint)
    return found


def explain_statement(queries: SelectParser) -> ExplainStatement:
    """What follows EXPLAIN."""
    cursor = queries.cursor
    place = cursor.source.of_token(cursor.last)
    format = _explain_format(cursor)
    if not cursor.at_type(TokenType.SELECT, TokenType.L_PAREN, TokenType.WITH):
        raise cursor.wrong("SELECT", _EXPLAIN_HINT)
    query = QueryStatement(queries.body(), options=_with_options(cursor))
    return ExplainStatement(query, format, place=place)


def _explain_format(cursor: Cursor) -> str:
    """What stands in parentheses after EXPLAIN; text if nothing does."""
    if not cursor.take("(", "FORMAT"):
        return "text"
    found = cursor.token.text.lower() if cursor.token else ""
    if found not in EXPLAIN_FORMATS:
        raise cursor.wrong("text, json, dot or svg", _FORMAT_HINT)
    cursor.skip()
    cursor.expect(")", hint=_FORMAT_HINT)
    return found


def set_statement(queries: SelectParser) -> SetStatement:
    """What follows SET; `text/variables` has read the value before."""
    cursor = queries.cursor
    hint = "Write SET name = value; the options of a query stand with it: WITH (key = 'value')."
    name = cursor.name("the name of a variable", hint)
    cursor.expect("=", hint=hint, what='"="')
    if not cursor.token:
        raise cursor.wrong("a value", hint)
    while cursor.token:
        cursor.skip()
    return SetStatement(name)
