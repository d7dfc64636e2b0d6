"""Enabling timestamps: the formulas on one edge, and silent streams of every contract on the bench."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.kernel.clock import ReplayClock
from millrace.kernel.elements import END_OF_TIME
from millrace.kernel.progress.ets import beats, clock_of_ets, ets_at, next_beat
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.time_contract import EtsKind, TimeContract
from millrace.language import parse_network
from millrace.testing import Bench

TIMESTAMP = pa.timestamp("us", tz="UTC")
COLUMNS = "(k STRING, v INT, ts TIMESTAMP)"
COUNT = "CREATE QUERY q AS SELECT count(*) AS n FROM {} [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts];"


def rows(*times: int | None) -> pa.RecordBatch:
    return pa.record_batch({"ts": pa.array(times, pa.int64()).cast(TIMESTAMP)})


def external(disorder: int = 0, skew: int | None = None, lull: int | None = None) -> Ingress:
    ets: EtsKind = "none" if skew is None and lull is None else "on_demand"
    return Ingress(TimeContract("external", "ts", disorder, ets, skew, lull=lull))


def test_an_external_ets_is_the_last_time_plus_the_silence_less_the_skew() -> None:
    ingress = external(disorder=2, skew=3)
    assert ets_at(ingress, 1_000) is None, "nothing is known of a stream that never spoke"
    ingress.admit(rows(50), now=1_000)
    assert ingress.bound == 48
    assert ets_at(ingress, 1_001) is None, "it would not improve the bound"
    assert ets_at(ingress, 1_010) == 57
    assert clock_of_ets(ingress, 57) == 1_010


def test_an_external_stream_without_skew_is_never_spoken_for() -> None:
    ingress = external()
    ingress.admit(rows(50), now=0)
    assert ets_at(ingress, 10**9) is None
    assert clock_of_ets(ingress, 60) is None


def test_a_lull_lets_a_silent_stream_come_so_close_to_the_clock_though_it_never_spoke() -> None:
    ingress = external(lull=30)
    assert ets_at(ingress, 1_000) == 970
    assert clock_of_ets(ingress, 980) == 1_010
    ingress.raise_bound(970)
    assert ets_at(ingress, 1_000) is None, "it would not improve the bound"


@pytest.mark.parametrize("partitions", [(), ("ts",)])
def test_silence_never_releases_what_only_the_end_releases(partitions: tuple[str, ...]) -> None:
    ingress = Ingress(TimeContract("external", "ts", 0, "on_demand", lull=30, partitions=partitions))
    ingress.admit(rows(50), now=1_000)
    assert clock_of_ets(ingress, 60) == (1_030 if partitions else 90)
    assert clock_of_ets(ingress, END_OF_TIME) is None


def test_of_skew_and_lull_the_better_one_speaks() -> None:
    ingress = external(skew=5, lull=30)
    ingress.admit(rows(900), now=1_000)
    assert ets_at(ingress, 1_010) == 980, "by its own pace the stream is at 905, by the lull at 980"
    assert clock_of_ets(ingress, 1_000) == 1_030
    ingress.admit(rows(1_030), now=1_020)
    assert ets_at(ingress, 1_040) == 1_045, "by the lull it is at 1010 only"
    assert clock_of_ets(ingress, 1_100) == 1_095


def test_a_partitioned_stream_is_spoken_for_at_the_pace_of_its_slowest_partition() -> None:
    contract = TimeContract("external", "ts", 0, "on_demand", 5, partitions=("k",))
    ingress = Ingress(contract)
    for now, key, time in ((100, "a", 90), (110, "b", 50), (120, "a", 110)):
        ingress.admit(rows(time).append_column("k", pa.array([key])), now)
    assert ingress.bound == 90, "it was there before the slow partition turned up"
    assert ets_at(ingress, 150) is None, "the slow one is at 50 + 40 - 5"
    assert ets_at(ingress, 160) == 95
    assert clock_of_ets(ingress, 95) == 160


def test_the_clock_of_a_replayed_stream_is_the_replayed_time() -> None:
    # It was 100 when the host's clock was 5000, and goes on at a quarter of its speed.
    clock = ReplayClock(origin=100, began=5_000, speed=0.25)
    lulled = Ingress(TimeContract("external", "ts", 0, "on_demand", lull=10))
    paced = Ingress(TimeContract("external", "ts", 0, "on_demand", 5))
    parted = Ingress(TimeContract("external", "ts", 0, "on_demand", 5, partitions=("k",)))
    beating = Ingress(TimeContract("external", "ts", 0, "periodic", every=20, lull=10))
    for ingress in (lulled, paced, parted, beating):
        ingress.replay(clock)
        ingress.admit(rows(90).append_column("k", pa.array(["a"])), now=5_000)
    assert ets_at(lulled, 5_080) == 110 and clock_of_ets(lulled, 110) == 5_080
    assert ets_at(paced, 5_080) == 105 and clock_of_ets(paced, 105) == 5_080
    assert ets_at(parted, 5_080) == 105 and clock_of_ets(parted, 105) == 5_080
    assert list(beats(beating, 5_000)) == [] and next_beat(beating) == 5_080
    assert list(beats(beating, 5_079)) == [] and list(beats(beating, 5_081)) == [5_080]
    assert clock_of_ets(beating, 111) == 5_160, "at the beat of 140"
    stamped = Ingress(TimeContract("internal", "at", ets="on_demand"))
    stamped.replay(clock)
    stamped.admit(pa.record_batch({"n": [1]}), now=5_000)
    assert ets_at(stamped, 5_080) == 5_080, "the system's own stamps are by the host's clock"


@given(st.floats(1e-3, 1e4), st.integers(0, 10**15), st.integers(0, 10**11))
def test_what_is_not_due_yet_is_later_than_the_replayed_time(speed: float, origin: int, elapsed: int) -> None:
    clock = ReplayClock(origin, 1_700_000_000_000_000, speed)
    now = clock.began + elapsed
    assert clock.when(clock.at(now)) <= now, "so a row above it alone can be due later"
    assert clock.due(np.array([origin + elapsed])).tolist() == [clock.when(origin + elapsed)]


def test_periodic_beats_are_due_at_multiples_of_their_interval() -> None:
    ingress = Ingress(TimeContract("internal", "at", ets="periodic", every=10))
    assert list(beats(ingress, 23)) == []
    assert ingress.next_beat == 30
    assert list(beats(ingress, 29)) == []
    assert list(beats(ingress, 30)) == [30]
    assert list(beats(ingress, 65)) == [60], "one that is missed is made up for by the last"
    assert list(beats(ingress, 95, every_one=True)) == [70, 80, 90]
    assert ingress.next_beat == 100


def test_a_shorter_interval_takes_effect_before_the_last_beat_of_a_longer_one() -> None:
    ingress = Ingress(TimeContract("internal", "at", ets="periodic", every=3_600))
    assert list(beats(ingress, 10)) == [] and ingress.next_beat == 3_600
    shorter = Ingress(TimeContract("internal", "at", ets="periodic", every=10))
    shorter.restore(ingress.save())
    assert list(beats(shorter, 15)) == [] and list(beats(shorter, 21)) == [20]


def test_the_ets_of_an_internal_stream_is_the_clock() -> None:
    ingress = Ingress(TimeContract("internal", "at", ets="on_demand"))
    ingress.admit(pa.record_batch({"n": [1]}), now=100)
    assert ets_at(ingress, 130) == 130


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


def test_partitions_that_have_sent_nothing_do_not_say_how_far_a_stream_was_read() -> None:
    """Found by the simulator: a first chunk without any time, of a stream with declared partitions, ended the run."""
    sql = """CREATE STREAM s (j INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED PARTITIONED BY (j) VALUES (0, 1)
      ETS ON DEMAND SKEW INTERVAL 30 SECONDS FROM iterable;
    CREATE QUERY q AS SELECT j FROM s;"""
    ingress = Ingress(parse_network(sql).streams()[0].time, live=True)
    schema = pa.schema([("j", pa.int32()), ("ts", pa.timestamp("us", tz="UTC"))])
    ingress.admit(pa.RecordBatch.from_pylist([{"j": 0, "ts": None}], schema), 100)
    assert ingress.reached(100) is None
    ingress.admit(pa.RecordBatch.from_pylist([{"j": 0, "ts": 90}], schema), 110)
    assert ingress.reached(110) == 90
