"""Several levels in this process: what crosses, what is promised, what is waited for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from staged import Staged

from millrace.errors import CheckpointError
from millrace.kernel.columns.expressions import Column
from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.nodes.aggregate_nodes import Aggregate, Aggregation, InstantWindow, Window
from millrace.plan.nodes.endpoints import Connector, Sink, Stream
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.nodes.relational_nodes import Project, Scan, Union
from millrace.plan.physical.stages import physical

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")


def stream(name: str, column: tuple[str, pa.DataType], **time: Any) -> Stream:
    schema = pa.schema([column, ("ts", TIMESTAMP)])
    return Stream(name, schema, TimeContract("external", "ts", **time), Connector("parquet", {"path": "none"}))


def network(outer: InstantWindow | Window | None = None, **time: Any) -> QueryNetwork:
    """Counts per device and ten seconds, and how many devices had each count."""
    inner = Aggregate(
        Scan(stream("s", ("k", pa.string()), **time)),
        Window(10 * SECOND, 10 * SECOND),
        (("k", Column("k")),),
        (Aggregation("n", "count"),),
    )
    keys = ("n",) if isinstance(outer, Window) else ("window_start", "n")
    devices = (Aggregation("devices", "count"),)
    root = Aggregate(inner, outer or InstantWindow(), tuple((name, Column(name)) for name in keys), devices)
    return QueryNetwork((Query("spread", root, Sink("spread", Connector("memory"))),))


def rows(*pairs: tuple[str, float]) -> pa.Table:
    times = pa.array([round(time * SECOND) for _, time in pairs], pa.int64()).cast(TIMESTAMP)
    return pa.table({"k": [key for key, _ in pairs], "ts": times})


def random_rows(count: int, seed: int) -> list[tuple[str, float]]:
    draw = Random(seed)
    return sorted(
        ((f"device {draw.randrange(40)}", draw.randrange(600) / 10) for _ in range(count)), key=lambda x: x[1]
    )


def expected(pairs: list[tuple[str, float]]) -> dict[tuple[int, int], int]:
    """How many devices had each count in each window, by hand."""
    counts = Counter((key, int(time // 10) * 10) for key, time in pairs)
    return dict(Counter((start, count) for (_, start), count in counts.items()))


def found(results: list[dict[str, Any]]) -> dict[tuple[int, int], int]:
    pairs = [((round(row["window_start"].timestamp()), row["n"]), row["devices"]) for row in results]
    assert len(dict(pairs)) == len(pairs), "a group leaves once"
    return dict(pairs)


def test_a_nested_aggregate_by_other_keys_has_two_levels() -> None:
    plan = physical(network())
    assert plan.depth == 2
    (exchange,), (crossing,) = plan.exchanges(), plan.crossings()
    assert (exchange.level, crossing.level) == (1, 2)
    assert crossing.keys == ("window_start", "n")


@pytest.mark.parametrize("restarts", [False, True])
def test_nested_counts_are_those_of_all_rows_whatever_the_cuts(tmp_path: Path, restarts: bool) -> None:
    pairs = random_rows(500, seed=1)
    staged, results = Staged(network(), tmp_path), []
    for number in range(5):
        some = pairs[number * 100 : (number + 1) * 100]
        results += staged.batch({"s": [rows(*some[:50]), rows(*some[50:])]}, now=number).get("spread", [])
        if restarts:
            staged.restart()
    assert results, "windows leave before the end"
    results += staged.batch({}, now=9, end=True)["spread"]
    assert found(results) == expected(pairs)
    assert staged.record["metrics"]["results"] == {"spread": len(results)}
    assert staged.record["sources"]["s"]["received"] == 500
    assert (staged.record["metrics"]["held"], staged.record["wants"]) == (0, {})


def test_nobody_is_woken_for_a_stream_that_may_not_be_spoken_for(tmp_path: Path) -> None:
    staged = Staged(network(Window(60 * SECOND, 60 * SECOND)), tmp_path, live=True)
    staged.batch({"s": [rows(("a", 1), ("b", 11))]}, now=11 * SECOND)
    assert staged.record["metrics"]["held"] > 0 and staged.record["wants"] == {}


def test_a_result_leaves_in_the_micro_batch_that_completes_it_through_all_levels(tmp_path: Path) -> None:
    staged = Staged(network(), tmp_path)
    assert staged.batch({"s": [rows(("a", 1), ("b", 2), ("c", 9))]}, now=1) == {}
    assert found(staged.batch({"s": [rows(("a", 10))]}, now=2)["spread"]) == {(0, 1): 3}


def test_a_replayed_batch_gives_the_same_again(tmp_path: Path) -> None:
    staged = Staged(network(), tmp_path)
    staged.batch({"s": [rows(("a", 1), ("b", 2))]}, now=1)
    stores = [{bucket: dict(values) for bucket, values in state.values.items()} for state in staged.states]
    record, read = staged.record, dict(staged.read)
    once = staged.batch({"s": [rows(("c", 8), ("d", 12))]}, now=2)
    for state, store in zip(staged.states, stores, strict=True):
        state.values.clear()
        state.values.update(store)
    staged.record = record
    staged.read.update(read)
    assert staged.batch({"s": [rows(("c", 8), ("d", 12))]}, now=2) == once == {"spread": once["spread"]}


def test_silent_sources_are_spoken_for_because_a_later_level_waits(tmp_path: Path) -> None:
    # The inner windows end at 10 s, the outer one at 60: an ETS at 11 would close the inner ones alone.
    net = network(Window(60 * SECOND, 60 * SECOND), ets="on_demand", lull=SECOND)
    staged = Staged(net, tmp_path, live=True)
    (crossing,) = physical(net).crossings()
    assert staged.batch({"s": [rows(("a", 1), ("b", 2), ("c", 9))]}, now=9 * SECOND) == {}
    assert staged.record["wake_at"] == 11 * SECOND
    assert staged.record["wants"] == {}
    assert staged.batch({}, now=12 * SECOND, control=True) == {}
    assert staged.record["wants"] == {crossing.port: 60 * SECOND}
    assert staged.record["wake_at"] is None
    staged.restart()
    assert staged.batch({}, now=13 * SECOND, control=True) == {}
    staged.restart()
    assert staged.record["wake_at"] == 61 * SECOND
    (row,) = staged.batch({}, now=62 * SECOND, control=True)["spread"]
    assert (row["n"], row["devices"]) == (1, 3)
    assert (staged.record["wants"], staged.record["wake_at"]) == ({}, None)


def test_three_levels_and_a_stream_that_is_read_on_a_later_one(tmp_path: Path) -> None:
    inner = network().queries[0]
    assert isinstance(inner.root, Aggregate)
    starts = (("window_start", Column("window_start")),)
    # How many different counts there were in each window, from the counts and from rows of another stream alike.
    kinds = Aggregate(inner.root, InstantWindow(), starts, (Aggregation("n", "count"),))
    spread = Project(inner.root, (("n", Column("n")),))
    other = Project(Scan(stream("other", ("n", pa.int64()))), (("n", Column("n")),))
    minutes = Window(60 * SECOND, 60 * SECOND)
    both = Aggregate(Union((spread, other)), minutes, (("n", Column("n")),), (Aggregation("times", "count"),))
    sink = Sink("memory", Connector("memory"))
    net = QueryNetwork((Query("kinds", kinds, sink), Query("both", both, sink)))
    plan = physical(net)
    assert (plan.depth, sorted(each.level for each in plan.crossings())) == (3, [2, 3, 3])
    assert {each.stream.name: each.level for each in plan.exchanges()} == {"s": 1, "other": 3}
    pairs, staged = random_rows(300, seed=2), Staged(net, tmp_path)
    more = pa.table(
        {"n": pa.array([1, 7], pa.int64()), "ts": pa.array([SECOND, 2 * SECOND], pa.int64()).cast(TIMESTAMP)}
    )
    results = [staged.batch({"s": [rows(*pairs[:150])], "other": [more]}, now=1)]
    staged.restart()
    results += [staged.batch({"s": [rows(*pairs[150:])]}, now=2), staged.batch({}, now=3, end=True)]
    counts = expected(pairs)
    found_kinds = {
        round(row["window_start"].timestamp()): row["n"] for each in results for row in each.get("kinds", [])
    }
    assert found_kinds == dict(Counter(start for start, _ in counts))
    times = Counter({1: 1, 7: 1}) + Counter(n for _, n in counts)
    assert {row["n"]: row["times"] for each in results for row in each.get("both", [])} == dict(times)


def test_the_state_of_another_level_is_refused(tmp_path: Path) -> None:
    staged = Staged(network(), tmp_path)
    staged.batch({"s": [rows(("a", 1))]}, now=1)
    staged.states.reverse()
    with pytest.raises(Exception, match="belongs to another stage") as raised:
        staged.batch({"s": [rows(("a", 2))]}, now=2)
    assert isinstance(raised.value.__cause__, CheckpointError)
