"""Streams that are pulled: a run asks for rows when it wants them."""

from __future__ import annotations

from millrace.api.durations import Length, length
from millrace.connectors.push_pull import Ask, Asked
from millrace.language import parse_interval


class Polled(Asked):
    """The source of a stream whose rows a run asks a callable for.

    It is asked `every` interval, or without one whenever the run is ready for more, and before an answer is pulled with
    `handle.latest(query, refresh=True)`. It returns a list of dictionaries, a record batch or a table, nothing if there
    is nothing new, and raises StopIteration when there will never be more.

    >>> Polled(lambda: [{"symbol": "A", "price": 7.5}], every="1 second").every
    1000000
    """

    def __init__(self, ask: Ask, every: Length | None = None) -> None:
        super().__init__(ask, None if every is None else parse_interval(length("every", every)))
