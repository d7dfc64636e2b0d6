"""What the verdict says releases rows, releases them; less does not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.hosts.why.lag import Lag
from millrace.hosts.why.waits import Awaited, StreamLag
from millrace.kernel.clock import StandingClock
from millrace.kernel.elements import NO_BOUND
from millrace.kernel.graph.executor import Executor
from millrace.language import parse_network
from millrace.plan.physical.stages import Physical, physical

ORDERS = (
    "ORDERED",
    "DISORDER INTERVAL 3 MICROSECONDS",
    "ORDERED PARTITIONED BY (k)",
    "DISORDER INTERVAL 2 MICROSECONDS PARTITIONED BY (k)",
    "PUNCTUATED BY promised",
    "PUNCTUATED BY promised PARTITIONED BY (k)",
)
UNION = "CREATE QUERY q AS SELECT k, ts FROM a UNION ALL SELECT k, ts FROM b ORDER BY ts;"
OVER_UNION = """CREATE QUERY q AS SELECT count(*) AS n FROM (SELECT k, ts FROM a UNION ALL SELECT k, ts FROM b)
    [RANGE 10 MICROSECONDS SLIDE 10 MICROSECONDS WA ts];"""
MICROS = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Row:
    """A row of a stream, with what it promises where the stream is punctuated."""

    stream: str
    key: str
    time: int
    promised: int | None


rows = st.builds(
    Row, st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 40), st.one_of(st.none(), st.integers(0, 40))
)


@cache
def plan_of(sql: str) -> Physical:
    return physical(parse_network(sql))


def push(executor: Executor, row: Row, clock: int) -> None:
    columns = {
        "k": pa.array([row.key]),
        "ts": pa.array([row.time]).cast(MICROS),
        "promised": pa.array([row.promised], pa.int64()).cast(MICROS),
    }
    executor.push(row.stream, pa.RecordBatch.from_pydict(columns), clock)


def results(executor: Executor, clock: int) -> list[int]:
    """The times of the rows that leave."""
    executor.run(StandingClock(clock))
    return [int(time) for batches in executor.take(clock).values() for batch in batches for time in batch.times]


def fed(sql: str, arriving: list[Row]) -> Executor:
    executor = Executor(plan_of(sql).whole())
    for clock, row in enumerate(arriving):
        push(executor, row, clock)
    results(executor, len(arriving))
    return executor


def told(stream: StreamLag, awaited: Awaited, short: int) -> list[Row]:
    """The rows that the verdict asks a stream for, or by so much too early."""
    until = awaited.until - short
    keys = [str(part.values[0]) for part in stream.slowest if part.bound < awaited.until] or ["x"]
    if stream.promise is not None:
        # The row itself must be on time, and no more than its promise may release anything.
        return [Row(awaited.stream, key, 1_000, until) for key in keys]
    return [Row(awaited.stream, key, until + stream.disorder, None) for key in keys]


@pytest.mark.slow
@given(orders=st.tuples(st.sampled_from(ORDERS), st.sampled_from(ORDERS)), arriving=st.lists(rows, max_size=12))
def test_what_is_asked_for_releases_something_and_less_does_not(orders: tuple[str, str], arriving: list[Row]) -> None:
    columns = "(k STRING, ts TIMESTAMP, promised TIMESTAMP)"
    sql = "".join(
        f"CREATE STREAM {name} {columns} TIMESTAMP BY ts {order} FROM iterable;\n"
        for name, order in zip("ab", orders, strict=True)
    )
    for query in (UNION, OVER_UNION):
        lag = Lag.of(fed(sql + query, arriving), len(arriving), live=True)
        if not lag.waits:
            continue
        wait = lag.waits["q"]
        assert wait.held > 0
        for short, released in ((0, True), (1, False)):
            executor = fed(sql + query, arriving)
            for awaited in wait.awaited:
                assert awaited.bound < awaited.until
                for row in told(lag.streams[awaited.stream], awaited, short):
                    if short and row.promised is None and row.time < awaited.bound:
                        # Too late to say anything.
                        continue
                    push(executor, row, 100)
            # Windows leave with the last time in them; of a union the rows that were asked for may leave themselves.
            first = min(each.until for each in wait.awaited) - (query == OVER_UNION)
            assert any(time >= first for time in results(executor, 100)) == released, (query, str(lag))


@given(arriving=st.lists(rows, max_size=20))
def test_since_is_when_the_bound_last_moved(arriving: list[Row]) -> None:
    sql = "CREATE STREAM a (k STRING, ts TIMESTAMP, promised TIMESTAMP) TIMESTAMP BY ts ORDERED PARTITIONED BY (k)"
    sql += " FROM iterable; CREATE QUERY q AS SELECT k FROM a;"
    executor, moved, bound = Executor(plan_of(sql).whole()), NO_BOUND, NO_BOUND
    for clock, row in enumerate(arriving):
        push(executor, Row("a", row.key, row.time, None), clock)
        if executor.ingress["a"].bound > bound:
            moved, bound = clock, executor.ingress["a"].bound
    assert Lag.of(executor, 100, live=True).streams["a"].moved_at == moved
