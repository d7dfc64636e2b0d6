"""The eight changes of the differential history on a network that is cut as for Spark, without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from staged import Staged

from millrace.hosts.control.live_changes import LiveChanges
from millrace.language import bind_changes, parse_network, read_file
from millrace.plan.nodes.endpoints import Connector
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.plan.physical.stages import Physical
from tests.differential.evolution_cases import History, Phase, Row, scripted, steady
from tests.property.cases import batch
from tests.reference import multiset


class Asked:
    """A run that is asked for a change between two micro-batches, as the Spark host is."""

    def __init__(self, staged: Staged) -> None:
        self.staged = staged

    def settle(self) -> None: ...

    def points(self) -> dict[str, Any]:
        sources: dict[str, Any] = self.staged.record["sources"]
        return sources

    def prepare(self, plan: Physical) -> Any:
        return lambda: None

    def shape(self, plan: Physical) -> None: ...

    def keep(self) -> None: ...

    def lag(self) -> Any: ...


def on_files(network: QueryNetwork, folder: Path) -> QueryNetwork:
    read = Connector("parquet", {"path": str(folder)})
    return network.with_streams({each.name: replace(each, connector=read) for each in network.streams()})


def halves(phase: Phase, streams: set[str]) -> list[dict[str, list[pa.Table]]]:
    """The rows of a phase in two micro-batches."""
    found: list[dict[str, list[pa.Table]]] = [{}, {}]
    for name in streams & set(phase.rows):
        rows = list(phase.rows[name])
        for number, half in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
            if half:
                found[number][name] = [pa.Table.from_batches([batch(half)])]
    return found


def answers(history: History, number: int, staged: Staged) -> dict[str, list[Row]]:
    phase, found = history.phases[number], dict[str, list[Row]]()
    parts = halves(phase, {stream.name for stream in staged.plan.network.streams()})
    given = [staged.batch(files, now=number * 10 + part) for part, files in enumerate(parts, start=1)]
    if number == len(history.phases) - 1:
        given.append(staged.batch({}, now=number * 10 + 9, end=True))
    for results in given:
        for name, rows in results.items():
            found.setdefault(name, []).extend(rows)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [True, False], ids=["restored", "at hand"])
def test_eight_changes_to_four_queries(tmp_path: Path, restarts: bool) -> None:
    history, saved = scripted(steady), dict[str, Any]()
    staged: Staged | None = None
    for number, phase in enumerate(history.phases):
        changes = LiveChanges(parse_network(phase.text), phase.text, bind_changes, read_file)
        if staged is None:
            staged = Staged(on_files(changes.network, tmp_path), tmp_path, stages=3)
        else:
            changes.resume(saved, staged.record["sources"], spread=True)
            for text in phase.requests:
                changes.carry_out(text, Asked(staged))
            staged.change(on_files(changes.network, tmp_path))
        if restarts:
            staged.restart()
        saved = changes.saved()
        found = answers(history, number, staged)
        for name, rows in history.expected(number).items():
            assert multiset(found.get(name, [])) == multiset(rows), (number, name)


def test_what_is_left_of_operators_that_are_gone_is_removed(tmp_path: Path) -> None:
    history = scripted(steady)
    first = history.phases[0]
    staged = Staged(on_files(parse_network(first.text), tmp_path), tmp_path, stages=3)
    answers(history, 0, staged)
    assert any(node.startswith("join") for state in staged.states for each in state.values.values() for node, _ in each)
    counts = first.declarations + first.queries["large"].statement("large")
    staged.change(on_files(parse_network(counts), tmp_path))
    staged.batch({}, now=100, control=True)
    assert {node for state in staged.states for each in state.values.values() for node, _ in each} == {""}


ADDED = """
CREATE STREAM a (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM parquet OPTIONS (path 'a');
CREATE STREAM b (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND
  FROM parquet OPTIONS (path 'b');
CREATE QUERY counted AS SELECT window, count(*) AS n FROM a UNION b [RANGE 10 SECONDS SLIDE 10 SECONDS];
"""
JOINED = """
CREATE QUERY joined AS SELECT c.k, c.n FROM
  (SELECT window_start, window_end, k, count(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k) AS c
  LEFT JOIN b ON b.k = c.n AND b.ts BETWEEN c.window_end AND c.window_end + INTERVAL 1 SECOND;
"""


@pytest.mark.parametrize("restarts", [True, False], ids=["restored", "at hand"])
def test_a_silent_stream_that_a_new_query_reads_on_a_later_level_is_spoken_for(tmp_path: Path, restarts: bool) -> None:
    def at(*seconds: int) -> list[pa.Table]:
        times = pa.array([each * 1_000_000 for each in seconds]).cast(pa.timestamp("us", tz="UTC"))
        return [pa.table({"k": pa.array([1] * len(seconds), pa.int32()), "ts": times})]

    staged = Staged(parse_network(ADDED), tmp_path, stages=2, live=True)
    staged.batch({"a": at(1), "b": at(2)}, now=2_000_000)
    staged.change(parse_network(ADDED + JOINED))
    if restarts:
        staged.restart()
    assert [row["n"] for row in staged.batch({"a": at(3, 21)}, now=21_000_000)["joined"]] == [1]
    staged.change(parse_network(ADDED.partition("CREATE QUERY")[0] + JOINED))
    staged.batch({"b": at(22, 23)}, now=23_000_000)
    assert staged.record["sources"]["b"]["received"] == 3, "what was read for another level counts"
