"""Rows by sequence number, by a further time, late ones, and promises of single groups: over several micro-batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from staged import Staged

from millrace.kernel.columns.expressions import Column
from millrace.kernel.progress.time_contract import LATE, SEQUENCE, TimeContract
from millrace.plan.nodes.aggregate_nodes import Aggregate, Aggregation, Window
from millrace.plan.nodes.endpoints import Connector, Sink, Stream
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.nodes.relational_nodes import Project, Scan

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("k", pa.string()), ("ts", TIMESTAMP), ("began", TIMESTAMP), ("until", TIMESTAMP)])


def stream(**time: Any) -> Stream:
    return Stream("s", SCHEMA, TimeContract("external", "ts", **time), Connector("parquet", {"path": "none"}))


def network(**roots: Node) -> QueryNetwork:
    return QueryNetwork(tuple(Query(name, root, Sink(name, Connector("memory"))) for name, root in roots.items()))


def counts(scan: Scan, window: Window) -> Aggregate:
    return Aggregate(scan, window, (("k", Column("k")),), (Aggregation("n", "count"),))


def rows(*given: tuple[Any, ...]) -> pa.Table:
    """Rows of a key and up to three times in seconds."""
    columns = [[row[place] if place < len(row) else None for row in given] for place in range(4)]
    times = [[None if each is None else round(each * SECOND) for each in column] for column in columns[1:]]
    return pa.table(
        [pa.array(columns[0]), *(pa.array(each, pa.int64()).cast(TIMESTAMP) for each in times)], SCHEMA.names
    )


def run(staged: Staged, files: Iterable[pa.Table], restarts: bool = True) -> dict[str, list[dict[str, Any]]]:
    """Each file, or pair of files, as a micro-batch; then the end."""
    gathered: dict[str, list[dict[str, Any]]] = {}
    waiting = list(files)
    clock = 0
    while waiting:
        some, waiting = waiting[: 1 + clock % 2], waiting[1 + clock % 2 :]
        clock += 1
        _gather(gathered, staged.batch({"s": some}, now=clock * SECOND))
        if restarts:
            staged.restart()
    _gather(gathered, staged.batch({}, now=(clock + 1) * SECOND, end=True))
    return gathered


def _gather(gathered: dict[str, list[dict[str, Any]]], results: dict[str, list[dict[str, Any]]]) -> None:
    for name, found in results.items():
        gathered.setdefault(name, []).extend(found)


@pytest.mark.parametrize("restarts", [False, True])
def test_row_windows_count_the_whole_stream_over_files_and_micro_batches(tmp_path: Path, restarts: bool) -> None:
    draw = Random(3)
    keys = [draw.choice("abc") for _ in range(47)]
    pairs = [(key, float(place)) for place, key in enumerate(keys)]
    files = [rows(*pairs[start : start + 6]) for start in range(0, len(pairs), 6)]
    staged = Staged(network(q=counts(Scan(stream(), SEQUENCE), Window(8, 4, unit="rows"))), tmp_path)
    found = {(row["window_start"], row["k"]): row["n"] for row in run(staged, files, restarts)["q"]}
    starts = range(-4, 47, 4)
    windows = [(start, key) for start in starts for key in keys[max(start, 0) : start + 8]]
    assert found == dict(Counter(windows))


def test_late_rows_are_a_stream_of_their_own(tmp_path: Path) -> None:
    own = stream()
    late = Project(Scan(own, LATE), (("k", Column("k")),))
    both = network(q=counts(Scan(own), Window(10 * SECOND, 10 * SECOND)), late=late)
    files = [rows(("a", 1), ("b", 25), ("c", 3)), rows(("d", 24), ("e", 26)), rows(("f", 1), ("g", 27))]
    staged = Staged(both, tmp_path)
    results = run(staged, files)
    assert sorted(row["k"] for row in results["late"]) == ["c", "d", "f"]
    assert sorted(row["k"] for row in results["q"]) == ["a", "b", "e", "g"]
    assert (staged.record["sources"]["s"]["received"], staged.record["sources"]["s"]["late"]) == (7, 3)


def test_late_rows_can_be_read_alone_and_counted_by_the_clock(tmp_path: Path) -> None:
    late = Scan(stream(), LATE)
    staged = Staged(network(q=counts(late, Window(SECOND, SECOND))), tmp_path)
    files = [rows(("a", 5), ("a", 1)), rows(("a", 6), ("b", 2)), rows(("a", 7), ("b", 3), ("b", 4))]
    results = run(staged, files)["q"]
    assert sorted((row["k"], row["n"]) for row in results) == [("a", 1), ("b", 3)]


def test_two_queries_may_go_by_two_times_of_one_stream(tmp_path: Path) -> None:
    own = stream(also=(("began", 30 * SECOND),))
    tens = Window(10 * SECOND, 10 * SECOND)
    staged = Staged(network(ended=counts(Scan(own), tens), began=counts(Scan(own, "began"), tens)), tmp_path)
    draw = Random(5)
    flows = [(draw.choice("abc"), float(end), float(end - draw.randrange(30))) for end in range(90)]
    files = [rows(*flows[start : start + 20]) for start in range(0, 90, 20)]
    results = run(staged, files)
    for name, place in (("ended", 1), ("began", 2)):
        found = {(round(row["window_start"].timestamp()), row["k"]): row["n"] for row in results[name]}
        assert found == dict(Counter((int(flow[place] // 10) * 10, flow[0]) for flow in flows))


def test_a_slow_group_holds_no_other_back_and_loses_nothing(tmp_path: Path) -> None:
    own = stream(punctuation=Column("until"), per=("k",))
    staged = Staged(network(q=counts(Scan(own), Window(10 * SECOND, 10 * SECOND))), tmp_path)
    first = staged.batch({"s": [rows(("slow", 1), ("fast", 5), ("fast", 12, None, 10))]}, now=1)
    assert [(row["k"], row["n"]) for row in first["q"]] == [("fast", 1)]
    staged.restart()
    second = staged.batch({"s": [rows(("fast", 3), ("slow", 4), ("slow", 10, None, 10))]}, now=2)
    assert [(row["k"], row["n"]) for row in second["q"]] == [("slow", 2)]
    assert staged.record["sources"]["s"]["late"] == 1
    staged.restart()
    last = staged.batch({}, now=3, end=True)
    assert sorted((row["k"], row["n"]) for row in last["q"]) == [("fast", 1), ("slow", 1)]
