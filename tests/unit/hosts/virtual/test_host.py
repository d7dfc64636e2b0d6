from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.errors import RequestError
from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import VirtualRun
from millrace.language import parse_network
from millrace.testing import Rows, table

SECOND = 1_000_000
SCHEMA = {"v": pa.int32(), "ts": pa.timestamp("us", tz="UTC")}
SQL = """
CREATE STREAM main (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND FROM iterable;
CREATE STREAM control (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED {} FROM iterable;
CREATE QUERY q AS SELECT count(*) AS n FROM main UNION control [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts];
"""
ON_DEMAND = SQL.format("ETS ON DEMAND SKEW INTERVAL 1 SECOND")
MAIN = table(
    """
    arrive | v | ts
    1s     | 1 | 00:00:01
    11s    | 1 | 00:00:11
    30s    | 1 | 00:00:30
    """,
    SCHEMA,
)
CONTROL = table("arrive | v | ts \n 2s | 1 | 00:00:02", SCHEMA)


def run(sql: str, main: Rows = MAIN, control: Rows = CONTROL, **options: object) -> VirtualRun:
    feeds = {"main": [main.arriving()], "control": [control.arriving()]}
    found = VirtualRun(parse_network(sql), feeds=feeds, **options)  # type: ignore[arg-type]
    found.run()
    return found


def deliveries(found: VirtualRun) -> list[tuple[float, list[int]]]:
    return [(each.now / SECOND, each.rows.column("n").to_pylist()) for each in found.deliveries]


def test_an_ets_lets_a_window_out_at_the_very_moment_it_becomes_possible() -> None:
    # Control was at 2 s when the clock was at 2 s: with a skew of 1 s it has passed 10 s at 11 s, and 20 s at 21 s.
    assert deliveries(run(ON_DEMAND)) == [(11.0, [2]), (21.0, [1]), (41.0, [1])]


def test_without_an_ets_a_silent_stream_holds_everything_back_until_the_end() -> None:
    found = deliveries(run(SQL.format("ETS NONE")))
    assert {time for time, _ in found} == {30.0}
    assert [count for _, counts in found for count in counts] == [2, 1, 1]


def test_a_run_can_be_repeated_exactly() -> None:
    assert deliveries(run(ON_DEMAND)) == deliveries(run(ON_DEMAND))


def test_work_takes_the_time_it_costs() -> None:
    found = deliveries(run(ON_DEMAND, cost=Costs(row=250_000, punctuation=250_000), rows_per_step=1))
    assert [counts for _, counts in found] == [[2], [1], [1]]
    assert found[0][0] > 11.0


def test_a_coarse_tick_changes_times_and_not_answers() -> None:
    found = deliveries(run(ON_DEMAND, tick=5 * SECOND))
    assert [counts for _, counts in found] == [[2], [1], [1]]


def test_a_stream_must_say_when_its_rows_arrive() -> None:
    sql = "CREATE STREAM s (v INT) INTERNAL TIMESTAMP AS ts FROM iterable; CREATE QUERY q AS SELECT v FROM s;"
    with pytest.raises(RequestError, match='stream "s" does not say when its rows arrive'):
        VirtualRun(parse_network(sql), feeds={"s": [pa.table({"v": [1]})]}).run()


@pytest.mark.parametrize(
    ("strategy", "left_at"),
    [("dfs", [3, 6, 9, 12, 15, 18]), ("bfs", [7, 8, 9, 16, 17, 18]), ("rr", [13, 14, 15, 16, 17, 18])],
)
def test_results_leave_when_the_rules_of_the_strategy_say(strategy: str, left_at: list[int]) -> None:
    """Two paths of a filter and a projection, and a union: three rows on each path come together.

    Depth-first each row takes all three operators, breadth-first each path is followed through the union, and
    round-robin finishes both paths before it visits the union.
    """
    three = table("arrive | v | ts" + "\n 0s | 1 | 00:00:00" * 3, SCHEMA)
    streams = "".join(
        f"CREATE STREAM {name} (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;"
        for name in ("main", "control")
    )
    selects = " UNION ALL ".join(f"SELECT v FROM {name} WHERE v > 0" for name in ("main", "control"))
    query = f"CREATE QUERY q WITH (strategy = '{strategy}') AS {selects};"
    found = run(streams + query, three, three, cost=Costs(row=1), rows_per_step=1)
    began = found.deliveries[-1].now - 18
    assert [each.now - began for each in found.deliveries] == left_at
