"""Where update queries are cut for Spark: rows of equal update key meet in their queue."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from millrace.kernel.columns.expressions import Call, Column, Literal
from millrace.kernel.joins.sides import Side
from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.nodes.aggregate_nodes import Aggregate, Aggregation, Window
from millrace.plan.nodes.endpoints import Connector, Stream
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.relational_nodes import Filter, OrderByTime, Project, Scan
from millrace.plan.nodes.update_nodes import MarkedAggregate, UpdateJoin, UpdateQueue, WindowQueue
from millrace.plan.physical.levels import Crossing, Cut, Cuts, Exchange

SECOND = 1_000_000
SCHEMA = pa.schema([("a", pa.string()), ("b", pa.string()), ("c", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])


def scan(name: str = "s", key: tuple[str, ...] | None = ("a", "b")) -> Scan:
    return Scan(Stream(name, SCHEMA, TimeContract("external", "ts"), Connector("parquet"), update_key=key))


def queue(*names: str, key: tuple[str, ...] | None = ("a", "b")) -> UpdateQueue:
    return UpdateQueue(tuple(scan(name, key) for name in names or ("s",)), key, "q")


def renaming(node: Node, **names: str) -> Project:
    """Each new name with the old one."""
    return Project(node, tuple((new, Column(old)) for new, old in names.items()))


def cut(node: Node, options: Mapping[str, str] | None = None) -> tuple[int, dict[str, Cut]]:
    cuts = Cuts(options or {})
    return cuts.root(node, "q"), cuts.cuts


def keys(node: Node, options: Mapping[str, str] | None = None) -> dict[str, tuple[str, ...] | None]:
    """By place the keys of the exchanges of a tree that has one level."""
    level, cuts = cut(node, options)
    assert level == 1
    assert not any(isinstance(each, Crossing) for each in cuts.values())
    return {path: each.keys for path, each in cuts.items()}


@pytest.mark.parametrize("key", [("a", "b"), ("b",), ()])
def test_rows_of_equal_update_key_meet(key: tuple[str, ...]) -> None:
    assert keys(queue(key=key)) == {"q.0": key}


def test_all_inputs_of_a_queue_are_spread_alike() -> None:
    assert keys(queue("s", "t")) == {"q.0": ("a", "b"), "q.1": ("a", "b")}


def test_maps_above_a_queue_stay_where_it_is() -> None:
    mapped = Filter(renaming(queue(), x="a", y="b", n="c"), Call(">", (Column("n"), Literal(0, pa.int64()))))
    assert keys(mapped) == {"q.0.0.0": ("a", "b")}


def test_windows_above_a_queue_stay_where_it_is_though_they_group_by_more() -> None:
    windows = WindowQueue((scan(),), ("a", "b"), "q", 10 * SECOND, 10 * SECOND)
    grouped = (("x", Column("a")), ("y", Column("b")), ("half", Call("*", (Column("c"), Literal(2, pa.int64())))))
    lower = MarkedAggregate(
        Aggregate(windows, Window(10 * SECOND, 10 * SECOND), grouped, (Aggregation("n", "count"),)), 10 * SECOND
    )
    assert keys(lower) == {"q.0.0": ("a", "b")}
    upper = Aggregate(lower, Window(20 * SECOND, 20 * SECOND), grouped[:2], (Aggregation("m", "count"),))
    assert keys(MarkedAggregate(upper, 20 * SECOND)) == {"q.0.0.0": ("a", "b")}


@pytest.mark.parametrize("places", [("a", "b"), ("b", "a"), ("b",)])
def test_the_queues_of_a_join_are_spread_as_it_equates_their_keys(places: tuple[str, ...]) -> None:
    others = tuple(f"other_{name}" for name in places)
    right = renaming(queue("t"), other_a="a", other_b="b", other_c="c")
    assert keys(UpdateJoin((queue(), right), (places, others))) == {"q.0.0": places, "q.1.0.0": places}


def test_queues_below_a_queue_of_their_union_are_spread_as_it_is() -> None:
    first, second = renaming(queue("s"), x="a", y="b"), renaming(queue("t"), x="a", y="b")
    assert keys(UpdateQueue((first, second), ("y", "x"), "q")) == {"q.0.0.0": ("b", "a"), "q.1.0.0": ("b", "a")}


def test_a_queue_that_appends_a_plain_stream_may_be_spread_at_will() -> None:
    assert keys(queue(key=None), {"queue": "append"}) == {"q.0": None}
    assert keys(renaming(queue("s", "t", key=None), x="c"), {"queue": "append"}) == {"q.0.0": None, "q.0.1": None}


@pytest.mark.parametrize("key", [None, ("a", "b")])
def test_behind_a_queue_that_appends_rows_are_spread_as_the_query_wants_them(key: tuple[str, ...] | None) -> None:
    counted = Aggregate(
        renaming(queue(key=key), n="c"), Window(SECOND, SECOND), (("n", Column("n")),), (Aggregation("m", "count"),)
    )
    assert keys(counted, {"queue": "append_shed"}) == {"q.0.0.0": ("c",)}
    assert keys(OrderByTime(queue(key=key)), {"queue": "append"}) == {"q.0.0": ()}
    sides = (Side(keys=("c",)), Side(keys=("d",)))
    joined = Join((queue(key=key), renaming(queue("t", key=key), d="c")), sides)
    assert keys(joined, {"queue": "append"}) == {"q.0.0": ("c",), "q.1.0.0": ("c",)}


def test_what_a_map_computes_behind_a_queue_crosses() -> None:
    doubled = Project(queue(key=None), (("n", Call("*", (Column("c"), Literal(2, pa.int64())))),))
    counted = Aggregate(doubled, Window(SECOND, SECOND), (("n", Column("n")),), (Aggregation("m", "count"),))
    level, cuts = cut(counted, {"queue": "append"})
    assert level == 2
    assert [(type(each), each.keys) for each in cuts.values()] == [(Exchange, None), (Crossing, ("n",))]


def test_an_aggregate_behind_a_queue_gets_rows_not_partials() -> None:
    counted = Aggregate(queue(), Window(SECOND, SECOND), (("a", Column("a")),), (Aggregation("m", "count"),))
    _, cuts = cut(counted, {"queue": "append"})
    assert [each.aggregate for each in cuts.values() if isinstance(each, Exchange)] == [None]


def test_a_crossing_keeps_its_name_when_the_queue_is_another() -> None:
    doubled = Project(queue(key=None), (("n", Call("*", (Column("c"), Literal(2, pa.int64())))),))
    counted = Aggregate(doubled, Window(SECOND, SECOND), (("n", Column("n")),), (Aggregation("m", "count"),))
    first, second = ({each.port for each in cut(counted, {"queue": each})[1].values()} for each in ("append", "auto"))
    assert first == second
