"""Where plans are cut: which operators stay on a level, and which need rows to cross to the next."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from millrace.kernel.expressions import Column
from millrace.kernel.progress import TimeContract
from millrace.plan.levels import Crossing
from millrace.plan.nodes import (
    SEQUENCE,
    Aggregate,
    Aggregation,
    Connector,
    InstantWindow,
    Network,
    Node,
    OrderByTime,
    Project,
    Query,
    Rank,
    Scan,
    SessionWindow,
    Sink,
    Stream,
    Union,
    Window,
)
from millrace.plan.stages import Physical, physical

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
    return physical(Network((Query("q", root, Sink("q", Connector("memory")), options),)))


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
