"""Silent streams of every contract, on the bench: who is spoken for, when, and what it releases."""

from __future__ import annotations

import pytest

from millrace.testing import Bench

COLUMNS = "(k STRING, v INT, ts TIMESTAMP)"
COUNT = "CREATE QUERY q AS SELECT count(*) AS n FROM {} [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts];"


def bench(clauses: str, streams: tuple[str, ...] = ("a",)) -> Bench:
    declared = [f"CREATE STREAM {name} {COLUMNS} {clauses} FROM iterable;" for name in streams]
    return Bench("".join(declared) + COUNT.format(" UNION ".join(streams)))


def counts(bench: Bench) -> list[int]:
    return [row["n"] for row in bench.results("q")]


def test_a_lull_closes_the_last_window_of_a_stream_that_has_fallen_silent() -> None:
    a = bench("TIMESTAMP BY ts ORDERED ETS ON DEMAND LULL INTERVAL 5 SECONDS")
    a.advance_time("8 seconds")
    a.push("a", "k | v | ts \n x | 1 | 00:00:03")
    a.advance_time("6 seconds")
    assert counts(a) == []
    a.advance_time("1 second")
    assert counts(a) == [1]
    assert a.metrics().sources["a"].enabled == 1


def test_a_lull_speaks_for_a_stream_that_has_not_sent_a_row() -> None:
    both = bench("TIMESTAMP BY ts ORDERED ETS ON DEMAND LULL INTERVAL 5 SECONDS", ("a", "b"))
    both.advance_time("8 seconds")
    both.push("a", "k | v | ts \n x | 1 | 00:00:03")
    both.advance_time("7 seconds")
    assert counts(both) == [1]
    assert both.metrics().sources["b"].bound == 10_000_000


@pytest.mark.parametrize("order", ["DISORDER 3 ROWS", "PUNCTUATED BY v = 2", "ORDERED PARTITIONED BY (k)"])
def test_a_skew_speaks_for_a_stream_of_any_order(order: str) -> None:
    a = bench(f"TIMESTAMP BY ts {order} ETS ON DEMAND SKEW INTERVAL 1 SECOND")
    a.push("a", "k | v | ts \n x | 1 | 00:00:08 \n x | 1 | 00:00:09")
    a.advance_time("1.9 seconds")
    assert counts(a) == []
    a.advance_time("0.1 seconds")
    assert counts(a) == [2]


def test_a_slow_partition_holds_its_stream_back_until_it_is_spoken_for() -> None:
    a = bench("TIMESTAMP BY ts ORDERED PARTITIONED BY (k) ETS ON DEMAND SKEW INTERVAL 1 SECOND")
    a.push("a", "k | v | ts \n x | 1 | 00:00:04 \n y | 1 | 00:00:05 \n x | 1 | 00:00:30")
    assert counts(a) == []
    a.advance_time("5 seconds")
    assert counts(a) == []
    a.advance_time("1 second")
    assert counts(a) == [2]


def test_a_beat_speaks_for_a_silent_stream_whether_or_not_someone_waits() -> None:
    a = bench("TIMESTAMP BY ts ORDERED ETS EVERY INTERVAL 4 SECONDS SKEW INTERVAL 1 SECOND")
    a.push("a", "k | v | ts \n x | 1 | 00:00:09")
    a.advance_time("3 seconds")
    assert counts(a) == []
    a.advance_time("1 second")
    assert counts(a) == [1]
    a.advance_time("4 seconds")
    assert a.metrics().sources["a"].bound == 16_000_000
    assert a.metrics().sources["a"].enabled == 2
