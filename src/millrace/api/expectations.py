"""Expected rates of streams and costs of the machine, for the estimates of `explain`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from millrace.api.durations import Length, words_of
from millrace.errors import RequestError, did_you_mean, listed
from millrace.language import parse_interval
from millrace.plan.explain.cost_notes import Expected
from millrace.plan.nodes.query_network import QueryNetwork

_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"


def expected(rates: Sequence[str], pair_cost: Length | None, network: QueryNetwork) -> Expected:
    """The rates of streams, given as `main1=10` in rows per second, and the time to compare two rows.

    >>> from datetime import timedelta
    >>> expected([], "0.5ms", QueryNetwork(())).pair, expected([], timedelta(seconds=1), QueryNetwork(())).pair
    (500.0, 1000000.0)
    """
    streams = {stream.name.lower(): stream.name for stream in network.streams()}
    cost = words_of(pair_cost) if isinstance(pair_cost, timedelta) else pair_cost
    return Expected(dict(_rate(each, streams) for each in rates), None if cost is None else _micros(cost))


def _rate(text: str, streams: dict[str, str]) -> tuple[str, float]:
    name, _, number = text.partition("=")
    if not re.fullmatch(_NUMBER, number.strip()):
        raise RequestError(f'"{text}" is no rate of a stream', hint="Write a stream and its rows per second: main1=10.")
    if name.strip().lower() not in streams:
        raise RequestError(
            f'no query reads a stream "{name.strip()}"',
            hint=f"{did_you_mean(name.strip(), streams.values())}The streams are {listed(streams.values())}.",
        )
    return streams[name.strip().lower()], float(number)


def _micros(text: str) -> float:
    """A length of time in microseconds, which may be a fraction."""
    found = re.fullmatch(rf"\s*({_NUMBER})\s*([A-Za-z]+)\s*", text)
    length = float(found[1]) * parse_interval(f"1 {found[2]}") if found else float(parse_interval(text))
    if length <= 0:
        raise RequestError(f'a pair of rows cannot cost "{text}"', hint="Write a length of time such as 0.5ms.")
    return length
