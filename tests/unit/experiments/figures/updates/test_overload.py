"""Many keys, several queries, and a load that changes, on short runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from millrace.experiments.figures.updates.overload import (
    AUTO,
    KEYS,
    MIXED,
    PHASES,
    QUERIES,
    SERVED,
    UNIFORM,
    UNORDERED,
    OverloadUpdates,
    PhasesCase,
    QueriesCase,
)
from millrace.experiments.figures.updates.update_queues import APPEND, GUARDED, IN_PLACE, QueueCase


@pytest.mark.slow
def test_an_overloaded_queue_holds_a_row_a_key_and_ends_with_the_newest_value_of_each() -> None:
    case = QueueCase(OverloadUpdates(UNIFORM, 10, keys=20), IN_PLACE, 1 / SERVED, step=None, look=0.47)
    updates = case.source.updates()
    assert (updates.stamped < updates.came).mean() == pytest.approx(UNORDERED, abs=0.03)
    found = case.measure()
    assert found["peak"] <= 20
    assert 0 < found["p99"] <= 20 / SERVED
    assert found["wrong"] == 0
    assert replace(case, queue=APPEND).measure()["wrong"] > 0


@pytest.mark.slow
def test_whole_batches_enter_a_queue_as_rows_one_by_one_would() -> None:
    case = QueueCase(OverloadUpdates(MIXED, 5, keys=50), GUARDED, 1 / SERVED, step=None)
    batches, rows = case.measure(), replace(case, step=1).measure()
    assert batches["staleness"] == rows["staleness"] > 0
    assert (batches["results"], batches["peak"], batches["wrong"]) == (rows["results"], rows["peak"], 0)


def test_in_the_mix_a_fifth_of_the_keys_is_fast() -> None:
    counts = np.bincount(OverloadUpdates(MIXED, 200).updates().keys, minlength=KEYS)
    assert counts[:200].min() > counts[200:].max()


@pytest.mark.long
def test_queries_together_are_less_stale_than_with_a_share_each() -> None:
    together = QueriesCase(at_once=True, seconds=48.0, every=4.0).measure()
    shared = QueriesCase(at_once=False, slower=4, seconds=48.0, every=4.0).measure()
    assert together["staleness"] < shared["staleness"]
    assert together["staleness"] == pytest.approx(sum(together[f"of_{name}"] for name in QUERIES))
    assert together["wrong"] == shared["wrong"] == 0


@pytest.mark.slow
def test_a_queue_switches_with_the_load() -> None:
    found = PhasesCase(AUTO, seconds=30.0).measure()
    assert found["switches"] == len(PHASES) - 1
    assert found["answered_1"] == 1.0
    assert max(found["answered_2"], found["answered_4"]) < 0.5
