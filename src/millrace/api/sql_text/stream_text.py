"""The clauses of CREATE STREAM, and places of Python code, from the arguments that Python gives."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Literal

from millrace.api.sql_text.durations import Extent, Length, interval, length
from millrace.errors import RequestError


def time_clause(time: str | None, order: str | None, internal: str | None, latent: bool) -> str:
    """The clause for the kind of time that a stream has.

    >>> time_clause("ts", None, None, False), time_clause(None, None, "ts", False)
    ('TIMESTAMP BY ts ORDERED', 'INTERNAL TIMESTAMP AS ts')
    """
    if sum((time is not None, internal is not None, latent)) != 1:
        raise RequestError(
            "a stream has one kind of time", hint='Give time="column", internal="column", or latent=True.'
        )
    if time is not None:
        return f"TIMESTAMP BY {time} {order or 'ORDERED'}"
    if order is not None:
        raise RequestError(
            f'only a stream with time= has an order, and this was given "{order}"', hint='Give time="column" instead.'
        )
    return f"INTERNAL TIMESTAMP AS {internal}" if internal else "LATENT TIMESTAMP"


def order_clause(
    disorder: Extent | None, rows: int | None, punctuated_by: str | None, per: str | Sequence[str] = ()
) -> str | None:
    """The order of rows; None if none is given.

    >>> order_clause("5 seconds", None, None), order_clause(None, 100, None)
    ('DISORDER INTERVAL 5 seconds', 'DISORDER 100 ROWS')
    >>> order_clause(None, None, "last", "device")
    'PUNCTUATED BY last PER (device)'
    """
    groups = _listed(per)
    if groups and not punctuated_by:
        raise RequestError("per needs punctuated_by", hint='Give punctuated_by="expression" as well.')
    orders = [f"DISORDER {interval('disorder', disorder)}"] if disorder is not None else []
    orders += [f"DISORDER {rows} ROWS"] if rows is not None else []
    orders += [f"PUNCTUATED BY {punctuated_by}" + (f" PER ({groups})" if groups else "")] if punctuated_by else []
    if len(orders) > 1:
        raise RequestError(
            "a stream has one order", hint="Give one of disorder, disorder_rows and punctuated_by, or none of them."
        )
    return orders[0] if orders else None


def ets_clause(ets: Length | None, skew: Length | None, lull: Length | None) -> list[str]:
    """How a silent stream advances; on demand where only a skew or a lull is given.

    >>> ets_clause(None, "1 second", None), ets_clause("10 milliseconds", None, None), ets_clause(None, None, None)
    (['ETS ON DEMAND SKEW INTERVAL 1 second'], ['ETS EVERY INTERVAL 10 milliseconds'], [])
    """
    given = {"skew": skew, "lull": lull}
    lengths = [f"{name.upper()} INTERVAL {length(name, each)}" for name, each in given.items() if each is not None]
    if ets is None and not lengths:
        return []
    kinds: dict[object, str] = {None: "ON DEMAND", "on demand": "ON DEMAND", "none": "NONE"}
    return [" ".join(["ETS", kinds.get(ets) or f"EVERY INTERVAL {length('ets', ets)}", *lengths])]


def partition_clause(columns: str | Sequence[str], partitions: object = None, grace: Extent | None = None) -> list[str]:
    """The partitions in which the order holds, those that are known ahead, and how long others are waited for.

    >>> partition_clause("link"), partition_clause(["host", "port"]), partition_clause(())
    (['PARTITIONED BY (link)'], ['PARTITIONED BY (host, port)'], [])
    >>> partition_clause(["host", "port"], [("it's", 1), (None, 2)], "1 minute")
    ["PARTITIONED BY (host, port) VALUES (('it''s', '1'), (NULL, '2')) GRACE INTERVAL 1 minute"]
    >>> partition_clause("link", {"links": "id"})
    ['PARTITIONED BY (link) VALUES FROM links (id)']
    """
    names = _listed(columns)
    if not names:
        if partitions is not None or grace is not None:
            given = "partitions" if partitions is not None else "grace"
            raise RequestError(f"{given} needs partitioned_by", hint='Give partitioned_by="column" as well.')
        return []
    clause = f"PARTITIONED BY ({names})"
    if isinstance(partitions, Mapping) and len(partitions) == 1:
        clause += "".join(f" VALUES FROM {table} ({_listed(held_in)})" for table, held_in in partitions.items())
    elif partitions is not None:
        if isinstance(partitions, str) or not isinstance(partitions, Sequence) or not partitions:
            raise RequestError(
                f'partitions takes a list of values, not "{partitions}"',
                hint="Write partitions=['a', 'b'], or partitions=[('a', 1), ('b', 2)] where there are two columns; or "
                "partitions={'table': 'column'}.",
            )
        clause += f" VALUES ({', '.join(map(_partition, partitions))})"
    return [clause + (f" GRACE {interval('grace', grace)}" if grace is not None else "")]


def _partition(values: object) -> str:
    """The values of a partition; as texts SQL brings them to the types of their columns."""
    if isinstance(values, tuple | list):
        return f"({', '.join(map(_partition, values))})"
    return "NULL" if values is None else "'" + str(values).replace("'", "''") + "'"


def also_clauses(also: object) -> list[str]:
    """Further time columns, each with how far a row may trail in it.

    >>> also_clauses({"started": "30 minutes", "seen": None})
    ['ALSO BY started DISORDER INTERVAL 30 minutes', 'ALSO BY seen ORDERED']
    """
    if not isinstance(also, Mapping) or not all(isinstance(each, Extent | None) for each in also.values()):
        name = also if isinstance(also, str) else "column"
        raise RequestError(
            f'also takes columns, each with its disorder, not "{also}"',
            hint=f"Write also={{'{name}': '30 minutes'}}, or also={{'{name}': None}} where rows are in order.",
        )
    orders = {name: order_clause(each, None, None) or "ORDERED" for name, each in also.items()}
    return [f"ALSO BY {name} {order}" for name, order in orders.items()]


def update_key_clause(columns: object) -> list[str]:
    """The columns whose rows of equal values update each other; [] if all rows do, None for an append stream.

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


def checked_settings(settings: object, example: str) -> dict[str, object]:
    """Options of a query or of the queues of a stream, by name; refuses what is no mapping."""
    if not isinstance(settings, Mapping):
        raise RequestError(f'settings are names and values, not "{settings}"', hint=f"Write settings={{{example}}}.")
    return dict(settings)


def _listed(columns: str | Sequence[str]) -> str:
    return columns if isinstance(columns, str) else ", ".join(columns)


def sql_types(name: str, given: object) -> str:
    """One or more types of SQL.

    >>> sql_types("takes", "DOUBLE"), sql_types("takes", ["STRING", "DOUBLE"])
    ('DOUBLE', 'STRING, DOUBLE')
    """
    kinds = [given] if isinstance(given, str) else list(given) if isinstance(given, Sequence) else []
    if not kinds or not all(isinstance(each, str) for each in kinds):
        raise RequestError(
            f'"{name}" is a type of SQL, not "{getattr(given, "__name__", given)}"',
            hint=f"Write {name}='DOUBLE'.",
        )
    return ", ".join(kinds)


def code_place(given: object, what: Literal["class", "function"]) -> str:
    """Where other processes find a class or a function: `module:name`, which may be given as text.

    >>> from fractions import Fraction
    >>> code_place(Fraction, "class"), code_place("package.module:price", "function")
    ('fractions:Fraction', 'package.module:price')
    """
    if isinstance(given, str):
        return given
    place = _importable(given) if isinstance(given, type) or (what == "function" and callable(given)) else None
    if place is None:
        name = "Class" if what == "class" else "function"
        raise RequestError(
            f'"{getattr(given, "__qualname__", given)}" is no {what} that other processes can import',
            hint=f"Define the {what} at the top of a module, or give its place as text: 'package.module:{name}'.",
        )
    return place


def _importable(given: object) -> str | None:
    """The place of what a module holds under its own name; None if other processes would not find it there."""
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", "")
    found: object = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is given and module != "__main__" else None
