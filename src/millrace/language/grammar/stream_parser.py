"""CREATE STREAM, whose clauses stand in any order, each at most once, and CREATE SINK."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot.tokenizer_core import TokenType

from millrace.errors import QueryError
from millrace.language.grammar.statements import (
    ColumnDefinition,
    ColumnsClause,
    ConnectorClause,
    EtsClause,
    Length,
    Name,
    Options,
    PartitionsClause,
    ReplayClause,
    SinkStatement,
    StreamStatement,
    TimeClause,
    Watermark,
)
from millrace.language.grammar.text.cursor import Cursor

_VALUES_HINT = (
    "Write VALUES (1, 2, 3), or VALUES (('a', 1), ('b', 2)) where there are two columns; or VALUES FROM table (column)."
)
_COLUMNS_HINT = "Columns read (name TYPE, name TYPE, ...)."
_COLUMNS_ALONE = f"{_COLUMNS_HINT} A column has a name and a type, and a comma stands before the next."
_COMPUTED_HINT = "Write ts TIMESTAMP AS to_timestamp(day || ' ' || time, 'yyyyMMdd HHmm')."
_WATERMARK_HINT = "Write WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS."
_INTERNAL_HINT = "Write INTERNAL TIMESTAMP AS ts."
_SINK_HINT = "Write CREATE SINK name TO parquet OPTIONS (path 'folder')."
_TIME_HINT = (
    "Write TIMESTAMP BY ts ORDERED, TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS, TIMESTAMP BY ts DISORDER 100 ROWS "
    "or TIMESTAMP BY ts PUNCTUATED BY expression."
)
_ETS_HINT = (
    "Write ETS ON DEMAND or ETS EVERY INTERVAL 10 MILLISECONDS, with SKEW INTERVAL 1 SECOND or LULL INTERVAL 1 MINUTE "
    "if timestamps are external, or ETS NONE."
)
_CLAUSES_HINT = (
    "The clauses are TIMESTAMP BY ... ALSO BY, INTERNAL TIMESTAMP AS, LATENT TIMESTAMP, PARTITIONED BY, ETS, "
    "MAX FUTURE SKEW, UPDATE KEY, LATE BY WINDOW, LATE INTO, QUARANTINE INTO, TIME ZONE, FROM ... OPTIONS, REPLAY BY "
    "and WITH."
)
_KEYS = "Rows that update each other are declared after the columns: UPDATE KEY (column)."
_CONSTRAINTS: dict[tuple[str, ...], str] = {
    ("PRIMARY KEY",): _KEYS,
    ("PRIMARY", "KEY"): _KEYS,
    ("KEY",): _KEYS,
    ("NOT", "NULL"): "Leave it out: any column may be null, and WHERE column IS NOT NULL filters.",
    ("DEFAULT",): "Leave it out, and write coalesce(column, value) in the query.",
    ("COMMENT",): "Write a comment: -- text.",
    ("METADATA",): "Leave it out: list the columns that the source has.",
    ("HEADERS",): "Leave it out: list the columns that the source has.",
    ("UNIQUE",): "Leave it out: rows of a stream may repeat; SELECT DISTINCT over a window leaves repetitions out.",
    ("CHECK",): "Leave it out, and write the condition in WHERE of the queries.",
    ("REFERENCES",): "Leave it out: a join says what belongs together.",
    ("COLLATE",): "Leave it out: text is compared by its characters.",
    ("WITH", "TIME", "ZONE"): "Leave it out: a TIMESTAMP is an instant, and a time without a zone is read as UTC.",
    ("WITHOUT", "TIME", "ZONE"): "Leave it out, and write TIME ZONE 'Europe/Berlin' after the columns if it is local.",
    ("UNSIGNED",): "Leave it out, and take the next wider type: BIGINT for INT.",
    **{(word,): "Leave it out: the source brings the values." for word in ("AUTO_INCREMENT", "IDENTITY", "GENERATED")},
}
_TYPES = {
    *("INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "STRING", "VARCHAR", "TEXT", "DOUBLE", "FLOAT", "BOOLEAN"),
    *("DATE", "TIMESTAMP", "DECIMAL"),
}
_FILE = re.compile(r"/|\.(csv|json|parquet|txt|tsv)$")
_FORMAT = "Where rows come from is written FROM csv OPTIONS (path 'file.csv')."
_ELSEWHERE = {
    "WATERMARK": "Put it into the list of columns: (..., WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS); or write "
    "TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS.",
    **dict.fromkeys(("USING", "STORED", "FORMAT", "LOCATION", "TO", "OPTIONS", "ROW", "ENCODE", "INCLUDE"), _FORMAT),
    **dict.fromkeys(("TBLPROPERTIES", "ENGINE", "PROPERTIES"), f"Leave it out. {_FORMAT}"),
    "COMMENT": "Write a comment: -- text.",
    **dict.fromkeys(("PRIMARY KEY", "PRIMARY", "UNIQUE"), _KEYS),
    "ORDER BY": f"In which order rows come is said of their time. {_TIME_HINT}",
    "AS": "A stream that is computed is a view: CREATE VIEW name AS SELECT ..., or CREATE QUERY, which runs.",
    "TIMESTAMP": _TIME_HINT,
    **dict.fromkeys(("ORDERED", "DISORDER", "PUNCTUATED"), f"It follows the time column. {_TIME_HINT}"),
    "INTERVAL": "INTERVAL stands before the number: DISORDER INTERVAL 5 SECONDS.",
    **dict.fromkeys(("CLUSTER BY", "CLUSTERED", "DISTRIBUTED", "SORT BY"), "Leave it out: Millrace chooses it."),
}
"""What to write for clauses of other systems, or of a time that is not given, by their first word."""
_OF_SOURCES = {
    *("connector", "kafka_topic", "topic", "value_format", "key_format", "format", "path", "bootstrap_servers", "type"),
    *("properties.bootstrap.servers", "partitions", "timestamp", "file_path"),
}
_STOP = {
    "ALSO", "PARTITION BY", "PARTITIONED", "PARTITIONED BY", "ETS", "MAX", "UPDATE", "LATE", "QUARANTINE",
    "TIME", "FROM", "REPLAY", "WITH",
}  # fmt: skip
"""The words that may follow the order of a time."""


def stream_statement(cursor: Cursor) -> StreamStatement:
    """`name (columns) clauses`, after CREATE STREAM."""
    name = cursor.name(
        "the name of the stream", "Write CREATE STREAM name (columns) TIMESTAMP BY ts ORDERED FROM csv ..."
    )
    if cursor.at("LIKE"):
        raise cursor.wrong('"("', "List the columns: (name TYPE, ...). DESCRIBE shows those of another stream.")
    if cursor.at("AS"):
        raise cursor.wrong('"("', "To name a select write CREATE VIEW name AS SELECT ..., to run it CREATE QUERY.")
    if cursor.at("WITH"):
        raise cursor.wrong('"("', "List the columns, then FROM and a format; a select that runs is CREATE QUERY.")
    definitions = cursor.parenthesised(lambda: _definition(cursor), _COLUMNS_ALONE)
    clauses: dict[str, Any] = {}
    while cursor.token:
        place = cursor.place()
        kind, clause = _clause(cursor)
        if kind in clauses:
            raise QueryError(
                f'stream "{name.text}" has two clauses of the same kind', hint="Keep one of them.", place=place
            )
        clauses[kind] = clause
    columns = tuple(each for each in definitions if isinstance(each, ColumnDefinition))
    watermarks = tuple(each for each in definitions if isinstance(each, Watermark))
    return StreamStatement(name, columns, watermarks, **clauses)


def _definition(cursor: Cursor) -> ColumnDefinition | Watermark:
    """`name TYPE`, or a watermark."""
    first = cursor.token
    if cursor.take("WATERMARK", "FOR"):
        column = cursor.name("the time column", _COLUMNS_HINT)
        cursor.expect("AS", hint=_WATERMARK_HINT)
        expression = cursor.expression("an expression", _WATERMARK_HINT)
        return Watermark(column, expression, place=cursor.place_since(first))
    if cursor.at("PRIMARY KEY") or cursor.at("PRIMARY", "KEY", "("):
        _refuse_constraint(cursor)
    if cursor.at("WATERMARK") and cursor.ahead(3)[2:] and cursor.ahead(3)[2].upper() == "AS":
        raise QueryError("FOR is missing after WATERMARK", hint=_WATERMARK_HINT, place=cursor.place())
    name = cursor.name("a column", _COLUMNS_HINT)
    if name.text.upper() in _TYPES and cursor.token and cursor.token.token_type == TokenType.VAR:
        hint = f"The name stands before the type: {cursor.token.text} {name.text}."
        raise QueryError(f'"{name.text}" is a type, and stands where a name should', hint=hint, place=name.place)
    if cursor.take("AS"):
        return ColumnDefinition(name, None, cursor.expression("an expression", _COMPUTED_HINT))
    kind = cursor.type_name()
    if cursor.take("GENERATED", "ALWAYS", "AS"):
        return ColumnDefinition(name, kind, cursor.expression("an expression", _COMPUTED_HINT))
    _refuse_constraint(cursor)
    if cursor.take("AS"):
        return ColumnDefinition(name, kind, cursor.expression("an expression", _COMPUTED_HINT))
    return ColumnDefinition(name, kind)


def _refuse_constraint(cursor: Cursor) -> None:
    refuse_constraint(cursor, "stream")


def refuse_constraint(cursor: Cursor, what: str) -> None:
    """Refuse what other systems say of a column beside its type."""
    for words, hint in _CONSTRAINTS.items():
        if cursor.at(*words):
            raise QueryError(f"a column of a {what} takes no {' '.join(words)}", hint=hint, place=cursor.place())


def _clause(cursor: Cursor) -> tuple[str, Any]:
    """The field of `StreamStatement` that the next clause fills, and the clause."""
    if cursor.take_type(TokenType.PARTITION_BY):
        return "partitioned", _partitions(cursor)
    for field, words, read in _CLAUSES:
        if cursor.take(*words):
            return field, read(cursor)
    hint = _ELSEWHERE.get(cursor.token.text.upper(), _CLAUSES_HINT)
    raise cursor.wrong("a clause of CREATE STREAM", cursor.ended(hint))


def _queue_options(cursor: Cursor) -> Options:
    """`(key = value, ...)` after WITH; elsewhere such options say where rows come from."""
    found = cursor.options("Options of queues read WITH (queue = 'inplace'); other clauses stand without WITH.")
    for key, setting in found.items():
        if key in _OF_SOURCES:
            hint = (
                "Write FROM kafka OPTIONS (bootstrap_servers 'host:9092', topic 'name') or FROM csv OPTIONS (path "
                "'file.csv') instead of WITH, and TIMESTAMP BY ts ORDERED before it."
            )
            fact = f'option "{key}" stands in WITH, which is for queues'
            raise QueryError(fact, hint=hint, place=setting.key.place)
    return found


def _external(cursor: Cursor) -> TimeClause:
    found = _order_of_time(cursor)
    further = []
    while cursor.take("ALSO", "BY"):
        further.append(_further_time(cursor))
    return replace(found, also=tuple(further))


def _further_time(cursor: Cursor) -> TimeClause:
    """`column [ORDERED | DISORDER INTERVAL i]` after ALSO BY."""
    hint = "Write ALSO BY column ORDERED, or ALSO BY column DISORDER INTERVAL 30 MINUTES."
    first = cursor.last
    column = cursor.name("a time column", hint)
    disordered = cursor.take("DISORDER")
    if disordered and _at_rows(cursor):
        raise QueryError(
            "the DISORDER of ALSO BY is an interval, not a number of rows", hint=hint, place=cursor.place()
        )
    disorder = cursor.extent(hint, _STOP) if disordered else None
    if disorder is None:
        cursor.take("ORDERED")
    return TimeClause("external", column, disorder, place=cursor.place_since(first))


def _order_of_time(cursor: Cursor) -> TimeClause:
    first = cursor.last
    column = cursor.name("the time column", _TIME_HINT)
    if cursor.take("ORDERED"):
        return TimeClause("external", column, place=cursor.place_since(first))
    if cursor.take("PUNCTUATED", "BY"):
        expression = cursor.expression("an expression", "Write PUNCTUATED BY expression.")
        per = _names(cursor) if cursor.take("PER") else ()
        return TimeClause("external", column, punctuated_by=expression, per=per, place=cursor.place_since(first))
    cursor.expect("DISORDER", hint=_TIME_HINT, what="ORDERED, DISORDER or PUNCTUATED BY")
    if _at_rows(cursor):
        rows = Name(cursor.token.text, place=cursor.place())
        cursor.skip(2)
        return TimeClause("external", column, rows=rows, place=cursor.place_since(first))
    disorder = cursor.extent(_TIME_HINT, _STOP)
    return TimeClause("external", column, disorder, place=cursor.place_since(first))


def _at_rows(cursor: Cursor) -> bool:
    return cursor.token.token_type == TokenType.NUMBER and cursor.second.text.upper() == "ROWS"


def _internal(cursor: Cursor) -> TimeClause:
    first = cursor.last
    cursor.expect("AS", hint=_INTERNAL_HINT)
    column = cursor.name("a column", _INTERNAL_HINT)
    return TimeClause("internal", column, place=cursor.place_since(first))


def _late_by(cursor: Cursor) -> Name:
    place = cursor.source.of_token(cursor.last)
    cursor.expect("WINDOW", hint="Write LATE BY WINDOW.")
    return Name("WINDOW", place=place)


def _latent(cursor: Cursor) -> TimeClause:
    return TimeClause("latent", place=cursor.source.of_token(cursor.last))


def _ets(cursor: Cursor) -> EtsClause:
    first = cursor.last
    if cursor.take("NONE"):
        return EtsClause("none", place=cursor.place_since(first))
    every = cursor.length(_ETS_HINT) if cursor.take("EVERY") else None
    if every is None:
        cursor.expect("ON", "DEMAND", hint=_ETS_HINT)
    place = cursor.place_since(first)
    lengths: dict[str, Length] = {}
    while (word := next((each for each in ("SKEW", "LULL") if cursor.take(each)), None)) is not None:
        if word.lower() in lengths:
            raise QueryError(
                f"{word} is given twice", hint="Keep one of them.", place=cursor.source.of_token(cursor.last)
            )
        lengths[word.lower()] = cursor.length(_ETS_HINT)
    return EtsClause("on_demand" if every is None else "every", every, **lengths, place=place)


def _partitions(cursor: Cursor) -> PartitionsClause:
    """`(column, ...) [VALUES (value, ...) | VALUES FROM table (column, ...)] [GRACE interval]`."""
    first, hint = cursor.last, _VALUES_HINT
    clause = PartitionsClause(_names(cursor))
    if cursor.take("VALUES", "FROM"):
        table = cursor.name("a table", hint)
        clause = replace(clause, table=table, table_columns=cursor.names("a column of the table", hint))
    elif cursor.take("VALUES"):
        clause = replace(clause, values=cursor.parenthesised(lambda: cursor.expression("a partition", hint), hint))
    grace = cursor.extent("Write GRACE INTERVAL 1 MINUTE.", _STOP) if cursor.take("GRACE") else None
    return replace(clause, grace=grace, place=cursor.place_since(first))


def _update_key(cursor: Cursor) -> ColumnsClause:
    """`(column, ...)`, or `()`: all rows are updates of one thing."""
    first = cursor.last
    columns = () if cursor.take("(", ")") else _names(cursor)
    return ColumnsClause(columns, place=cursor.place_since(first))


def _names(cursor: Cursor) -> tuple[Name, ...]:
    return cursor.names("a column", "Write the columns in parentheses.")


def _replay(cursor: Cursor) -> ReplayClause:
    first = cursor.last
    column = cursor.name("the arrival column", "Write REPLAY BY column [SPEED x].")
    speed = cursor.option_value("Write SPEED 10 to replay ten times as fast.") if cursor.take("SPEED") else None
    return ReplayClause(column, speed, place=cursor.place_since(first))


def connector_clause(cursor: Cursor, hint: str) -> ConnectorClause:
    """`format [OPTIONS (...)]`; a format that is more than a word stands in quotes."""
    if cursor.at_type(TokenType.STRING) and _FILE.search(cursor.token.text):
        raise cursor.wrong("a format", f"Write csv OPTIONS (path '{cursor.token.text}'), or another format.")
    if cursor.take_type(TokenType.STRING):
        format_name = Name(str(cursor.last.text), place=cursor.source.of_token(cursor.last))
    else:
        format_name = cursor.name("a format", hint)
    if cursor.at_type(TokenType.L_PAREN, TokenType.STRING):
        raise cursor.wrong("OPTIONS", hint)
    return ConnectorClause(format_name, cursor.options(hint) if cursor.take("OPTIONS") else {})


_CLAUSES: tuple[tuple[str, tuple[str, ...], Callable[[Cursor], Any]], ...] = (
    ("time", ("TIMESTAMP", "BY"), _external),
    ("time", ("INTERNAL", "TIMESTAMP"), _internal),
    ("time", ("LATENT", "TIMESTAMP"), _latent),
    ("ets", ("ETS",), _ets),
    ("max_future_skew", ("MAX", "FUTURE", "SKEW"), lambda it: it.length("Write MAX FUTURE SKEW INTERVAL 5 MINUTES.")),
    ("update_key", ("UPDATE", "KEY"), _update_key),
    ("late_by_window", ("LATE", "BY"), _late_by),
    ("late_into", ("LATE", "INTO"), lambda it: it.name("a stream", "Write LATE INTO name.")),
    ("quarantine_into", ("QUARANTINE", "INTO"), lambda it: it.name("a stream", "Write QUARANTINE INTO name.")),
    ("zone", ("TIME", "ZONE"), lambda it: it.text("the name of a time zone", "Write TIME ZONE 'Europe/Berlin'.")),
    ("connector", ("FROM",), lambda it: connector_clause(it, "Write FROM csv OPTIONS (path 'file.csv').")),
    ("replay", ("REPLAY", "BY"), _replay),
    ("options", ("WITH",), _queue_options),
)
"""The clauses: the field of `StreamStatement` that each fills, its first words, and what reads the rest."""


def sink_statement(cursor: Cursor) -> SinkStatement:
    """`name TO format [OPTIONS (...)]`, after CREATE SINK."""
    name = cursor.name("the name of the sink", _SINK_HINT)
    after = f" Then write INSERT INTO {name.text} SELECT ..." if cursor.at("AS") else ""
    if cursor.at_type(TokenType.L_PAREN):
        after = " It has the columns of the query that goes to it: leave the list out."
    cursor.expect("TO", hint=f"{_SINK_HINT}{after}")
    return SinkStatement(name, connector_clause(cursor, _SINK_HINT))
