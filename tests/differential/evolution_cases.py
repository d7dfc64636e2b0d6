"""Histories of a network that changes from run to run, and what each run must answer.

A history is a list of phases. Before a phase the run of the phase before has ended, with all that was there read; the
phase goes on from its checkpoint with a text of its own, may be asked for more, and reads more rows.

The oracle knows nothing of plans that grow on others. A `Version` says from the start of which phase on each operator
with state reads rows; it is evaluated over all rows by the naive reference, and of its answer those rows count that the
bounds of the streams release in the phase.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from millrace.kernel.elements import END_OF_TIME, NO_BOUND
from millrace.language import parse_network
from millrace.plan.nodes.aggregate_nodes import Aggregate
from millrace.plan.nodes.join_nodes import Following, Join, RowsJoin
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.nodes.relational_nodes import Distinct, OrderByTime, Rank, Since
from tests.property.cases import declared
from tests.reference import _rows
from tests.reference_values import EPOCH, TIME, micros

Row = dict[str, Any]
SECOND = 1_000_000
STATEFUL = (Aggregate, Distinct, Following, Join, OrderByTime, Rank, RowsJoin)


@dataclass(frozen=True)
class Version:
    """A query as it runs in a phase.

    `starts` are phases: the operators with state, from the bottom of the tree up, each read the rows from the start of
    theirs on; `top` is the phase from whose start on results count. 0 is the beginning.
    """

    select: str
    starts: tuple[int, ...] = ()
    top: int = 0

    def statement(self, name: str) -> str:
        return f"CREATE QUERY {name} AS {self.select};\n"


@dataclass(frozen=True)
class Phase:
    """What runs in a phase, and the rows that come in it.

    `written` names the queries of the file, the others live from requests, which are made when the phase begins.
    """

    declarations: str
    queries: Mapping[str, Version]
    rows: Mapping[str, Sequence[Row]]
    written: Sequence[str] | None = None
    requests: Sequence[str] = ()
    says: Sequence[tuple[str, str]] = ()
    """What the summary says of queries that are not just kept."""
    disorders: Mapping[str, int] = field(default_factory=dict)
    """The disorder of streams in seconds from this phase on, where the declarations give them another."""

    @property
    def text(self) -> str:
        names = list(self.queries) if self.written is None else self.written
        return self.declarations + "".join(self.queries[name].statement(name) for name in names)


@dataclass(frozen=True)
class History:
    """Phases that follow each other, and the disorder of each stream in seconds, while no phase gives it another."""

    phases: Sequence[Phase]
    disorders: Mapping[str, int]
    _known: dict[tuple[str, str, Version], list[Row]] = field(default_factory=dict, compare=False)

    @cached_property
    def _passed(self) -> tuple[list[dict[str, list[Row]]], list[dict[str, int]]]:
        """By phase and stream the rows that are not late, and the bound at its end."""
        admitted, bounds = list[dict[str, list[Row]]](), list[dict[str, int]]()
        greatest, bound = dict.fromkeys(self.disorders, NO_BOUND), dict.fromkeys(self.disorders, NO_BOUND)
        disorders = dict(self.disorders)
        for phase in self.phases:
            disorders |= phase.disorders
            admitted.append({name: [] for name in disorders})
            for name, row in ((each, row) for each in disorders for row in phase.rows.get(each, ())):
                time = micros(row["ts"])
                if time >= bound[name]:
                    admitted[-1][name].append(row)
                greatest[name] = max(greatest[name], time)
                # A row moves the bound by the disorder of its phase; another disorder does not take it back.
                bound[name] = max(bound[name], greatest[name] - disorders[name] * SECOND)
            bounds.append(dict(bound))
        return admitted, bounds

    def rows(self, until: int) -> dict[str, list[Row]]:
        """The rows of the first phases that are not late, by stream."""
        return {name: [row for each in self._passed[0][:until] for row in each[name]] for name in self.disorders}

    def expected(self, number: int) -> dict[str, list[Row]]:
        """What each query answers in a phase; the last one ends the streams."""
        phase = self.phases[number]
        return {name: self._answer(phase, number, name, each) for name, each in phase.queries.items()}

    def _answer(self, phase: Phase, number: int, name: str, version: Version) -> list[Row]:
        query = parsed(phase.declarations, name, version)
        streams = [stream.name for stream in QueryNetwork((query,)).streams()]
        start, span = self._start(version.top, streams), (NO_BOUND, END_OF_TIME)
        if not any(isinstance(each, STATEFUL) for each in _walk(query.root)):
            # Nothing is remembered: what comes in the phase is answered in it.
            given = _rows(query.root, {name: self._passed[0][number][name] for name in streams})
        else:
            given = self._whole(phase, query, version)
            span = self._bound(number, streams), self._bound(number + 1, streams)
        found = [row for row in given if span[0] <= row[TIME] < span[1] and row[TIME] >= start]
        return [{name: value for name, value in row.items() if name != TIME} for row in found]

    def _whole(self, phase: Phase, query: Query, version: Version) -> list[Row]:
        """The answer over all rows from their starts on."""
        key = phase.declarations, query.name, version
        if key not in self._known:
            tree = self._begun(query.root, version, [stream.name for stream in QueryNetwork((query,)).streams()])
            self._known[key] = _rows(tree, self.rows(len(self.phases)))
        return self._known[key]

    def _begun(self, root: Node, version: Version, streams: Sequence[str]) -> Node:
        starts = iter(version.starts)

        def begun(node: Node) -> Node:
            node = node.map_children(begun)
            if not isinstance(node, STATEFUL):
                return node
            start = self._start(next(starts), streams)
            return node.map_children(lambda each: Since(each, start))

        tree = begun(root)
        assert next(starts, None) is None, "a start for every operator with state"
        return tree

    def _start(self, phase: int, streams: Sequence[str]) -> int:
        """One microsecond after all that the streams have shown before a phase."""
        seen = [micros(row["ts"]) for name in streams for row in self.rows(phase)[name]]
        return max(seen) + 1 if seen else NO_BOUND

    def _bound(self, phases: int, streams: Sequence[str]) -> int:
        """How far time has come with the first phases."""
        if phases == len(self.phases):
            return END_OF_TIME
        return min(self._passed[1][phases - 1][name] for name in streams) if phases else NO_BOUND


def merged(history: History, numbers: Sequence[int]) -> History:
    """The history in fewer runs: what happens in a phase that is not named happens in the next that is."""
    places = {
        phase: place for place, (since, last) in enumerate(pairwise((-1, *numbers))) for phase in _span(since, last)
    }

    def moved(version: Version) -> Version:
        return replace(version, starts=tuple(places[each] for each in version.starts), top=places[version.top])

    def run(since: int, last: int) -> Phase:
        phases = [history.phases[number] for number in _span(since, last)]
        rows = {name: [row for each in phases for row in each.rows.get(name, ())] for name in history.disorders}
        queries = {name: moved(version) for name, version in phases[-1].queries.items()}
        says = sorted({said for each in phases for said in each.says})
        disorders = {name: length for each in phases for name, length in each.disorders.items()}
        return replace(phases[-1], queries=queries, rows=rows, says=says, disorders=disorders)

    return History([run(since, last) for since, last in pairwise((-1, *numbers))], history.disorders)


def _span(since: int, last: int) -> range:
    return range(since + 1, last + 1)


def parsed(declarations: str, name: str, version: Version) -> Query:
    network = parse_network(declarations + version.statement(name))
    # Which rows are late is settled already, phase by phase: the reference is to take all that it is given.
    taking_all = {each.name: replace(each, time=replace(each.time, disorder=10**15)) for each in network.streams()}
    (query,) = network.with_streams(taking_all).queries
    return query


def _walk(node: Node) -> Sequence[Node]:
    return [*(each for below in node.children() for each in _walk(below)), node]


# A network of four queries, and eight changes to it; the disorder of a stream changes, too

DISORDERS = {"s0": 2, "s1": 2}
STREAMS = declared("s0", 2) + declared("s1", 2)
WIDER = STREAMS.replace("x DOUBLE,", "x DOUBLE, more STRING,")
"""A column more in both streams."""
LOOSER = WIDER.replace("2 SECONDS", "9 SECONDS", 1)
TIGHTER = WIDER.replace("2 SECONDS", "1 SECONDS", 1)
"""Another disorder of the first stream."""

_PER_KEY = "SELECT k, count(*) AS n, sum(v) AS total FROM s0 [RANGE 30 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY k"
_EXTREMES = "SELECT k, min(v) AS least, max(v) AS most FROM s0 [RANGE 30 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY k"
_BUSIEST = f"SELECT max(n) AS most FROM ({_PER_KEY}) [RANGE 60 SECONDS SLIDE 60 SECONDS]"
_QUIETEST = f"SELECT min(n) AS least FROM ({_PER_KEY}) [RANGE 60 SECONDS SLIDE 60 SECONDS]"
_PAIRS = """SELECT a.k AS k, count(*) [RANGE {0} SECONDS SLIDE {0} SECONDS WA a.ts] AS n FROM s0 AS a JOIN s1 AS b
    ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS GROUP BY a.k{1}"""
_LARGE = "SELECT k, v FROM {0} WHERE v > {1}"


def scripted(rows: Callable[[int], Mapping[str, Sequence[Row]]]) -> History:
    """Four queries in nine phases: HAVING, a column, a window, WHERE, another aggregate, names, what is asked live."""
    counts, busiest = Version(_PER_KEY, (0,)), Version(_BUSIEST, (0, 0))
    pairs, large = Version(_PAIRS.format(20, ""), (0, 0)), Version(_LARGE.format("s0", 3))
    now: dict[str, Version] = {"counts": counts, "busiest": busiest, "pairs": pairs, "large": large}
    found = [Phase(STREAMS, dict(now), rows(0))]

    # 1: HAVING is another filter on the same windows.
    now |= {"counts": Version(f"{_PER_KEY} HAVING count(*) > 1", (0,))}
    found.append(Phase(STREAMS, dict(now), rows(1), says=[("counts", "changed")]))
    # 2: a column that nobody reads, and another condition where nothing is remembered.
    now |= {"large": Version(_LARGE.format("s0", 1))}
    found.append(Phase(WIDER, dict(now), rows(2), says=[("large", "changed")]))
    # 3: the windows over pairs are other ones; the pairs go on. A stream has more disorder from here on.
    now |= {"pairs": Version(_PAIRS.format(30, ""), (0, 3))}
    found.append(Phase(LOOSER, dict(now), rows(3), says=[("pairs", "changed")], disorders={"s0": 9}))
    # 4: the upper of two aggregates is another one, the lower goes on.
    now |= {"busiest": Version(_QUIETEST, (0, 4))}
    found.append(Phase(LOOSER, dict(now), rows(4), says=[("busiest", "changed")]))
    # 5: a query under a new name goes on; one is asked for while the network runs, and one that is new has a start.
    # The stream has less disorder than it ever had.
    now["per_key"] = now.pop("counts")
    now |= {"asked": Version(_EXTREMES, (5,)), "again": Version(_PER_KEY, (0,), top=5)}
    written = [name for name in now if name != "asked"]
    found.append(
        Phase(
            TIGHTER,
            dict(now),
            rows(5),
            written,
            requests=[f"ADD QUERY asked AS {_EXTREMES}"],
            says=[("per_key", "kept"), ("again", "started")],
            disorders={"s0": 1},
        )
    )
    # 6: what is counted is something else: that starts anew. What was asked for stays, though no file names it.
    other = _PER_KEY.replace("FROM s0", "FROM s0 UNION s1").replace(" GROUP", " WHERE v > 0 GROUP")
    now |= {"per_key": Version(other, (6,))}
    found.append(Phase(TIGHTER, dict(now), rows(6), written, says=[("per_key", "changed")]))
    # 7: two leave, one of them with all that it had kept.
    for name in ("again", "large"):
        del now[name]
    written = [name for name in now if name != "asked"]
    found.append(Phase(TIGHTER, dict(now), rows(7), written, says=[("again", "dropped"), ("large", "dropped")]))
    # 8: one comes back, a filter is put on pairs, and the file takes over what had been asked for.
    now |= {
        "large": Version(_LARGE.format("s1", 3), top=8),
        "pairs": Version(_PAIRS.format(30, " HAVING count(*) > 1"), (0, 3)),
        "asked": Version(f"{_EXTREMES} HAVING max(v) > 7", (5,)),
    }
    found.append(
        Phase(TIGHTER, dict(now), rows(8), says=[("asked", "changed"), ("pairs", "changed"), ("large", "started")])
    )
    return History(found, DISORDERS)


def steady(phase: int) -> dict[str, list[Row]]:
    """Rows of a phase without chance: some out of order, two streams side by side, every key in every window."""
    return {name: [_row(phase * 20 + place, ahead) for place in range(20)] for ahead, name in enumerate(("s0", "s1"))}


def _row(place: int, ahead: int) -> Row:
    """Times go ahead by three seconds in two rows, and back by one in every fifth."""
    time = place * 1_500_000 + ahead * 300_000 - (SECOND if place % 5 == 4 else 0)
    key = ("a", "b", "c", None)[(place * 7 + ahead) % 4]
    moment = EPOCH + (EPOCH.resolution * time)
    return {"k": key, "j": place % 3, "v": (place * 5 + ahead) % 11 - 2, "x": place / 4, "more": None, "ts": moment}
