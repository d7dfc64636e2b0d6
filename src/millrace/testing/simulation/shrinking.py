"""A failing scenario made small: whatever can be left out while it still fails is left out.

Pieces are left out in turn, many at once first: runs, queries, events, rows of each stream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from millrace.errors import MillraceError
from millrace.language import parse_network
from millrace.testing.simulation.scenario import Scenario, TimedRows

Part = TypeVar("Part")
Fails = Callable[[Scenario], bool]


def shrunk(scenario: Scenario, fails: Fails, *, most: int = 200) -> Scenario:
    """A smaller scenario that fails as well; at most so many are tried."""
    tries, progress = 0, True
    while progress:
        progress = False
        for smaller in _smaller(scenario):
            tries += 1
            if tries > most:
                return scenario
            if fails(smaller):
                scenario, progress = smaller, True
                break
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios with less in them, those that lack most first."""
    for lives in _without_some(scenario.lives):
        yield replace(scenario, lives=lives)
    for text in _texts(scenario.text):
        yield replace(scenario, text=text, inputs=_read_by(text, scenario))
    for place, life in enumerate(scenario.lives):
        for events in _without_some(life.events):
            lives = (*scenario.lives[:place], replace(life, events=events), *scenario.lives[place + 1 :])
            yield replace(scenario, lives=lives)
    for name, rows in scenario.inputs.items():
        for kept in _without_some(range(len(rows.times))):
            yield replace(scenario, inputs={**scenario.inputs, name: _taken(rows, kept)})


def _without_some(parts: Sequence[Part]) -> Iterator[tuple[Part, ...]]:
    """The parts without halves, quarters and so on of them, down to single ones."""
    size = len(parts)
    while size:
        for start in range(0, len(parts), size):
            yield (*parts[:start], *parts[start + size :])
        size //= 2


def _texts(text: str) -> Iterator[str]:
    """The text without one of its queries, and without the streams that none of the others reads."""
    statements = [each.strip() for each in text.split(";") if each.strip()]
    for number, statement in enumerate(statements):
        if not re.match(r"CREATE QUERY (?!seen_|late_)", statement):
            continue
        kept = [each for place, each in enumerate(statements) if place != number]
        rest = " ".join(each for each in kept if re.match(r"CREATE QUERY (?!seen_|late_)", each))
        yield "".join(f"{each};\n" for each in kept if _wanted(each, rest))


def _wanted(statement: str, queries: str) -> bool:
    """True unless a statement is about a stream that no query reads."""
    found = re.match(r"CREATE (?:STREAM |QUERY (?:seen|late)_)(\w+)", statement)
    return found is None or re.search(rf"\b{found.group(1)}\b", queries) is not None


def _read_by(text: str, scenario: Scenario) -> dict[str, TimedRows]:
    try:
        names = {stream.name for stream in parse_network(text).streams()}
    except MillraceError:
        return dict(scenario.inputs)
    return {name: rows for name, rows in scenario.inputs.items() if name in names}


def _taken(rows: TimedRows, places: Sequence[int]) -> TimedRows:
    return TimedRows(rows.rows.take(pa.array(places, pa.int64())), tuple(rows.times[place] for place in places))
