"""Expressions that are refused: forms and types of other systems, and what to write instead."""

from __future__ import annotations

import re

from sqlglot import exp

from millrace.errors import Place, QueryError, did_you_mean, listed
from millrace.kernel.columns.sql_types import MOST_DIGITS, TYPE_NAMES
from millrace.language.grammar.text.places import place_of

IN_FROM = (
    "Subqueries are allowed in FROM: write FROM a AS x JOIN (SELECT ...) AS y ON x.k = y.k, with a window or a band."
)
NOT_IN_FROM = (
    "Write FROM a AS x LEFT JOIN b AS y ON x.k = y.k, with a window or a band, and WHERE y.k IS NULL in a query "
    "around it."
)
_VALUE = '"{}" stands for a value that is not given'
_VARIABLES = "Write ${name}, and give its value with SET name = 5 or with --var name=5."
_JSON = "Write column:a.b for a part of a text of JSON, and column.a for a field of a STRUCT."
_OTHER_FORMS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Parameter: (_VALUE, _VARIABLES),
    exp.Placeholder: (_VALUE, _VARIABLES),
    exp.SessionParameter: (_VALUE, _VARIABLES),
    exp.Kwarg: (
        '"{}" names an argument',
        "Arguments have no names here: write the value alone. A function of elements is written x -> upper(x).",
    ),
    **dict.fromkeys(
        (exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar, exp.JSONBContains),
        ('"{}" is no operator of this language', _JSON),
    ),
    exp.CastToStrType: ('"{}" is no cast', "Write CAST(value AS type), or TRY_CAST(value AS type)."),
    exp.JSONBContainsTopKey: ('"{}" is no choice', "Write if(condition, value, other), or CASE WHEN ... THEN ... END."),
    exp.All: ('"{}" is no value', "Write column IN (1, 2, 3); a subquery stands in FROM."),
    exp.RegexpILike: ('"{}" is no condition here', "Write column RLIKE '(?i)pattern'."),
    exp.Overlaps: ('"{}" is no condition here', "Compare the bounds: a.begin < b.end AND b.begin < a.end."),
    exp.Collate: ('"{}" sets the order of text', "Leave COLLATE out: text is compared by its characters."),
    exp.SimilarTo: ('"{}" is no condition here', "Write column RLIKE 'a regular expression', or LIKE."),
    exp.Glob: ('"{}" is no condition here', "Write column LIKE 'a%'."),
    exp.Tuple: (
        '"{}" is no single value',
        "Write struct(a, b), or compare column by column: a = 1 AND b = 2. GROUP BY takes columns without parentheses.",
    ),
}
"""Forms of other systems that are read and not bound: what is said of them, and what to write."""
_OTHER_TYPES = {
    **dict.fromkeys(
        ("JSON", "JSONB", "VARIANT", "OBJECT", "SUPER", "HSTORE"),
        "STRING for a text of JSON, whose parts are column:a.b, or STRUCT<a: INT, b: STRING>",
    ),
    **dict.fromkeys(("SERIAL", "BIGSERIAL", "IDENTITY", "UBIGINT", "UINTEGER", "INT8", "HUGEINT"), "BIGINT"),
    **dict.fromkeys(("INT4", "MEDIUMINT", "INTEGR"), "INT"),
    **dict.fromkeys(("DATETIME", "DATETIME2", "SMALLDATETIME", "TIMESTAMP_TZ", "TIMESTAMP_MS"), "TIMESTAMP"),
    **dict.fromkeys(("MONEY", "NUMBER", "BIGNUMERIC"), "DECIMAL(18, 2), or BIGINT"),
    **dict.fromkeys(("FLOAT8", "FLOAT64", "NUMBR"), "DOUBLE"),
    **dict.fromkeys(("BLOB", "BYTEA", "BYTES", "VARBINARY", "IMAGE"), "BINARY"),
    **dict.fromkeys(("BIT",), "BOOLEAN"),
    **dict.fromkeys(
        *(("UUID", "NVARCHAR", "VARCHAR2", "CLOB", "ENUM", "INET", "CHARACTER", "TIME", "XML", "CITEXT"),), "STRING"
    ),
}
"""What to write for types of other systems."""


def refused_form(node: exp.Expr) -> QueryError:
    """The refusal of an expression that has no meaning here."""
    place = place_of(node)
    written = (place and place.text) or node.key
    if isinstance(node, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
        return QueryError(
            f'"{written}" is not an aggregate that is allowed here',
            hint="FILTER, IGNORE NULLS and WITHIN GROUP follow aggregates of the select list and of HAVING.",
        )
    if isinstance(node, exp.Star):
        return QueryError("* is only allowed alone or in count(*)", hint="Name the column that you mean.")
    if isinstance(node, (exp.Query, exp.Subquery, exp.Exists)):
        hint = NOT_IN_FROM if isinstance(node, exp.Exists) and isinstance(node.parent, exp.Not) else IN_FROM
        return QueryError("a subquery is not allowed in an expression", hint=hint)
    if isinstance(node, exp.AtTimeZone):
        return QueryError(
            "AT TIME ZONE is no part of an expression",
            hint="from_utc_timestamp(ts, 'Europe/Berlin') is what the clock there shows. Windows take it.",
        )
    if type(node) in _OTHER_FORMS:
        fact, hint = _OTHER_FORMS[type(node)]
        return QueryError(fact.format(written), hint=hint)
    return QueryError(
        f'"{written}" is not a supported expression',
        hint="Expressions are columns, literals, operators, CASE, CAST and the scalar functions of Spark SQL.",
    )


def unknown_type(name: str, place: Place | None) -> QueryError:
    """The refusal of a word that names no type."""
    hint = f"{did_you_mean(name.upper(), TYPE_NAMES, near=0.7)}The types are {listed(TYPE_NAMES)}."
    if re.fullmatch(r"(?i)(dec|decimal|numeric)\b.*", name):
        hint = f"Write DECIMAL(p, s) with p digits, of which s stand after the point; p is at most {MOST_DIGITS}."
    elif re.fullmatch(r"(?is)interval\b.*", name):
        hint = "Declare it as STRING, and write CAST(column AS INTERVAL DAY TO SECOND), or YEAR TO MONTH, in the query."
    elif (instead := _OTHER_TYPES.get(re.split(r"\W", name.upper())[0])) is not None:
        hint = f"Write {instead}."
    elif re.fullmatch(r"(?is)(array|struct|map)\b.*", name):
        hint = "Write ARRAY<INT>, STRUCT<a: INT, b: STRING> or MAP<STRING, INT>."
    return QueryError(f'type "{name}" is unknown here', hint=hint, place=place)


def refused_over(node: exp.Expr) -> QueryError:
    """The refusal of a function with OVER."""
    return QueryError(
        "a function with OVER is not allowed here",
        hint="Ranks are allowed in the select list and in QUALIFY; to choose by one, write QUALIFY after HAVING.",
        place=place_of(node),
    )
