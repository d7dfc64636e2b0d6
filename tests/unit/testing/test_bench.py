from __future__ import annotations

import pytest

from millrace.errors import RequestError
from millrace.testing import Bench

LINKS = """
CREATE STREAM main (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW INTERVAL 1 SECOND FROM iterable;
CREATE STREAM control (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED {ets} FROM iterable;
CREATE QUERY q AS SELECT count(*) AS n FROM main UNION control [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts];
"""
ON_DEMAND = LINKS.format(ets="ETS ON DEMAND SKEW INTERVAL 1 SECOND")


def counts(bench: Bench) -> list[int]:
    return [row["n"] for row in bench.results("q")]


def test_a_window_waits_for_a_silent_stream_that_may_not_be_spoken_for() -> None:
    bench = Bench(LINKS.format(ets="ETS NONE"))
    bench.push("control", "v | ts \n 1 | 00:00:01")
    bench.push("main", "v | ts \n 1 | 00:00:02 \n 1 | 00:00:11")
    bench.advance_time("1 hour")
    assert counts(bench) == []
    bench.end("control")
    assert counts(bench) == [2, 1]


def test_an_ets_releases_a_window_when_silence_has_lasted_long_enough() -> None:
    bench = Bench(ON_DEMAND)
    bench.push("control", "v | ts \n 1 | 00:00:01")
    bench.push("main", "v | ts \n 1 | 00:00:02 \n 1 | 00:00:11")
    bench.advance_time(9_999_999)
    assert counts(bench) == []
    bench.advance_time(10_000_000)
    assert counts(bench) == [2]
    assert bench.metrics().sources["control"].enabled == 1


def test_a_stream_pushed_at_this_moment_is_not_silent() -> None:
    bench = Bench(ON_DEMAND)
    bench.push("main", "v | ts \n 1 | 00:00:01")
    bench.push("control", "v | ts \n 1 | 00:00:01")
    bench.advance_time("5 seconds")
    bench.push("main", "v | ts \n 1 | 00:00:11")
    assert counts(bench) == []
    bench.advance_time("4999999 microseconds")
    assert counts(bench) == []
    bench.advance_time("1 microsecond")
    assert counts(bench) == [2]


def test_no_ets_is_made_for_streams_that_are_not_named_silent() -> None:
    bench = Bench(ON_DEMAND)
    bench.silent("main")
    bench.push("control", "v | ts \n 1 | 00:00:01")
    bench.push("main", "v | ts \n 1 | 00:00:11")
    bench.advance_time("1 minute")
    assert counts(bench) == []
    bench.silent("main", "control")
    bench.advance_time("0 seconds")
    assert counts(bench) == [1, 1]


def test_arrivals_crank_the_clock() -> None:
    bench = Bench(ON_DEMAND, start=1_000_000)
    bench.push("main", "arrive | v | ts \n 0s | 1 | 00:00:01 \n 2.5s | 1 | 00:00:03")
    assert bench.now == 3_500_000


def test_a_window_goes_on_after_a_restart() -> None:
    bench = Bench(ON_DEMAND)
    for second in range(1, 4):
        bench.push("main", f"v | ts \n 1 | 00:00:0{second}")
        bench.restart()
    bench.end()
    assert counts(bench) == [3]


@pytest.mark.parametrize(
    ("wrong", "fact"),
    [
        (lambda bench: bench.push("side", []), 'no query reads a stream "side"'),
        (lambda bench: bench.results("r"), 'there is no query "r"'),
        (lambda bench: bench.advance_time(-1), "the clock does not go back"),
        (lambda bench: bench.silent("side"), 'no query reads a stream "side"'),
    ],
)
def test_what_cannot_be_is_refused(wrong: object, fact: str) -> None:
    with pytest.raises(RequestError, match=fact):
        wrong(Bench(ON_DEMAND))  # type: ignore[operator]
