"""`LATERAL VIEW [OUTER] explode(a) t AS c` and `CROSS JOIN UNNEST(a) [WITH ORDINALITY] AS t (c, n)`, after FROM."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from millrace.errors import QueryError
from millrace.language.grammar.statements import GENERATORS, JSON_TUPLE, ExplodeClause, Name
from millrace.language.grammar.text.cursor import Cursor

_VIEW_HINT = "Write FROM s LATERAL VIEW explode(column) t AS element."
_LEFT_HINT = "Write FROM s LEFT JOIN UNNEST(column) AS t (element) ON TRUE."
_UNNEST_HINT = "Write FROM s CROSS JOIN UNNEST(column) WITH ORDINALITY AS t (element, number)."


def explode_clause(cursor: Cursor) -> ExplodeClause | None:
    """The next clause that gives a row per element, if one stands here."""
    if cursor.take("LATERAL", "VIEW"):
        return _lateral_view(cursor)
    here = cursor.position
    if (cursor.take_type(TokenType.COMMA) or cursor.take("CROSS", "JOIN")) and cursor.take("UNNEST"):
        return _unnest(cursor)
    cursor.back_to(here)
    if cursor.take("LEFT") and (cursor.take("OUTER"), cursor.take("JOIN", "UNNEST"))[1]:
        found = replace(_unnest(cursor), optional=True)
        cursor.expect("ON", "TRUE", hint=_LEFT_HINT)
        return found
    cursor.back_to(here)
    return None


def _lateral_view(cursor: Cursor) -> ExplodeClause:
    first = cursor.last
    outer = cursor.take("OUTER")
    call = cursor.expression("a function such as explode", _VIEW_HINT)
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    if name != JSON_TUPLE and (name not in GENERATORS or len(call.expressions) != 1):
        fact = "LATERAL VIEW takes explode, posexplode, inline or json_tuple"
        raise QueryError(fact, hint=_VIEW_HINT, place=cursor.place())
    table = None if cursor.at_type(TokenType.ALIAS) else cursor.alias()
    columns: tuple[Name, ...] = ()
    if cursor.take_type(TokenType.ALIAS):
        columns = cursor.listed(lambda: cursor.name("the name of a column", _VIEW_HINT))
    place = cursor.place_since(first)
    argument = call if name == JSON_TUPLE else call.expressions[0]
    return ExplodeClause(name, argument, columns, table, optional=outer, place=place)


def _unnest(cursor: Cursor) -> ExplodeClause:
    first = cursor.last
    (argument,) = cursor.parenthesised(lambda: cursor.expression("an array", _UNNEST_HINT), _UNNEST_HINT)[:1]
    ordinality = cursor.take("WITH", "ORDINALITY")
    table = cursor.alias()
    columns: tuple[Name, ...] = ()
    if table is not None and cursor.at_type(TokenType.L_PAREN):
        columns = cursor.names("the name of a column", _UNNEST_HINT)
    place = cursor.place_since(first)
    return ExplodeClause("unnest", argument, columns, table, ordinality=ordinality, place=place)
