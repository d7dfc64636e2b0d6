"""CREATE AGGREGATE and FUNCTION: code in Python by its place, or blocks of SQL over the variables of a state."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from millrace.errors import QueryError
from millrace.language.grammar.statements import (
    AggregateStatement,
    Assignment,
    Blocks,
    FunctionStatement,
    Name,
    TypeName,
)
from millrace.language.grammar.text.cursor import Cursor

_HINT = (
    "Write CREATE AGGREGATE name(TYPE) RETURNS TYPE LANGUAGE PYTHON AS 'package.module:Class', or LANGUAGE SQL AS "
    "INITIALIZE (n = 0) ITERATE (n = n + 1) MERGE (n = n + other.n) TERMINATE n."
)
_FUNCTION_HINT = "Write CREATE FUNCTION name(TYPE) RETURNS TYPE LANGUAGE PYTHON AS 'package.module:function'."


def aggregate_statement(cursor: Cursor) -> AggregateStatement:
    """`name(types) RETURNS type LANGUAGE ... AS ...`, after CREATE AGGREGATE."""
    name = cursor.name("the name of the aggregate", _HINT)
    parameters, returns = _signature(cursor, _HINT)
    if cursor.take("PYTHON"):
        return AggregateStatement(name, parameters, returns, _import_path(cursor, "a class", _HINT))
    cursor.expect("SQL", hint=_HINT, what="PYTHON or SQL")
    cursor.expect("AS", hint=_HINT)
    return AggregateStatement(name, parameters, returns, _blocks(cursor))


def function_statement(cursor: Cursor) -> FunctionStatement:
    """`name(types) RETURNS type LANGUAGE PYTHON AS ...`, after CREATE FUNCTION."""
    name = cursor.name("the name of the function", _FUNCTION_HINT)
    parameters, returns = _signature(cursor, _FUNCTION_HINT)
    cursor.expect("PYTHON", hint=_FUNCTION_HINT)
    return FunctionStatement(name, parameters, returns, _import_path(cursor, "a function", _FUNCTION_HINT))


def _signature(cursor: Cursor, hint: str) -> tuple[tuple[TypeName, ...], Name]:
    """`(types) RETURNS type LANGUAGE`."""
    parameters = cursor.parenthesised(lambda: _parameter(cursor, hint), hint)
    cursor.expect("RETURNS", hint=hint)
    returns = cursor.type_name()
    cursor.expect("LANGUAGE", hint=hint)
    return parameters, returns


def _parameter(cursor: Cursor, hint: str) -> TypeName:
    """`TYPE`, or a name and its type."""
    if cursor.second.token_type in (TokenType.COMMA, TokenType.R_PAREN, TokenType.L_PAREN, TokenType.LT):
        return TypeName(cursor.type_name())
    name = cursor.name("a parameter", hint)
    return TypeName(cursor.type_name(), name)


def _import_path(cursor: Cursor, what: str, hint: str) -> Name:
    """`AS 'package.module:name'`."""
    cursor.expect("AS", hint=hint)
    if not cursor.take_type(TokenType.STRING):
        raise cursor.wrong(f"the place of {what} in quotes", hint)
    return Name(cursor.last.text, place=cursor.source.of_token(cursor.last))


def _blocks(cursor: Cursor) -> Blocks:
    cursor.expect("INITIALIZE", hint=_HINT)
    initialize = _assignments(cursor)
    cursor.expect("ITERATE", hint=_HINT)
    iterate = _assignments(cursor)
    merge = _assignments(cursor) if cursor.take("MERGE") else None
    cursor.expect("TERMINATE", hint=_HINT)
    return Blocks(initialize, iterate, merge, cursor.expression("an expression", _HINT))


def _assignments(cursor: Cursor) -> tuple[Assignment, ...]:
    found = cursor.parenthesised(lambda: _assignment(cursor), _HINT)
    seen: set[str] = set()
    for each in found:
        if each.variable.text.lower() in seen:
            raise QueryError(
                f'"{each.variable.text}" is assigned twice', hint="Keep one of them.", place=each.variable.place
            )
        seen.add(each.variable.text.lower())
    return found


def _assignment(cursor: Cursor) -> Assignment:
    variable = cursor.name("a variable", _HINT)
    if not cursor.take_type(TokenType.EQ):
        raise cursor.wrong('"="', _HINT)
    return Assignment(variable, cursor.expression("an expression", _HINT))
