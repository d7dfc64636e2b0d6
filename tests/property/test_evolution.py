"""Networks that change from run to run, at random: each run gives what is to be given in it, however rows are cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.differential.evolution_cases import History, Phase, Row, Version
from tests.differential.test_evolution import check
from tests.property.cases import AGGREGATES, KEYS, WINDOWS, declared, rows

pytestmark = pytest.mark.slow

DISORDERS = {"s0": 2, "s1": 0}
OTHER_DISORDERS = {"s0": [2, 0, 5], "s1": [0, 3]}
"""What streams may be declared with from run to run; rows trail by up to 4 and 1 seconds, so that some are late."""
BASE = Version("SELECT k FROM s0 UNION s1")
"""Both streams are always read."""


@dataclass(frozen=True)
class Part:
    """An aggregate over streams, and perhaps one more over its results."""

    streams: tuple[str, ...]
    where: str
    window: tuple[int, int]
    keys: tuple[str, ...]
    aggregates: str
    outer: int | None = None

    @property
    def lower(self) -> Part:
        return replace(self, outer=None)


@dataclass(frozen=True)
class Asked:
    """A query as it is written."""

    part: Part
    having: str = ""

    @property
    def select(self) -> str:
        part = self.part
        union, window = " UNION ".join(part.streams), "[RANGE {} SECONDS SLIDE {} SECONDS WA ts]".format(*part.window)
        grouping = f"GROUP BY {', '.join(part.keys)}" if part.keys else ""
        columns = ", ".join([*part.keys, "count(*) AS n", part.aggregates])
        lower = f"SELECT {columns} FROM {union} {window} {part.where} {grouping}"
        if part.outer is None:
            return f"{lower} {self.having}"
        upper = f"[RANGE {part.outer} SECONDS SLIDE {part.outer} SECONDS]"
        return f"SELECT count(*) AS n, sum(n) AS of_all FROM ({lower}) {upper} {self.having}"


@st.composite
def parts(draw: st.DrawFn) -> Part:
    return Part(
        draw(st.sampled_from([("s0",), ("s1",), ("s0", "s1")])),
        draw(st.sampled_from(["", "WHERE v > 2"])),
        draw(st.sampled_from(WINDOWS[:3])),
        draw(st.sampled_from(KEYS[:2])),
        draw(st.sampled_from(AGGREGATES[1:2] + ["sum(v + j) AS g, min(k) AS h"])),
        draw(st.sampled_from([None, None, 20, 45])),
    )


HAVING = st.sampled_from(["", "HAVING count(*) > 1", "HAVING count(*) < 3"])


@dataclass
class Telling:
    """The history as it is told: what runs, and since when each operator reads rows."""

    asked: dict[str, Asked]
    running: dict[str, Version]
    written: list[str]

    def starts_of(self, part: Part, name: str) -> tuple[int, ...] | None:
        """Since when a part has been running; the query's own first, else the earliest."""
        found = [
            (other != name, max(starts, default=0), starts)
            for other, asked in self.asked.items()
            for mine, starts in _parts(asked.part, self.running[other].starts)
            if mine == part
        ]
        return min(found, key=lambda each: each[:2])[2] if found else None

    def grown(self, name: str, asked: Asked, number: int) -> Version:
        """The query as it goes on in a phase, on what runs."""
        part, new = asked.part, name not in self.asked
        whole = self.starts_of(part, name)
        if whole is not None:
            top = number if new else self.running[name].top if self.asked[name] == asked else 0
            return Version(asked.select, whole, top)
        lower = self.starts_of(part.lower, name) if part.outer is not None else None
        if lower is not None:
            return Version(asked.select, (*lower, number))
        return Version(asked.select, (number,) * (1 if part.outer is None else 2))


def _parts(part: Part, starts: tuple[int, ...]) -> list[tuple[Part, tuple[int, ...]]]:
    if part.outer is None:
        return [(part, starts)]
    return [(part.lower, starts[:1]), (part, starts)]


@st.composite
def changed(draw: st.DrawFn, asked: Asked) -> Asked:
    other = draw(parts())
    match draw(st.sampled_from(["having", "having", "outer", "where", "window", "aggregate"])):
        case "having":
            return replace(asked, having=draw(HAVING))
        case "outer":
            return replace(asked, part=replace(asked.part, outer=draw(st.sampled_from([None, 20, 45]))))
        case "where":
            return replace(asked, part=replace(asked.part, where=other.where))
        case "window":
            return replace(asked, part=replace(asked.part, window=other.window))
        case _:
            return replace(asked, part=replace(asked.part, aggregates=other.aggregates))


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A network that is changed three to six times."""
    wide = False
    telling = Telling({}, {}, [])
    for name in ("q0", "q1"):
        asked = Asked(draw(parts()), draw(HAVING))
        starts = (0,) * (1 if asked.part.outer is None else 2)
        telling.asked[name], telling.running[name] = asked, Version(asked.select, starts)
        telling.written.append(name)
    cut = draw(cuts(draw(st.integers(3, 6)) + 1))
    phases = [_phase(telling, wide, DISORDERS, cut[0])]
    for number, given_rows in enumerate(cut[1:], 1):
        requests = []
        wide = draw(st.booleans())
        disorders = {name: draw(st.sampled_from(each)) for name, each in OTHER_DISORDERS.items()}
        match draw(st.sampled_from(["change", "change", "change", "add", "ask", "drop", "rename", ""])):
            case "change":
                name = draw(st.sampled_from(telling.written))
                asked = draw(changed(telling.asked[name]))
                telling.running[name] = telling.grown(name, asked, number)
                telling.asked[name] = asked
            case "add":
                name, asked = f"q{number + 1}", draw(st.one_of(st.builds(Asked, parts(), HAVING), again(telling)))
                telling.running[name] = telling.grown(name, asked, number)
                telling.asked[name] = asked
                telling.written.append(name)
            case "ask":
                name, asked = f"q{number + 1}", draw(st.one_of(st.builds(Asked, parts(), HAVING), again(telling)))
                starts = (number,) * (1 if asked.part.outer is None else 2)
                telling.asked[name], telling.running[name] = asked, Version(asked.select, starts)
                requests.append(f"ADD QUERY {name} AS {asked.select}")
            case "drop" if len(telling.written) > 1:
                name = telling.written.pop(draw(st.integers(0, 5)) % len(telling.written))
                del telling.asked[name], telling.running[name]
            case "rename":
                name, place = f"q{number + 1}", draw(st.integers(0, 5)) % len(telling.written)
                before, telling.written[place] = telling.written[place], name
                telling.asked[name], telling.running[name] = telling.asked.pop(before), telling.running.pop(before)
        phases.append(_phase(telling, wide, disorders, given_rows, requests))
    return History(phases, DISORDERS)


@st.composite
def again(draw: st.DrawFn, telling: Telling) -> Asked:
    """What another query asks, or what it is made of."""
    asked = telling.asked[draw(st.sampled_from(sorted(telling.asked)))]
    return replace(asked, part=asked.part.lower, having=draw(HAVING))


@st.composite
def cuts(draw: st.DrawFn, phases: int) -> list[dict[str, list[Row]]]:
    """The rows of two streams, cut into phases."""
    found: list[dict[str, list[Row]]] = [{} for _ in range(phases)]
    for name, disorder in {"s0": 4, "s1": 1}.items():
        of_all = [{**row, "more": None} for row in draw(rows(disorder, -3, 45))]
        places = sorted(draw(st.lists(st.integers(0, len(of_all)), min_size=phases - 1, max_size=phases - 1)))
        for number, (start, stop) in enumerate(zip([0, *places], [*places, len(of_all)], strict=True)):
            found[number][name] = of_all[start:stop]
    return found


def _phase(
    telling: Telling,
    wide: bool,
    disorders: Mapping[str, int],
    given_rows: Mapping[str, list[Row]],
    requests: Sequence[str] = (),
) -> Phase:
    streams = "".join(declared(name, disorder) for name, disorder in disorders.items())
    if wide:
        streams = streams.replace("x DOUBLE,", "x DOUBLE, more STRING,")
    queries = {"base": BASE, **telling.running}
    return Phase(streams, queries, given_rows, ["base", *telling.written], requests, disorders=disorders)


@given(history=histories(), pieces=st.integers(1, 3))
def test_a_network_that_changes_from_run_to_run_gives_in_each_what_is_to_be_given(
    history: History, pieces: int
) -> None:
    with TemporaryDirectory() as folder:
        for number, phase in enumerate(history.phases):
            check(history, number, phase, Path(folder), pieces)
