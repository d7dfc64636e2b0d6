"""Queries of the Python API as text of SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millrace.api.sql_text.durations import Length, length
from millrace.api.sql_text.stream_text import checked_settings, code_place
from millrace.connectors.native import PLAIN_SINKS
from millrace.connectors.sink_index import PYTHON_SINK
from millrace.errors import RequestError, listed

Reads = Length | Mapping[str | None, Length]
"""How often answers are read: all of them, or by condition on the key; None stands for all other keys."""


def query_text(
    name: str,
    sql: str,
    sink: str,
    options: Mapping[str, object],
    settings: Mapping[str, object],
    access: Reads | None = None,
) -> str:
    """The statements that create a query with its settings, after its sink if it is not memory.

    `access` says how often its answers are read.

    >>> print(query_text("q", "SELECT * FROM s", "csv", {"path": "out"}, {}))
    CREATE SINK q_sink TO csv OPTIONS (path 'out')
    ;
    CREATE QUERY q INTO q_sink AS SELECT * FROM s
    >>> query_text("q", "SELECT * FROM s", "memory", {}, {"share": 2})
    "CREATE QUERY q WITH (share = '2') AS SELECT * FROM s"
    """
    _check_options(sink, options)
    settings = checked_settings(settings, "'strategy': 'bfs'")
    chosen = f" WITH ({pairs(settings, ' = ')})" if settings else ""
    read = access_clause(access)
    if sink == "memory" and not options:
        return f"CREATE QUERY {name}{chosen}{read} AS {sql}"
    if sink == PYTHON_SINK and "writer" in options:
        options = {**options, "writer": code_place(options["writer"], "class")}
    declared = f"CREATE SINK {name}_sink TO {sink}{option_clause(options)}"
    return script([declared, f"CREATE QUERY {name}{chosen} INTO {name}_sink{read} AS {sql}"])


def _check_options(sink: str, options: Mapping[str, object]) -> None:
    """Refuse options that a sink without files does not have."""
    taken = {"keep", "limit"} if sink == "console" else {"keep"}
    if sink in PLAIN_SINKS and set(options) - taken:
        raise RequestError(
            f'the sink "{sink}" takes the option {" or ".join(sorted(taken))} alone, and was given {listed(options)}',
            hint=f"{_as_settings(options)} Options of a sink go with files: sink='parquet', path='out'.",
        )


def _as_settings(options: Mapping[str, object]) -> str:
    """The sentence that says how to give options of the query itself."""
    shown = ", ".join(f"'{key}': {value!r}" for key, value in options.items())
    return f"If they are options of the query, write settings={{{shown}}}."


def access_clause(access: object) -> str:
    """How often answers are read, by classes of keys; nothing if it is not given.

    >>> access_clause("1 minute"), access_clause({"k = 'GOOG'": "1 second", None: "1 hour"})
    (' ACCESS EVERY INTERVAL 1 minute', " ACCESS EVERY INTERVAL 1 second WHEN k = 'GOOG', EVERY INTERVAL 1 hour")
    """
    if access is None:
        return ""
    classes = access if isinstance(access, Mapping) else {None: access}
    if not classes or not all(isinstance(each, str | None) for each in classes):
        raise RequestError(
            f'access says how often answers are read, not "{access}"',
            hint="Write access='1 minute', or access={\"symbol = 'GOOG'\": '1 second', None: '1 hour'}.",
        )
    words = [f"EVERY INTERVAL {length('access', each)}{_when(condition)}" for condition, each in classes.items()]
    return f" ACCESS {', '.join(words)}"


def _when(condition: str | None) -> str:
    return "" if condition is None else f" WHEN {condition}"


def script(statements: Iterable[str]) -> str:
    """Statements as one text."""
    # The semicolon has a line of its own: the statement before it may end in a comment.
    return "\n;\n".join(statements)


def quoted(name: str) -> str:
    """A name that SQL takes whatever it holds.

    >>> quoted("my stream")
    '`my stream`'
    """
    return f"`{name.replace('`', '``')}`"


def option_clause(options: Mapping[str, object]) -> str:
    """Options as SQL writes them; nothing without any.

    >>> option_clause({"path": "it's"})
    " OPTIONS (path 'it''s')"
    """
    return f" OPTIONS ({pairs(options, ' ')})" if options else ""


def pairs(options: Mapping[str, object], between: str) -> str:
    """Names and values as SQL writes them."""
    quoted = ((key, str(value).replace("'", "''")) for key, value in options.items())
    return ", ".join(f"{key}{between}'{value}'" for key, value in quoted)
