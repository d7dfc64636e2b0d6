"""The query that the figures of update queues are made with, on short runs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.experiments.figures.updates.queue_staleness import expected
from millrace.experiments.figures.updates.update_queues import (
    APPEND,
    FIFO,
    GUARDED,
    IN_PLACE,
    PRINTED,
    SHED,
    EvenUpdates,
    KeyUpdates,
    QueueCase,
    SlowKeys,
    wrong,
)
from millrace.hosts.virtual.host import DeliveredRows
from millrace.kernel.elements import TIMESTAMP


def delivery(key: int, value: int, time: int) -> DeliveredRows:
    rows = {"k": [key], "v": [value], "ts": pa.array([time]).cast(TIMESTAMP)}
    return DeliveredRows(time, "mapped", pa.table(rows))


def test_one_key_is_as_stale_as_the_formula_says() -> None:
    found = QueueCase(EvenUpdates(1, 100), IN_PLACE, 5.0).measure()
    assert found["queue_staleness"] == pytest.approx(expected(5.0), rel=0.06)
    assert found["beyond_queue"] == pytest.approx(5.0, rel=0.1)
    assert (found["wrong"], found["peak"]) == (0, 1)


def test_what_keeps_up_is_never_stale_in_the_queue() -> None:
    found = QueueCase(EvenUpdates(10, 50), IN_PLACE, 0.5).measure()
    assert found["queue_staleness"] == 0.0
    assert found["results"] >= 49


@pytest.mark.slow
def test_queues_are_staler_in_their_order() -> None:
    ticks = EvenUpdates(10, 600)
    stale = {queue: QueueCase(ticks, queue, 5.0).measure()["staleness"] for queue in (IN_PLACE, FIFO, APPEND)}
    shed = QueueCase(ticks, SHED, 5.0, ", keep = 0.19").measure()["staleness"]
    assert stale[IN_PLACE] < stale[FIFO] < shed < stale[APPEND]


def test_keys_are_spaced_evenly_and_slow_ones_come_ten_times_more_seldom() -> None:
    updates = SlowKeys(10, 8, 1_000).updates()
    counts = np.bincount(updates.keys)
    assert len(updates.keys) == pytest.approx(1_000, abs=10)
    assert counts[:2].min() == pytest.approx(10 * counts[2:].max(), rel=0.1)
    gaps = np.diff(updates.came[updates.keys == 0])
    assert gaps.max() - gaps.min() <= 1


@pytest.mark.slow
def test_linecutting_gains_with_slow_keys() -> None:
    found = {queue: QueueCase(SlowKeys(10, 7, 600), queue, 3).measure() for queue in (IN_PLACE, PRINTED, GUARDED)}
    assert found[PRINTED]["queue_staleness"] < found[IN_PLACE]["queue_staleness"] / 1.5
    assert found[GUARDED]["queue_staleness"] < found[IN_PLACE]["queue_staleness"]
    assert not any(each["wrong"] for each in found.values())


def test_a_key_is_wrong_if_it_goes_back_or_does_not_end_with_the_newest() -> None:
    newest = {1: 5, 2: 7}
    good = [delivery(1, 4, 10), delivery(2, 7, 11), delivery(1, 5, 12)]
    assert wrong(good, newest) == 0
    assert wrong([*good[:2]], newest) == 1
    assert wrong([delivery(1, 3, 20), *good], newest) == 1
    assert wrong(good[1:2], newest) == 1


def test_the_newest_value_is_that_of_the_greatest_timestamp_and_of_the_last_of_equal_ones() -> None:
    updates = KeyUpdates(np.array([1, 2, 1, 1, 2]), np.array([5, 9, 7, 7, 8]), np.arange(5))
    assert updates.newest() == {1: 3, 2: 1}
