"""The time of joined rows: the latest of their parts', unless what stands above them goes by another."""

from __future__ import annotations

import pytest

from millrace.kernel.joins.sides import JoinTime
from millrace.plan.nodes.aggregate_nodes import Aggregate, InstantWindow, PairWindow, TrailingWindow, Window
from millrace.plan.nodes.join_nodes import Join
from millrace.plan.nodes.node import walk
from millrace.plan.nodes.relational_nodes import Distinct, OrderByTime
from tests.unit.language.joins.test_join_binder import join_of
from tests.unit.language.scripts import names, refusal, root

MINUTE = 60_000_000
BOTH = "FROM control [RANGE 5 MINUTES] a, main1 [RANGE 5 MINUTES] b WHERE a.len = b.len"
ROWS = "FROM control [ROWS 5] a, main1 [ROWS 5] b WHERE a.len = b.len"
AFTER = "FROM control a JOIN main1 b ON b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"
LEFT = "FROM control [RANGE 5 MINUTES] a LEFT JOIN main1 [RANGE 5 MINUTES] b ON a.len = b.len"
CHAIN = (
    "FROM control [RANGE 5 MINUTES] a, main1 [RANGE 1 MINUTE] b, other [RANGE 2 MINUTES] c"
    " WHERE a.len = b.len AND b.srcIP = c.srcIP"
)


def aggregate_of(text: str) -> Aggregate:
    return next(each for each in reversed(list(walk(root(text)))) if isinstance(each, Aggregate))


@pytest.mark.parametrize(
    ("group", "time", "window"),
    [
        ("a.ts", 0, InstantWindow()),
        ("b.ts", 1, InstantWindow()),
        ("a.ts, a.len", 0, InstantWindow()),
        ("greatest(a.ts, b.ts)", "max", InstantWindow()),
        ("least(b.ts, a.ts)", "min", InstantWindow()),
        ("date_trunc('minute', a.ts)", 0, Window(MINUTE, MINUTE)),
        ("date_trunc('minute', b.ts), date_trunc('hour', a.ts)", 1, Window(MINUTE, MINUTE)),
        ("date_trunc('minute', greatest(a.ts, b.ts))", "max", Window(MINUTE, MINUTE)),
        ("date_trunc('minute', least(a.ts, b.ts)), b.len", "min", Window(MINUTE, MINUTE)),
        ("window(b.ts, '1 minute')", 1, Window(MINUTE, MINUTE)),
    ],
)
def test_groups_by_a_time_go_by_it(group: str, time: JoinTime, window: object) -> None:
    text = f"SELECT count(*) AS n {BOTH} GROUP BY {group}"
    assert aggregate_of(text).window == window
    assert join_of(text).time == time


@pytest.mark.parametrize(("by", "time"), [("", "max"), ("WA a.ts", 0), ("WA b.ts", 1), ("WA B.TS", 1)])
def test_a_window_after_an_aggregate_may_name_the_time_of_an_input(by: str, time: JoinTime) -> None:
    text = f"SELECT count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE {by}] {BOTH}"
    assert join_of(text).time == time
    assert aggregate_of(text).window == Window(MINUTE, MINUTE)


def test_groups_by_both_times_are_pairs() -> None:
    text = f"SELECT a.ts, b.ts, a.len, count(*) AS n {BOTH} GROUP BY b.ts, a.ts, a.len"
    assert aggregate_of(text).window == PairWindow("a.ts", "b.ts")
    assert [name for name, _ in aggregate_of(text).keys] == ["b.ts", "a.ts", "a.len"]
    assert join_of(text).joint
    assert names(text) == ["a_ts", "b_ts", "len", "n"]


def test_an_input_that_is_never_before_the_other_has_the_time_of_the_rows() -> None:
    text = f"SELECT b.ts, a.ts AS before, count(*) AS n {AFTER} GROUP BY b.ts, a.ts"
    assert aggregate_of(text).window == InstantWindow()
    assert (join_of(text).time, join_of(text).joint) == ("max", False)


def test_equal_times_are_the_time_of_the_rows_both() -> None:
    for column in ("a.ts", "b.ts"):
        text = f"SELECT {column} FROM control a JOIN main1 b ON a.ts = b.ts ORDER BY {column}"
        assert join_of(text).time == "max"
        joined = "FROM control a, main1 b WHERE a.ts = b.ts + INTERVAL 1 MINUTE"
        moved = f"SELECT {column}, count(*) AS n {joined} GROUP BY {column}"
        assert (join_of(moved).time, aggregate_of(moved).window) == ("max", InstantWindow())


def test_the_window_of_the_join_is_that_of_its_aggregate() -> None:
    found = aggregate_of("SELECT count(DISTINCT a.len) FROM control a, main1 b WHERE a.len = b.len WINDOW 10 MINUTES")
    assert found.window == TrailingWindow(10 * MINUTE)


@pytest.mark.parametrize(
    ("items", "order", "time"),
    [
        ("a.len", "ts", "max"),
        ("a.ts, b.ts", "ts", "max"),
        ("a.ts, b.ts", "a_ts", 0),
        ("a.ts, b.ts", "b.ts", 1),
        ("b.ts", "ts", 1),
        ("b.ts AS x", "x", 1),
        ("b.ts AS x", "ts", "max"),
        ("a.len", "greatest(b.ts, a.ts)", "max"),
        ("a.ts AS x, b.ts AS y", "least(x, y)", "min"),
    ],
)
def test_a_join_is_ordered_by_a_time_that_its_rows_have(items: str, order: str, time: JoinTime) -> None:
    text = f"SELECT {items} {BOTH} ORDER BY {order}"
    assert isinstance(root(text), OrderByTime)
    assert join_of(text).time == time


def test_results_of_a_join_keep_their_times_as_choices() -> None:
    inner = f"(SELECT a.ts AS t, b.ts AS u, b.len {BOTH} AND a.srcIP > 'x') AS j"
    assert join_of(f"SELECT t, count(*) AS n FROM {inner} WHERE len > 3 GROUP BY t").time == 0
    assert (
        join_of(f"SELECT count(*) FROM {inner.replace(' AS j', ' [RANGE 1 MINUTE SLIDE 1 MINUTE WA u] AS j')}").time
        == 1
    )
    assert join_of(f"SELECT t, u, count(*) AS n FROM {inner} GROUP BY t, u").joint
    assert join_of(f"SELECT t FROM {inner} ORDER BY t").time == 0


def test_a_join_of_a_join_goes_by_the_time_that_is_compared() -> None:
    text = (
        f"SELECT c.len FROM (SELECT a.ts AS t, b.len {BOTH}) AS j"
        " JOIN other c ON c.ts BETWEEN j.t AND j.t + INTERVAL 5 SECONDS"
    )
    below = next(each for each in walk(root(text)) if isinstance(each, Join))
    assert below.time == 0
    assert [side.ahead for side in join_of(text).sides] == [5_000_000, 0]


@pytest.mark.parametrize(("items", "time"), [("a.ts, b.len", 0), ("b.ts, b.len", 1), ("a.ts, b.ts", "max")])
def test_different_rows_go_by_a_time_that_they_show(items: str, time: JoinTime) -> None:
    text = f"SELECT DISTINCT {items} {BOTH}"
    assert isinstance(root(text), Distinct)
    assert join_of(text).time == time


def test_only_the_side_that_is_always_there_gives_an_outer_join_its_time() -> None:
    assert join_of(f"SELECT a.ts, count(*) AS n {LEFT} GROUP BY a.ts").time == 0
    assert "cannot be the time" in refusal(f"SELECT count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE WA b.ts] {LEFT}").fact


def test_a_pipeline_may_have_the_time_of_any_input() -> None:
    for column, times in (("a.ts", ["max", 1]), ("b.ts", [0, 0]), ("c.ts", [1, 0])):
        text = f"SELECT {column}, count(*) AS n {CHAIN} GROUP BY {column}"
        assert [each.time for each in walk(root(text)) if isinstance(each, Join)] == times


@pytest.mark.parametrize(
    ("text", "fact", "hint"),
    [
        (f"SELECT count(*) {BOTH}", "never ends on a join", "SLIDE 1 MINUTE WA a.ts], or group by a.ts"),
        (f"SELECT count(*) {ROWS}", "never ends on a join", "count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE]."),
        (f"SELECT count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] {BOTH}", "exists in several inputs", "a.ts or b.ts"),
        (f"SELECT count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE WA a.len] {BOTH}", '"a.len" cannot be the time', "WA a.ts"),
        (f"SELECT count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE WA c.ts] {BOTH}", '"c" is not an input', "inputs are a, b"),
        (f"SELECT count(*) [RANGE 1 MINUTE SLIDE 1 MINUTE WA a.ts] {ROWS}", '"a.ts" cannot be', "Leave WA out"),
        (f"SELECT a.len {BOTH} ORDER BY a.len", "only be ordered by its time", "ORDER BY ts"),
        (f"SELECT a.len {BOTH} ORDER BY b.ts DESC", "only be ordered by its time", "ORDER BY ts"),
        (f"SELECT b.ts {LEFT} ORDER BY ts", "only be ordered by its time", "ORDER BY"),
        (f"SELECT DISTINCT a.len {BOTH}", "DISTINCT without a window", "Select a.ts as well"),
        (f"SELECT *, count(*) {BOTH} GROUP BY a.ts", "* cannot be selected", "a.srcIP"),
        (f"SELECT b.len, count(*) {BOTH} GROUP BY a.ts", '"b.len" is neither grouped', "min(b.len)"),
    ],
)  # fmt: skip
def test_what_rows_of_a_join_cannot_go_by_is_refused(text: str, fact: str, hint: str) -> None:
    error = refusal(text)
    assert fact in error.fact
    assert error.hint and hint in error.hint
    assert error.place is not None


def test_a_rank_goes_by_the_time_of_the_input_that_it_is_parted_by() -> None:
    text = f"SELECT a.len, row_number() OVER (PARTITION BY {{}} ORDER BY b.len) AS place {BOTH}"
    for partition, time in (("a.ts, a.len", 0), ("b.ts", 1)):
        assert join_of(text.format(partition)).time == time
    assert "a rank without the window" in str(refusal(text.format("a.len")))


def test_the_latest_time_is_the_own_time_of_joined_rows_under_any_name() -> None:
    inner = f"SELECT a.len AS len, greatest(a.ts, b.ts) AS latest {BOTH}"
    ordered = root(f"{inner} ORDER BY latest")
    assert isinstance(ordered, OrderByTime) and join_of(f"{inner} ORDER BY latest").time == "max"
    counted = aggregate_of(f"SELECT count(*) AS n FROM ({inner}) [RANGE 1 MINUTE SLIDE 1 MINUTE WA latest]")
    assert counted.window == Window(MINUTE, MINUTE)
    further = f"SELECT c.len FROM ({inner}) s JOIN other c ON c.len = s.len AND c.ts BETWEEN s.latest AND s.latest"
    assert join_of(further).sides[0].ahead == 0
