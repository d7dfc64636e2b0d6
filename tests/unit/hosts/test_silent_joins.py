"""Joins and sequences of which one stream falls silent: what waits leaves as soon as its silence proves enough."""

from __future__ import annotations

import pytest

from millrace.testing import Bench

STREAMS = "".join(
    f"CREATE STREAM {name} (k STRING, {value} INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED"
    " ETS ON DEMAND SKEW INTERVAL 1 SECOND FROM iterable;\n"
    for name, value in (("a", "v"), ("b", "w"))
)
BAND = "FROM a x {} JOIN b y ON x.k = y.k AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS"


def cranked(query: str, *, after: str) -> list[tuple[object, ...]]:
    """What a query gives when b has one row, a has two, and then nothing comes for a while."""
    bench = Bench(f"{STREAMS} CREATE QUERY q AS {query};")
    bench.push("b", "k | w | ts \n p | 7 | 00:00:00")
    bench.push("a", "k | v | ts \n p | 1 | 00:00:02 \n q | 2 | 00:00:03")
    before = bench.results("q")
    bench.advance_time(after)
    return [tuple(row.values()) for row in [*before, *bench.results("q")]]


@pytest.mark.parametrize(("after", "expected"), [("7 seconds", []), ("10 seconds", [(1, None), (2, None)])])
def test_an_outer_row_leaves_when_the_silence_of_the_other_side_proves_that_it_met_nothing(
    after: str, expected: list[tuple[object, ...]]
) -> None:
    assert cranked(f"SELECT v, w {BAND.format('LEFT')}", after=after) == expected


@pytest.mark.parametrize(("after", "expected"), [("1 second", []), ("5 seconds", [(1, 7)])])
def test_a_row_is_paired_with_the_latest_before_it_when_no_later_one_can_come(
    after: str, expected: list[tuple[object, ...]]
) -> None:
    assert cranked("SELECT v, w FROM a x ASOF JOIN b y ON y.ts <= x.ts AND x.k = y.k", after=after) == expected
    chronicle = "SELECT v, w FROM b SEQ a ON a.k = b.k MODE CHRONICLE WITHIN INTERVAL 1 MINUTE"
    assert cranked(chronicle, after=after) == expected


@pytest.mark.parametrize("method", ["sync_filter", "filter_order", "adaptive"])
def test_rows_in_order_do_not_wait_for_a_stream_that_is_silent(method: str) -> None:
    both = "FROM a [RANGE 5 SECONDS] x, b [RANGE 5 SECONDS] y WHERE x.k = y.k"
    query = f"SELECT v, w {both} ORDER BY ts WITH (join = '{method}')"
    assert cranked(query, after="1 second") == []
    assert cranked(query, after="4 seconds") == [(1, 7)]


def test_a_count_over_a_join_closes_by_the_time_of_either_side() -> None:
    for time in ("x.ts", "y.ts", "greatest(x.ts, y.ts)"):
        both = "FROM a [RANGE 3 SECONDS] x, b [RANGE 3 SECONDS] y WHERE x.k = y.k"
        query = f"SELECT {time} AS t, count(*) AS n {both} GROUP BY 1"
        assert [row[-1] for row in cranked(query, after="10 seconds")] == [1], time


def test_an_inner_join_that_nobody_waits_for_asks_for_nothing() -> None:
    bench = Bench(f"{STREAMS} CREATE QUERY q AS SELECT v, w {BAND.format('')};")
    bench.push("a", "k | v | ts \n p | 1 | 00:00:02")
    bench.advance_time("1 minute")
    assert [bench.executor.ingress[name].enabled for name in "ab"] == [0, 0]
