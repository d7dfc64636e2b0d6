"""Latent timestamps: the operator that needs a time stamps rows, and nothing waits (000 section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

from millrace.hosts.why.lag import Lag
from millrace.kernel.elements import END_OF_TIME, TIME, Batch, Punctuation, user_table
from millrace.kernel.graph.executor import Executor
from millrace.kernel.progress.stamp import Stamp
from millrace.language import parse_network
from millrace.plan.physical.stages import physical
from millrace.testing import Bench

SECOND = 1_000_000
LATENT = "".join(f"CREATE STREAM {name} (k STRING, v INT) LATENT TIMESTAMP ETS NONE FROM iterable;\n" for name in "ab")
COUNTS = "SELECT window_start, window_end, count(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS] WHERE v > 0"


def bench(query: str, start: int = 0) -> Bench:
    """A network in which no stream ever counts as silent."""
    made = Bench(f"{LATENT} CREATE QUERY q AS {query};", start=start)
    made.silent()
    return made


def values(made: Bench) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in made.results("q")]


@pytest.mark.parametrize("options", ["", "WITH (baseline = 'in_order')"])
def test_a_union_passes_latent_rows_on_as_they_come(options: str) -> None:
    made = bench(f"SELECT v FROM a UNION SELECT v FROM b {options}")
    made.push("a", "k | v \n p | 1 \n p | 2")
    assert values(made) == [(1,), (2,)]


def test_a_window_closes_by_the_clock_though_its_stream_is_busy() -> None:
    made = bench(COUNTS, start=3 * SECOND)
    made.push("a", "k | v \n p | 1 \n p | 2")
    made.advance_time("6 seconds")
    assert values(made) == []
    made.advance_time("1 second")
    assert [row["n"] for row in made.results("q")] == [2]


@pytest.mark.parametrize("options", ["", "WITH (baseline = 'in_order')"])
def test_a_join_of_latent_streams_waits_for_neither(options: str) -> None:
    both = "FROM a [RANGE 5 SECONDS] x, b [RANGE 5 SECONDS] y WHERE x.k = y.k"
    made = bench(f"SELECT x.v, y.v AS w {both} {options}")
    made.push("a", "k | v \n p | 1")
    made.advance_time("5 seconds")
    made.push("b", "k | v \n p | 7")
    assert values(made) == [(1, 7)]
    made.advance_time("1 second")
    made.push("b", "k | v \n p | 8")
    assert values(made) == []


@dataclass
class SlowFilter:
    """A clock that a filter moves by two seconds per step."""

    time: int

    def now(self) -> int:
        return self.time

    def spend(self, node: str, rows: int, ets: bool = False) -> None:
        if node.startswith("filter") and rows:
            self.time += 2 * SECOND

    def compare(self, node: str, pairs: int) -> None:
        """Nothing."""


@pytest.mark.parametrize(("kind", "start"), [("LATENT TIMESTAMP", 10), ("INTERNAL TIMESTAMP AS ts", 0)])
def test_the_operator_that_needs_a_time_stamps_and_not_the_edge_of_the_stream(kind: str, start: int) -> None:
    network = parse_network(f"CREATE STREAM a (k STRING, v INT) {kind} FROM iterable; CREATE QUERY q AS {COUNTS};")
    executor, clock = Executor(physical(network).whole()), SlowFilter(9 * SECOND)
    executor.push("a", pa.record_batch({"v": pa.array([1], pa.int32())}), clock.now())
    executor.run(clock)
    executor.edges.end("a")
    executor.run(clock)
    (result,) = user_table(executor.take(clock.now())["q"]).to_pylist()
    assert result["n"] == 1 and result["window_start"].timestamp() == start


def test_stamps_do_not_go_back_after_a_restart_at_an_earlier_clock() -> None:
    made = bench(COUNTS, start=25 * SECOND)
    made.push("a", "k | v \n p | 1")
    made.restart()
    made.clock.time = 3 * SECOND
    made.push("a", "k | v \n p | 2")
    made.advance_time(30 * SECOND)
    assert [(row["window_start"].timestamp(), row["n"]) for row in made.results("q")] == [(20, 2)]


def test_only_the_end_of_time_passes_a_stamp() -> None:
    stamp = Stamp()
    stamp.on_time(7)
    (rows, bound) = stamp.on_batch(0, Batch(pa.record_batch({"v": [1, 2], TIME: [100, 3]})))
    assert isinstance(rows, Batch) and rows.times.tolist() == [7, 7] and bound == Punctuation(7)
    assert list(stamp.on_punctuation(Punctuation(50))) == []
    assert list(stamp.on_punctuation(Punctuation(END_OF_TIME))) == [Punctuation(END_OF_TIME)]


def test_a_latent_row_in_a_union_with_a_stream_that_has_times_waits_for_that_stream_alone() -> None:
    timed = "CREATE STREAM c (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;"
    united = "SELECT v FROM a UNION SELECT v FROM c WITH (baseline = 'in_order')"
    made = Bench(f"{LATENT} {timed} CREATE QUERY q AS {united};", start=SECOND)
    made.silent()
    made.push("a", "k | v \n p | 1")
    assert values(made) == []
    made.push("c", "v | ts \n 2 | 00:00:01")
    assert values(made) == [(1,), (2,)]


def test_why_names_the_latent_stream_and_the_clock_that_releases() -> None:
    made = bench(COUNTS, start=3 * SECOND)
    made.push("a", "k | v \n p | 1")
    (wait,) = Lag.of(made.executor, made.now, live=True, silent={}).waits.values()
    assert [(each.stream, each.ets_at) for each in wait.awaited] == [("a", 10 * SECOND)]
