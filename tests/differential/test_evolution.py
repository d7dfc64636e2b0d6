"""A history of changes from run to run: every run gives exactly what is to be given in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.local.host import LocalRun
from millrace.hosts.report import Ending
from millrace.hosts.run_options import RunOptions
from millrace.language import bind_changes, parse_network, read_file
from millrace.plan.nodes.query_network import QueryNetwork
from tests.differential.evolution_cases import History, Phase, Row, merged, scripted, steady
from tests.property.cases import batch
from tests.reference import multiset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millrace.hosts.spark.host import SparkRun


Host = Callable[..., "LocalRun | SparkRun"]


def on_local(network: QueryNetwork, ending: Ending, checkpoint: Path, **given: Any) -> LocalRun:
    return LocalRun(network, RunOptions("local", ending, checkpoint), **given)


def run_phase(
    history: History, number: int, checkpoint: Path, pieces: int = 3, host: Host = on_local
) -> tuple[dict[str, list[Row]], LiveChanges]:
    """The answers of one phase on a host."""
    phase, last = history.phases[number], number == len(history.phases) - 1
    changes = LiveChanges(parse_network(phase.text), phase.text, bind_changes, read_file)
    feeds = {name: list(fed(history, name, number, pieces)) for name in history.disorders}
    ending = "end" if last else "available"
    run = host(changes.network, ending, checkpoint, feeds=feeds, changes=changes)
    for text in phase.requests:
        changes.carry_out(text, run)
    run.run()
    return {name: [row for each in tables for row in each.to_pylist()] for name, tables in run.memory.items()}, changes


def fed(history: History, stream: str, until: int, pieces: int) -> list[object]:
    """A stream's rows up to a phase, in so many batches a phase."""
    found: list[object] = []
    for phase in history.phases[: until + 1]:
        rows = list(phase.rows.get(stream, ()))
        size = len(rows) // pieces + 1
        found += [batch(rows[start : start + size]) for start in range(0, len(rows), size)]
    return found


def said(changes: LiveChanges) -> list[tuple[str, str]]:
    told = changes.evolution.queries if changes.evolution is not None else ()
    return sorted((each.name, each.became) for each in told if each.became != "kept" or each.was is not None)


def check(
    history: History, number: int, phase: Phase, checkpoint: Path, pieces: int = 3, host: Host = on_local
) -> LiveChanges:
    found, changes = run_phase(history, number, checkpoint, pieces, host)
    expected = history.expected(number)
    assert set(expected) <= set(found)
    for name, rows in expected.items():
        assert multiset(found[name]) == multiset(rows), (number, name, phase.queries[name])
    return changes


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 4])
def test_eight_changes_to_four_queries(tmp_path: Path, pieces: int) -> None:
    check_all(scripted(steady), tmp_path, pieces, on_local)


@pytest.mark.spark
@pytest.mark.long
def test_eight_changes_to_four_queries_in_four_runs_on_spark(tmp_path: Path, spark_session: SparkSession) -> None:
    from millrace.hosts.spark.host import SparkRun

    def on_spark(network: QueryNetwork, ending: Ending, checkpoint: Path, **given: Any) -> SparkRun:
        return SparkRun(network, RunOptions("spark", ending, checkpoint, stages=3), session=spark_session, **given)

    # Each run by itself, on a network that is cut the same way: tests/unit/hosts/spark/test_evolution.py.
    check_all(merged(scripted(steady), (0, 4, 5, 7)), tmp_path, 1, on_spark, silent="busiest")


def check_all(history: History, tmp_path: Path, pieces: int, host: Host, silent: str = "") -> None:
    answered = set()
    for number, phase in enumerate(history.phases):
        changes = check(history, number, phase, tmp_path, pieces, host)
        assert said(changes) == sorted(phase.says), number
        answered |= {phase.queries[name] for name, rows in history.expected(number).items() if rows}
    asked = {each for phase in history.phases for name, each in phase.queries.items() if name != silent}
    assert asked <= answered, "each says something"


@pytest.mark.spark
@pytest.mark.slow
def test_a_micro_batch_that_was_begun_ends_by_its_own_plan_on_spark(
    tmp_path: Path, spark_session: SparkSession
) -> None:
    from millrace.hosts.spark.host import SparkRun

    def run(text: str) -> LiveChanges:
        changes = LiveChanges(parse_network(text), text, bind_changes, read_file)
        SparkRun(
            changes.network,
            RunOptions("spark", "available", checkpoint=tmp_path / "state"),
            changes=changes,
            session=spark_session,
        ).run()
        return changes

    def sink(name: str) -> list[int]:
        return sorted(row["v"] for path in (tmp_path / name).glob("part-*") for row in pq.read_table(path).to_pylist())

    stream = (
        f"CREATE STREAM s (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path '{tmp_path / 'in'}');"
    )
    into = "CREATE SINK out TO parquet OPTIONS (path '{}'); CREATE QUERY q INTO out AS SELECT v FROM s;"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("v,ts\n1,2024-01-01 00:00:01\n")
    run(stream + into.format(tmp_path / "one"))
    # Killed after our record, before Spark's: the batch will be run again.
    for path in (tmp_path / "state" / "spark" / "commits").glob("*0*"):
        path.unlink()
    (tmp_path / "in" / "2.csv").write_text("v,ts\n2,2024-01-01 00:00:02\n")
    changes = run(stream + into.format(tmp_path / "two"))
    assert changes.evolution is not None
    assert (sink("one"), sink("two")) == ([1], [2])
