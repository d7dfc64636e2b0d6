"""The clauses of update streams and update queries, from what Python gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millrace.api.durations import Length, length
from millrace.errors import RequestError

Reads = Length | Mapping[str | None, Length]
"""How often answers are read: all of them, or by condition on the key; None stands for all other keys."""


def update_key_clause(columns: object) -> list[str]:
    """The columns whose rows of equal values update each other; none at all if all rows do, None for a plain stream.

    >>> update_key_clause("symbol"), update_key_clause(["host", "port"]), update_key_clause([]), update_key_clause(None)
    (['UPDATE KEY (symbol)'], ['UPDATE KEY (host, port)'], ['UPDATE KEY ()'], [])
    """
    if columns is None:
        return []
    names = [columns] if isinstance(columns, str) else list(columns) if isinstance(columns, Sequence) else [None]
    if not all(isinstance(each, str) for each in names):
        raise RequestError(
            f'update_key takes columns, not "{columns}"',
            hint="Write update_key='symbol', update_key=['host', 'port'], or update_key=[] if all rows are updates of "
            "one thing.",
        )
    return [f"UPDATE KEY ({', '.join(map(str, names))})"]


def queue_settings(queue: str | None, settings: object) -> dict[str, object]:
    """The options of the queues of queries that read a stream."""
    if not isinstance(settings, Mapping):
        raise RequestError(
            f'settings are names and values, not "{settings}"', hint="Write settings={'update_window': 'lazy'}."
        )
    return {**({} if queue is None else {"queue": queue}), **settings}


def access_clause(access: object) -> str:
    """How often answers are read, by classes of keys; nothing if nobody says.

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
