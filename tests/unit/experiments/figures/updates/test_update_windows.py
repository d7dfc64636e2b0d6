"""The windows of update streams that the figures of 002 are made with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from millrace.experiments.figures.updates.update_queues import keys_of
from millrace.experiments.figures.updates.update_windows import (
    BOUND,
    EAGER,
    EVERY,
    LAZY,
    OWN,
    RANDOM,
    WindowCase,
    feed,
    numbered,
)
from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import VirtualRun
from millrace.language import parse_network
from tests.reference_window_staleness import Model

SECOND = 1_000_000


def results(case: WindowCase, first: int) -> list[tuple[int, int]]:
    """The starts of the windows of one key, and when they were delivered, with the first row at a tick."""
    ticks = np.arange(first, first + case.rows)
    run = VirtualRun(
        parse_network(case.text.replace("SELECT k, ", "SELECT k, window_start, ")),
        feeds={"s": feed(np.zeros(case.rows, np.int64), ts=ticks, at=ticks)},
        cost=Costs(of={"marked_aggregate": case.cost * SECOND}),
        rows_per_step=1,
    )
    run.run()
    return [
        (round(start.timestamp()), each.now // SECOND)
        for each in run.deliveries
        for start in each.rows.column("window_start").to_pylist()
    ]


@pytest.mark.parametrize("close", [OWN, BOUND])
def test_the_trace_of_figure_12_with_eager_windows(close: str) -> None:
    case = WindowCase(EAGER, 3, 1, 20, close=close, cost=2)
    assert results(case, first=1)[:3] == [(1, 7), (7, 13), (13, 19)]


def test_the_trace_of_figure_12_with_lazy_windows() -> None:
    # The window that ends with row 1 holds that row alone; the first one with three rows is delivered at 9.
    case = WindowCase(LAZY, 3, 1, 22, cost=2)
    assert results(case, first=1)[:4] == [(-1, 3), (1, 9), (7, 15), (13, 21)]


@pytest.mark.slow
@pytest.mark.parametrize("windows", [EAGER, LAZY])
@pytest.mark.parametrize("theta", [None, 0.9])
@pytest.mark.parametrize(
    ("close", "length", "slide", "counted"), [(OWN, 12, 1, False), (BOUND, 12, 1, False), (OWN, 20, 5, True)]
)
def test_a_run_is_as_stale_as_the_model_says(
    windows: str, theta: float | None, close: str, length: int, slide: int, counted: bool
) -> None:
    case = WindowCase(windows, length, slide, 120, 5, theta, close, counted)
    keys = keys_of(case.keys, case.rows, theta)
    stamps = numbered(keys) * case.keys if counted else np.arange(case.rows)
    model = Model(length, slide, windows == EAGER, close == OWN, tick=case.keys if counted else 1)
    expected = model.run(list(zip(keys.tolist(), stamps.tolist(), strict=True)))
    assert expected > 0.5
    assert case.measure()["staleness"] == pytest.approx(expected, rel=1e-9)


def most_held(case: WindowCase) -> int:
    """The most rows that the window buffer of the only key held."""
    return max(look.used for look in case.run(sample_every=0.5).samples("windows").samples)


@pytest.mark.slow
@pytest.mark.parametrize("cost", [2, 5])
@pytest.mark.parametrize(("length", "slide"), [(6, 1), (6, 6), (5, 3)])
def test_a_window_buffer_keeps_its_bound(length: int, slide: int, cost: int) -> None:
    eager, lazy = (most_held(WindowCase(windows, length, slide, 40, cost=cost)) for windows in (EAGER, LAZY))
    assert 0 < eager <= length + slide - 1
    assert 0 < lazy <= 2 * length + slide - 1


def test_a_lazy_buffer_needs_more_than_an_eager_one_may() -> None:
    assert most_held(WindowCase(LAZY, 6, 1, 40, cost=2)) > 6 + 1 - 1


def test_all_windows_fall_behind_further_the_longer_they_run() -> None:
    short = WindowCase(EVERY, 3, 1, 30)
    assert replace(short, rows=60).measure()["staleness"] > 1.8 * short.measure()["staleness"]


def test_random_windows_keep_up() -> None:
    random, every = (WindowCase(windows, 4, 1, 60).measure()["staleness"] for windows in (RANDOM, EVERY))
    assert random < every / 2


def test_the_sources_of_keys_count_their_own_rows() -> None:
    keys = keys_of(3, 200, theta=0.9)
    for key in range(3):
        assert numbered(keys)[keys == key].tolist() == list(range(int((keys == key).sum())))
