"""The query that the figures of update queues are made with, on short runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from millrace.experiments.figures import auto_switch, linecutting, overload, queries_together
from millrace.experiments.figures.auto_switch import AUTO, Phases
from millrace.experiments.figures.overload import MIXED, UNIFORM, Overload
from millrace.experiments.figures.queries_together import Together
from millrace.experiments.figures.staleness_app_queue import expected
from millrace.experiments.figures.update_queues import (
    APPEND,
    FIFO,
    GUARDED,
    IN_PLACE,
    PRINTED,
    SHED,
    QueueCase,
    Spaced,
    Ticks,
    Updates,
    wrong,
)
from millrace.hosts.virtual.host import DeliveredRows
from millrace.plan.nodes.endpoints import TIMESTAMP


def delivery(key: int, value: int, time: int) -> DeliveredRows:
    rows = {"k": [key], "v": [value], "ts": pa.array([time]).cast(TIMESTAMP)}
    return DeliveredRows(time, "mapped", pa.table(rows))


def test_one_key_is_as_stale_as_the_formula_says() -> None:
    found = QueueCase(Ticks(1, 100), IN_PLACE, 5.0).outcome()
    assert found.queue_staleness == pytest.approx(expected(5.0), rel=0.06)
    assert found.staleness - found.queue_staleness == pytest.approx(5.0, rel=0.1)
    assert (found.wrong, found.peak) == (0, 1)


def test_what_keeps_up_is_never_stale_in_the_queue() -> None:
    found = QueueCase(Ticks(10, 50), IN_PLACE, 0.5).outcome()
    assert found.queue_staleness == 0.0
    assert found.results >= 49


@pytest.mark.slow
def test_queues_are_staler_in_their_order() -> None:
    ticks = Ticks(10, 600)
    stale = {queue: QueueCase(ticks, queue, 5.0).outcome().staleness for queue in (IN_PLACE, FIFO, APPEND)}
    shed = QueueCase(ticks, SHED, 5.0, keep=0.19).outcome().staleness
    assert stale[IN_PLACE] < stale[FIFO] < shed < stale[APPEND]


def test_keys_are_spaced_evenly_and_slow_ones_come_ten_times_more_seldom() -> None:
    updates = Spaced(10, 8, 1_000).updates()
    counts = np.bincount(updates.keys)
    assert len(updates.keys) == pytest.approx(1_000, abs=10)
    assert counts[:2].min() == pytest.approx(10 * counts[2:].max(), rel=0.1)
    gaps = np.diff(updates.came[updates.keys == 0])
    assert gaps.max() - gaps.min() <= 1


@pytest.mark.slow
def test_linecutting_gains_with_slow_keys() -> None:
    found = {queue: QueueCase(Spaced(10, 7, 600), queue, 3).outcome() for queue in (IN_PLACE, PRINTED, GUARDED)}
    assert found[PRINTED].queue_staleness < found[IN_PLACE].queue_staleness / 1.5
    assert found[GUARDED].queue_staleness < found[IN_PLACE].queue_staleness
    assert not any(each.wrong for each in found.values())


def test_a_curve_turns_where_it_begins_to_fall_and_where_it_rises_again() -> None:
    assert linecutting.turns({0: 1.0, 1: 2.0, 2: 1.0, 3: 1.5}) == 2
    assert linecutting.turns({0: 1.0, 1: 1.0, 2: 1.01}) == 0


@pytest.mark.slow
def test_an_overloaded_queue_holds_a_row_a_key_and_ends_with_the_newest_value_of_each() -> None:
    case = QueueCase(Overload(UNIFORM, 10, keys=20), IN_PLACE, 1 / overload.SERVED, step=None, look=0.47)
    updates = case.source.updates()
    assert (updates.stamped < updates.came).mean() == pytest.approx(overload.UNORDERED, abs=0.03)
    found = case.outcome()
    assert found.peak <= 20
    assert 0 < found.p99 <= 20 / overload.SERVED
    assert found.wrong == 0
    assert replace(case, queue=APPEND).outcome().wrong > 0


@pytest.mark.slow
def test_whole_batches_enter_a_queue_as_rows_one_by_one_would() -> None:
    case = QueueCase(Overload(MIXED, 5, keys=50), GUARDED, 1 / overload.SERVED, step=None)
    batches, rows = case.outcome(), replace(case, step=1).outcome()
    assert batches.staleness == rows.staleness > 0
    assert (batches.results, batches.peak, batches.wrong) == (rows.results, rows.peak, 0)


def test_in_the_mix_a_fifth_of_the_keys_is_fast() -> None:
    counts = np.bincount(Overload(MIXED, 200).updates().keys, minlength=overload.KEYS)
    assert counts[:200].min() > counts[200:].max()


def test_a_key_is_wrong_if_it_goes_back_or_does_not_end_with_the_newest() -> None:
    newest = {1: 5, 2: 7}
    good = [delivery(1, 4, 10), delivery(2, 7, 11), delivery(1, 5, 12)]
    assert wrong(good, newest) == 0
    assert wrong([*good[:2]], newest) == 1
    assert wrong([delivery(1, 3, 20), *good], newest) == 1
    assert wrong(good[1:2], newest) == 1


def test_the_newest_value_is_that_of_the_greatest_timestamp_and_of_the_last_of_equal_ones() -> None:
    updates = Updates(np.array([1, 2, 1, 1, 2]), np.array([5, 9, 7, 7, 8]), np.arange(5))
    assert updates.newest() == {1: 3, 2: 1}


@pytest.mark.slow
def test_queries_together_are_less_stale_than_with_a_share_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries_together, "EVERY", 4.0)
    together = Together(at_once=True, seconds=48.0).outcome()
    shared = Together(at_once=False, slower=4, seconds=48.0).outcome()
    assert together.staleness < shared.staleness
    assert together.staleness == pytest.approx(sum(together.parts))
    assert together.wrong == shared.wrong == 0


@pytest.mark.slow
def test_a_queue_switches_with_the_load() -> None:
    found = Phases(AUTO, seconds=30.0).outcome()
    assert found.switches == len(auto_switch.PHASES) - 1
    assert found.parts[0] == 1.0
    assert max(found.parts[1], found.parts[3]) < 0.5
