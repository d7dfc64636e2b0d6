"""Where plans are cut: which operators stay on a level, and which need rows to cross to the next."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from millrace.kernel.columns.expressions import Column
from millrace.kernel.joins.sides import RowsSide, Side
from millrace.kernel.progress.time_contract import SEQUENCE, TimeContract
from millrace.plan.nodes.aggregate_nodes import Aggregate, Aggregation, InstantWindow, SessionWindow, Window
from millrace.plan.nodes.endpoints import Connector, Sink, Stream
from millrace.plan.nodes.join_nodes import Following, Join, RowsJoin
from millrace.plan.nodes.node import Node
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.plan.nodes.relational_nodes import OrderByTime, Project, Rank, Scan, Union
from millrace.plan.physical.levels import Crossing
from millrace.plan.physical.stages import Physical, physical

COLUMNS = pa.schema([("k", pa.string()), ("g", pa.string()), ("n", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])
STREAM = Stream("s", COLUMNS, TimeContract("external", "ts"), Connector("csv", {"path": "s.csv"}))
MINUTE = Window(60_000_000, 60_000_000)
_TWO = (("k", Column("k")), ("total", Column("n")))
SUM = (Aggregation("total", "sum", (Column("n"),)),)


def by(node: Node, *keys: str, window: Window | InstantWindow | SessionWindow = MINUTE) -> Aggregate:
    """The sum of n by some columns."""
    value = "n" if "n" in node.schema.names else "total"
    return Aggregate(
        node, window, tuple((key, Column(key)) for key in keys), (Aggregation("total", "sum", (Column(value),)),)
    )


def plan(root: Node, **options: str) -> Physical:
    """The plan of one query."""
    return physical(QueryNetwork((Query("q", root, Sink("q", Connector("memory")), options),)))


def crossings(found: Physical) -> list[tuple[int, int, tuple[str, ...] | None]]:
    """The levels and keys of all crossings."""
    return [(each.start, each.level, each.keys) for each in found.crossings()]


def test_one_aggregate_is_one_level_spread_by_its_keys() -> None:
    found = plan(by(Scan(STREAM), "k"))
    assert (found.depth, found.crossings(), [each.keys for each in found.exchanges()]) == (1, (), [("k",)])


def test_an_aggregate_by_other_keys_is_on_the_next_level() -> None:
    found = plan(by(by(Scan(STREAM), "k", "g"), "g"))
    assert (found.depth, crossings(found)) == (2, [(1, 2, ("g",))])
    (crossing,) = found.crossings()
    assert [node.name for node in found.high(1).sinks()] == [crossing.port]
    assert [node.name for node in found.high(2).sources()] == [crossing.port]
    assert [node.name for node in found.high(2).sinks()] == ["q"]


def test_an_aggregate_by_more_keys_stays_where_its_rows_meet_already() -> None:
    inner = by(Scan(STREAM), "k")
    found = plan(by(inner, "k", "window_start", window=InstantWindow()))
    assert (found.depth, found.crossings()) == (1, ())


def test_the_last_of_all_keys_needs_one_bucket() -> None:
    found = plan(Rank(by(Scan(STREAM), "k"), "rank", (), (("total", True),), "place", 1))
    assert crossings(found) == [(1, 2, ())]


def test_an_order_keeps_everything_below_it_in_one_bucket() -> None:
    found = plan(OrderByTime(by(by(Scan(STREAM), "k"), "total")))
    assert (found.depth, [each.keys for each in found.exchanges()]) == (1, [()])


def test_a_union_of_levels_meets_on_the_highest() -> None:
    outer = by(by(Scan(STREAM), "k", "g"), "g")
    plain = by(Scan(STREAM), "g")
    found = plan(Union((outer, plain)))
    assert found.depth == 2
    assert set(crossings(found)) == {(1, 2, None), (1, 2, ("g",))}


def test_inputs_that_meet_are_spread_alike() -> None:
    counted = by(Scan(STREAM), "k")
    plain = Project(Scan(STREAM), (("window_start", Column("ts")), ("window_end", Column("ts")), *_TWO))
    found = plan(by(Union((counted, plain)), "k", "total"))
    assert crossings(found) == [(1, 2, ("k", "total"))]
    assert {(each.keys, each.level) for each in found.exchanges()} == {(("k",), 1), (("k", "total"), 2)}


def test_what_stays_on_a_level_is_spread_as_it_was() -> None:
    at = ("k", "window_start")
    kept = by(by(Scan(STREAM), "k"), *at, window=InstantWindow())
    plain = by(Project(Scan(STREAM), (("window_start", Column("ts")), *_TWO)), *at, window=InstantWindow())
    assert plan(kept).crossings() == ()
    found = plan(by(Union((kept, plain)), *at, window=InstantWindow()))
    # The first input is spread by k alone, the second by both: they do not meet without a crossing.
    assert crossings(found) == [(1, 2, at), (1, 2, at)]


def test_three_levels_follow_each_other() -> None:
    found = plan(by(by(by(Scan(STREAM), "k", "g"), "g"), "total", window=InstantWindow()))
    assert set(crossings(found)) == {(1, 2, ("g",)), (2, 3, ("total",))}
    assert all(isinstance(cut, Crossing) or cut.level == 1 for cut in found.cuts().values())


def test_a_stream_that_is_counted_is_read_in_sequence() -> None:
    rows = Aggregate(Scan(STREAM, SEQUENCE), Window(10, 10, unit="rows"), (), SUM)
    assert plan(rows).in_sequence("s")
    assert not plan(by(Scan(STREAM), "k")).in_sequence("s")


def test_sessions_are_never_pre_aggregated() -> None:
    sessions = replace(by(Scan(STREAM), "k"), window=SessionWindow(5))
    assert [each.aggregate for each in plan(sessions).exchanges()] == [None]
    assert plan(by(Scan(STREAM), "k")).exchanges()[0].aggregate is not None


def test_the_low_level_is_bounded_where_the_query_says_so() -> None:
    (exchange,) = plan(by(Scan(STREAM), "k"), low_level_groups="64").exchanges()
    assert exchange.low_level_groups == 64


# Joins


def named(scan: Node, name: str) -> Project:
    """The rows under names of their own."""
    return Project(scan, tuple((f"{name}.{each}", Column(each)) for each in scan.schema.names))


def join(left: Node, right: Node, keys: tuple[str, ...] = ("k",), **outer: bool) -> Join:
    """Rows of equal keys, a second apart at most."""
    sides = [
        Side(tuple(f"{name}.{key}" for key in keys), ahead=1_000_000, outer=outer.get(name, False)) for name in "xy"
    ]
    return Join((named(left, "x"), named(right, "y")), tuple(sides))


def spread(found: Physical) -> list[tuple[str, ...] | None]:
    """The keys of all exchanges."""
    return [each.keys for each in found.exchanges()]


def test_each_input_of_a_join_is_spread_by_its_own_names_of_the_keys() -> None:
    found = plan(join(Scan(STREAM), Scan(STREAM), ("k", "g")))
    assert (found.depth, spread(found)) == (1, [("x.k", "x.g"), ("y.k", "y.g")])


def test_a_join_without_keys_and_one_in_order_meet_in_one_bucket() -> None:
    assert spread(plan(join(Scan(STREAM), Scan(STREAM), ()))) == [(), ()]
    assert spread(plan(OrderByTime(join(Scan(STREAM), Scan(STREAM))))) == [(), ()]


def test_an_aggregate_by_the_keys_of_a_join_stays_on_its_level_and_another_crosses() -> None:
    joined = join(Scan(STREAM), Scan(STREAM))
    by_key = Aggregate(joined, MINUTE, (("k", Column("x.k")),), (Aggregation("n", "count"),))
    assert plan(by_key).depth == 1
    by_other = Aggregate(joined, MINUTE, (("g", Column("x.g")),), (Aggregation("n", "count"),))
    assert crossings(plan(by_other)) == [(1, 2, ("g",))]


def test_rows_that_matched_nothing_have_no_keys_of_the_other_side() -> None:
    def over(joined: Join, column: str) -> int:
        return plan(Aggregate(joined, MINUTE, (("k", Column(column)),), (Aggregation("n", "count"),))).depth

    assert over(join(Scan(STREAM), Scan(STREAM), x=True), "x.k") == 1
    assert over(join(Scan(STREAM), Scan(STREAM), y=True), "x.k") == 2
    assert over(join(Scan(STREAM), Scan(STREAM), y=True), "y.k") == 1
    assert over(join(Scan(STREAM), Scan(STREAM), x=True, y=True), "x.k") == 2


def test_rows_are_counted_where_their_partition_is_together() -> None:
    inputs = (named(Scan(STREAM), "x"), named(Scan(STREAM), "y"))
    counted = RowsSide(("x.k", "x.g"), rows=5, partition=("x.k",))
    assert spread(plan(RowsJoin(inputs, (counted, RowsSide(("y.k", "y.g"), range=5))))) == [("x.k",), ("y.k",)]
    whole = RowsSide(("x.k", "x.g"), rows=5)
    assert spread(plan(RowsJoin(inputs, (whole, RowsSide(("y.k", "y.g")))))) == [(), ()]


def test_a_sequence_is_spread_by_its_keys() -> None:
    inputs = (named(Scan(STREAM), "x"), named(Scan(STREAM), "y"))
    assert spread(plan(Following(inputs, (("x.k",), ("y.k",)), "recent"))) == [("x.k",), ("y.k",)]


def test_columns_that_a_join_made_equal_say_in_either_way_how_rows_are_spread() -> None:
    joined = join(Scan(STREAM), Scan(STREAM))
    for column in ("x.k", "y.k"):
        third = Join((joined, named(Scan(STREAM), "z")), (Side((column,), ahead=1), Side(("z.k",), ahead=1)))
        assert (plan(third).depth, spread(plan(third))) == (1, [("x.k",), ("y.k",), ("z.k",)])
