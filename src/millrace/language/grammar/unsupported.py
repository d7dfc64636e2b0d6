"""Forms of other systems that this language has not: recognised by their words, refused with what to write here."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from millrace.errors import NotYet
from millrace.language.grammar.cursor import Cursor

_GROUPS = "Write one query for each set of groups."
_FORMS: dict[tuple[str, ...], str] = {
    **dict.fromkeys(
        (("LIMIT",), ("OFFSET",), ("FETCH",)), "An unbounded stream goes on; filter with WHERE or HAVING instead."
    ),
    **dict.fromkeys((("EXCEPT",), ("INTERSECT",)), "Filter with WHERE."),
    **dict.fromkeys((("ROLLUP",), ("CUBE",), ("GROUPING SETS",), ("WITH", "ROLLUP"), ("WITH", "CUBE")), _GROUPS),
    ("EMIT", "CHANGES"): "Leave it out: each window is reported when it closes.",
    (
        "FOR",
        "SYSTEM_TIME",
    ): "Write a ASOF JOIN b ON b.ts <= a.ts AND a.k = b.k, the last row of b before each row of a.",
    (
        "MATCH_RECOGNIZE",
    ): "Write FROM a SEQ b ON a.k = b.k MODE RECENT, each row of b with the last row of a before it.",
    ("TABLESAMPLE",): "Filter with WHERE.",
    **dict.fromkeys(
        (("PIVOT",), ("UNPIVOT",)), "Write one aggregate for each column: sum(v) FILTER (WHERE k = 'a') AS a."
    ),
    **dict.fromkeys(
        (("SORT BY",), ("CLUSTER BY",), ("DISTRIBUTE BY",)), "Leave it out, or write ORDER BY and the time."
    ),
}
"""By their words; a token of several words is one."""
_JOINS = {
    "SEMI": "JOIN gives a row once for each that it meets; to have it once, make the second input unique first: "
    "JOIN (SELECT k, count(*) AS n FROM b [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k) AS y ON ...",
    "ANTI": "Use LEFT JOIN, and WHERE y.k IS NULL around it.",
    "LATERAL": "Use JOIN with a window or a band on the times.",
}
STATEMENTS = {
    "INSERT": "Write CREATE QUERY name INTO sink AS SELECT ...",
    "EXPLAIN": "Use the command millrace explain.",
    "DESCRIBE": "Use the command millrace explain, which shows the columns of each query.",
    "SET": "Options stand with their query: WITH (key = 'value').",
}
"""What to write instead of a statement, by its first word."""
CREATED = {
    "VIEW": "Write WITH name AS (SELECT ...) in front of the query that reads it.",
    "MATERIALIZED": "Write CREATE QUERY name AS SELECT ...",
    "TABLE": "Declare a stream: CREATE STREAM name (columns) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (...).",
    "OR": "Leave OR REPLACE out; a query that is there is dropped with DROP QUERY name.",
}
"""What to write instead of what CREATE makes elsewhere."""


def refuse_unsupported(cursor: Cursor) -> None:
    """Refuse a form of another system, if one stands here."""
    first = cursor.token
    if cursor.at_type(TokenType.IDENTIFIER):
        return
    for words, hint in _FORMS.items():
        if cursor.take(*words):
            fact = f"{' '.join(words)} is not supported yet"
            raise NotYet(fact, hint=hint, place=cursor.place_since(first))
    for word, hint in _JOINS.items():
        if cursor.at(word):
            raise NotYet(f"{word} joins are not supported yet", hint=hint, place=cursor.place())
