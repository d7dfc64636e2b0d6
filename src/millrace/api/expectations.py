"""Expected rates of streams and costs of the machine, for the estimates of `explain`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from millrace.api.sql_text.durations import Length, words_of
from millrace.errors import RequestError, did_you_mean, listed
from millrace.language import parse_interval
from millrace.plan.explain.cost_notes import Expected
from millrace.plan.nodes.query_network import QueryNetwork


def expected(rates: Mapping[str, float | str], pair_cost: Length | None, network: QueryNetwork) -> Expected:
    """The rows per second of streams, and the time to compare two rows, if it is known.

    >>> expected({}, "0.5ms", QueryNetwork(())).pair, expected({}, timedelta(seconds=1), QueryNetwork(())).pair
    (500.0, 1000000.0)
    """
    streams = {stream.name.lower(): stream.name for stream in network.streams()}
    cost = words_of(pair_cost) if isinstance(pair_cost, timedelta) else pair_cost
    found = {_stream(name.strip(), streams): _rate(name, rate) for name, rate in rates.items()}
    return Expected(found, None if cost is None else _micros(cost))


def _stream(name: str, streams: Mapping[str, str]) -> str:
    if name.lower() not in streams:
        hint = f"{did_you_mean(name, streams.values())}The streams are {listed(streams.values())}."
        raise RequestError(f'no query reads a stream "{name}"', hint=hint)
    return streams[name.lower()]


def _rate(name: str, given: float | str) -> float:
    try:
        rate = float(given)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < float("inf"):
        raise RequestError(
            f'"{given}" is no rate of stream "{name.strip()}"', hint="Give the stream's rows per second: main1=10."
        )
    return rate


def _micros(text: str) -> float:
    """A length of time in microseconds, which may be a fraction."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([A-Za-z]+)\s*", text)
    length = float(found[1]) * parse_interval(f"1 {found[2]}") if found else float(parse_interval(text))
    if length <= 0:
        raise RequestError(f'a pair of rows cannot cost "{text}"', hint="Write a length of time such as 0.5ms.")
    return length
