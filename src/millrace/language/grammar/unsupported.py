"""Forms of other systems that this language has not: recognised by their words, refused with what to write here."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from millrace.errors import NotYet
from millrace.language.grammar.text.cursor import Cursor

LIMIT = (
    "On the console SELECT ... LIMIT 10 shows ten rows and ends the run; for the first of each window write "
    "QUALIFY row_number() OVER (PARTITION BY window_start ORDER BY ...) <= 10."
)
_GROUPS = "Write one query for each set of groups."
_FORMS: dict[tuple[str, ...], str] = {
    ("OFFSET",): "An unbounded stream goes on; filter with WHERE or HAVING instead.",
    ("FETCH",): "To see some rows write LIMIT 10, which ends the run.",
    ("EXCEPT",): "Write FROM a LEFT JOIN b [RANGE ...] ON a.k = b.k, and keep the rows where b.k IS NULL.",
    ("MINUS",): "Write FROM a LEFT JOIN b [RANGE ...] ON a.k = b.k, and keep the rows where b.k IS NULL.",
    ("ON", "CONFLICT"): "Leave it out: a sink says it, CREATE SINK name TO postgres OPTIONS (..., mode 'upsert').",
    ("RETURNING",): "Leave it out: rows that go to a sink are shown by a SELECT of their own.",
    ("INTERSECT",): "Write FROM a JOIN b [RANGE ...] ON a.k = b.k.",
    **dict.fromkeys((("ROLLUP",), ("CUBE",), ("GROUPING SETS",), ("WITH", "ROLLUP"), ("WITH", "CUBE")), _GROUPS),
    ("EMIT", "CHANGES"): "Leave it out: each window is reported when it closes.",
    (
        "MATCH_RECOGNIZE",
    ): "Write FROM a SEQ b ON a.k = b.k MODE RECENT, each row of b with the last row of a before it.",
    ("TABLESAMPLE",): "Filter with WHERE.",
    ("PIVOT",): "Write one aggregate for each column: sum(v) FILTER (WHERE k = 'a') AS a.",
    ("UNPIVOT",): "Write one select for each column: SELECT 'a' AS name, a AS value, ts FROM s UNION ALL SELECT ...",
    ("FOR", "UPDATE"): "Leave it out: a query changes no rows.",
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
    "APPLY": "For a row per element write CROSS JOIN UNNEST(column) AS t (element); else JOIN with a window.",
    "POSITIONAL": "Rows of streams are joined by keys and times: JOIN b ON a.k = b.k AND b.ts BETWEEN ...",
}
_ROWS = "Rows come from streams, and results go to sinks: Millrace changes no tables."
_ACCESS = "Leave it out: who may read files or ask over HTTP is decided outside of SQL; see docs/security.md."
STATEMENTS = {
    **dict.fromkeys(("GRANT", "REVOKE", "DENY"), _ACCESS),
    **dict.fromkeys(
        ("VACUUM", "OPTIMIZE", "REINDEX", "CHECKPOINT", "MSCK", "INSTALL", "ATTACH", "DETACH", "PRAGMA"),
        "Leave it out: there is nothing to keep in order, and nothing to load.",
    ),
    **dict.fromkeys(
        ("CALL", "DO", "PREPARE", "IF", "WHILE", "LOOP", "RETURN"),
        "A file declares streams and queries, and runs no program: write what a query computes as a SELECT.",
    ),
    "REPLACE": "Write CREATE OR REPLACE QUERY name AS SELECT ...",
    "STREAM": "Write CREATE STREAM name (columns) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (...).",
    "QUERY": "Write CREATE QUERY name AS SELECT ...",
    **dict.fromkeys(("WINDOW", "WHERE", "JOIN", "GROUP"), "It is a part of a query: is there a semicolon before it?"),
    **dict.fromkeys(("UPDATE", "DELETE", "MERGE", "UPSERT", "TRUNCATE"), _ROWS),
    **dict.fromkeys(("PRINT", "TABLE", "VALUES", "FROM"), "Write SELECT * FROM stream LIMIT 10."),
    **dict.fromkeys(("TERMINATE", "PAUSE", "STOP"), "Write DROP QUERY name in a request to the run: millrace control."),
    **dict.fromkeys(("USE", "LIST", "ANALYZE", "CACHE"), "Leave it out; SHOW STREAMS says what is declared."),
    **dict.fromkeys(
        ("BEGIN", "EXECUTE", "COMMIT", "START", "END"),
        "Leave it out: all statements of a file make one network, which runs as a whole.",
    ),
    **dict.fromkeys(
        ("COPY", "LOAD", "EXPORT"),
        "To read write CREATE STREAM name (...) FROM csv OPTIONS (path '...'), to write INSERT INTO sink SELECT ...",
    ),
    "SUMMARIZE": "Write DESCRIBE name for the columns; the command millrace new measures a file.",
    **dict.fromkeys(("UNSET", "RESET", "DECLARE", "DEFINE"), "Write SET name = value, and ${name} where it is used."),
}
"""What to write instead of a statement, by its first word."""
_RUNNING = "Write CREATE QUERY name AS SELECT ..., which runs; CREATE VIEW only names a select."
CREATED = {
    "MATERIALIZED": _RUNNING,
    "SOURCE": "Write CREATE STREAM name (columns) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (...).",
    "CONNECTOR": "Write CREATE STREAM name (columns) ... FROM format, or CREATE SINK name TO format.",
    "INDEX": "Leave it out: a join keeps its rows by their keys.",
    **dict.fromkeys(("DYNAMIC", "CONTINUOUS", "PERSISTENT", "LIVE", "STREAMING", "TASK"), _RUNNING),
    **dict.fromkeys(
        ("TEMPORARY", "TEMP", "EXTERNAL", "GLOBAL", "LOCAL", "UNLOGGED", "TRANSIENT", "FOREIGN", "READ_ONLY"),
        "Leave the word out: CREATE STREAM name (columns) ... FROM format, or CREATE TABLE for reference data.",
    ),
    **dict.fromkeys(
        ("STAGE", "PIPE", "TOPIC", "CHANGEFEED", "SUBSCRIPTION"),
        "Write CREATE STREAM name (columns) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (...) to read rows as they come.",
    ),
    **dict.fromkeys(
        ("MACRO", "PROCEDURE", "TRIGGER"),
        "Write CREATE VIEW name AS SELECT ..., or a function of your own: CREATE FUNCTION name(TYPE) RETURNS TYPE "
        "LANGUAGE PYTHON AS 'package.module:function'.",
    ),
    **dict.fromkeys(
        ("SECRET", "CONNECTION", "SERVER"), "Write a reference where the secret is used: password '${env:PASSWORD}'."
    ),
    **dict.fromkeys(("USER", "ROLE", "POLICY"), _ACCESS),
    **dict.fromkeys(("SEQUENCE", "EXTENSION", "WAREHOUSE", "UNIQUE"), "Leave it out: there is none of its kind here."),
    **dict.fromkeys(("TYPE", "DOMAIN"), "Write the type where it is used: STRUCT<a: INT, b: STRING>."),
    **dict.fromkeys(("DATABASE", "SCHEMA", "CATALOG"), "Leave it out: the names of a file stand side by side."),
}
"""What to write instead of what CREATE makes elsewhere."""


def refuse_if_exists(cursor: Cursor) -> None:
    """Refuse IF EXISTS and IF NOT EXISTS, which other systems write before a name."""
    for words in (("IF", "NOT", "EXISTS"), ("IF", "EXISTS")):
        first = cursor.token
        if cursor.take(*words):
            hint = "Leave it out: a file declares each name once; CREATE OR REPLACE takes the place of an earlier one."
            raise NotYet(f"{' '.join(words)} is not supported yet", hint=hint, place=cursor.place_since(first))


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
