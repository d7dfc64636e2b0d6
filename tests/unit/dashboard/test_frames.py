"""A run as frames: rates, what holds a query back, disorder in words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from millrace.dashboard.frames import HELD_AFTER, Observation, frame_of
from millrace.hosts.report import Report
from millrace.hosts.why.lag import Lag
from millrace.hosts.why.waits import Awaited, StreamLag, Wait
from millrace.kernel.elements import NO_BOUND
from millrace.kernel.latency import Latency
from millrace.kernel.metrics import OperatorMetrics, SourceMetrics
from millrace.kernel.progress.order import PartitionState

NOW = 1_700_000_000_000_000
SOURCE = SourceMetrics(100, 2, 1, 5, NOW - 9, NOW - 4, 0, moved_at=NOW, seen_at=NOW)
STREAM = StreamLag(NOW - 9, NOW, NOW - 4, NOW, "external", "external time ts", disorder=5_000_000)


def seen(moved_at: int = NOW, now: int = NOW, **changed: Any) -> Observation:
    stream = replace(STREAM, moved_at=moved_at, seen_at=moved_at)
    waits = {"q": Wait(7, (Awaited("s", "", NOW + 1, NOW - 9, moved_at),))}
    report = Report({"s": SOURCE}, {"q": 10}, now=now, operators={"join#1": OperatorMetrics(("q",), 50, 10)})
    return Observation(replace(report, **changed), Lag(now, True, {"s": stream}, waits))


def test_rates_are_counted_from_an_earlier_frame() -> None:
    first = frame_of(seen(), {}, None)
    assert first["streams"]["s"]["rate"] is None
    later = replace(SOURCE, received=160)
    second = frame_of(seen(now=NOW + 2_000_000, sources={"s": later}, results={"q": 16}), {}, first)
    assert second["streams"]["s"]["rate"] == 30.0
    assert second["queries"]["q"]["rate"] == 3.0


def test_a_rate_is_that_between_two_commits_however_long_ago_the_last_one_is() -> None:
    first, later = frame_of(seen(), {}, None), replace(SOURCE, received=160)
    second = seen(now=NOW + 2_000_000, sources={"s": later})
    late = replace(second, report=replace(second.report, now=NOW + 60_000_000))
    assert frame_of(late, {}, first)["streams"]["s"]["rate"] == 30.0


def test_a_query_is_held_back_when_the_stream_it_waits_for_stands_still() -> None:
    (flowing, still) = (frame_of(seen(NOW - since), {}, None)["queries"]["q"]["wait"] for since in (0, HELD_AFTER))
    assert (flowing["stuck"], still["stuck"]) == (False, True)
    assert still["stream"] == "s" and 'waits for stream "s"' in still["sentence"]
    assert any("releases the first of them" in line for line in still["lines"])


def test_a_partition_that_stands_still_holds_back_while_others_flow() -> None:
    def held(silent: PartitionState) -> tuple[Any, Any]:
        flowing = PartitionState(("b",), NOW, NOW, NOW + 5)
        whole = seen(moved_at=NOW - 2 * HELD_AFTER)
        stream = replace(STREAM, partitions=("k",), slowest=(silent, flowing), parts=2)
        frame = frame_of(replace(whole, lag=replace(whole.lag, streams={"s": stream})), {}, None)
        wait = frame["queries"]["q"]["wait"]
        assert "partition k = a" in wait["sentence"]
        return wait["stuck"], frame["streams"]["s"]["parts"][0]["heard"]

    assert held(PartitionState(("a",), NOW - 9, NOW - HELD_AFTER, NOW - 9)) == (True, HELD_AFTER / 1e6)
    assert held(PartitionState(("a",), NOW - 9, NOW - 7, NOW - 9)) == (False, 7e-6)
    # One that was declared, and has sent no row since the run began.
    assert held(PartitionState(("a",), NO_BOUND, NOW - HELD_AFTER, NO_BOUND)) == (True, None)


def test_what_holds_a_query_back_is_judged_at_the_moment_of_its_sentence_and_not_later() -> None:
    # A micro-batch on Spark that takes long: the clock goes on, and what waits is known as of the last commit.
    between = seen(NOW - HELD_AFTER // 2)
    frame = frame_of(replace(between, report=replace(between.report, now=NOW + 9 * HELD_AFTER)), {}, None)
    wait = frame["queries"]["q"]["wait"]
    assert (wait["stuck"], wait["since"], frame["age"]) == (False, HELD_AFTER / 2e6, 9 * HELD_AFTER / 1e6)
    assert frame["streams"]["s"]["heard"] == 0
    assert " for 1 s" in wait["sentence"]


def test_operators_have_the_names_of_the_picture() -> None:
    operators = {"join#1": OperatorMetrics(("q",), 50, 10), "join#2": OperatorMetrics(("q",), 5, 1)}
    found = frame_of(seen(operators=operators), {"join#1": "join#0", "join#2": "join#0"}, None)["operators"]
    assert {name: (each["rows_in"], each["rows_out"]) for name, each in found.items()} == {"join#0": (55, 11)}


def test_disorder_is_said_in_a_sentence_with_what_was_declared() -> None:
    disorder = Latency()
    disorder.add(np.array([0] * 999 + [1_200_000]))
    found = frame_of(seen(sources={"s": replace(SOURCE, disorder=disorder)}), {}, None)["streams"]["s"]["disorder"]
    assert found["sentence"] == "99.9 % came in order; you declared 5 s"
    assert found["max"] == 1.2 and sum(count for _, count in found["bars"]) == 1000
    assert found["advice"].startswith("DISORDER INTERVAL 1 SECOND would be enough")


def test_a_frame_is_plain_json() -> None:
    assert json.loads(json.dumps(frame_of(seen(), {}, None)))["queries"]["q"]["rows"] == 10
