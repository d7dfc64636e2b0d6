"""Polled streams: a run calls a function for rows."""

from __future__ import annotations

from millrace.api.durations import Length, length
from millrace.connectors.push_pull import Ask, Asked
from millrace.language import parse_interval


class Polled(Asked):
    """The source of a stream for whose rows a run calls `ask`.

    The run calls it at the interval `every`, or without one whenever it is ready for more rows, and for
    `handle.latest(query, refresh=True)`. It returns a list of dictionaries, a record batch or a table, None if nothing
    is new, and raises StopIteration when there will be no more rows.

    >>> Polled(lambda: [{"symbol": "A", "price": 7.5}], every="1 second").every
    1000000
    """

    def __init__(self, ask: Ask, every: Length | None = None) -> None:
        super().__init__(ask, None if every is None else parse_interval(length("every", every)))
