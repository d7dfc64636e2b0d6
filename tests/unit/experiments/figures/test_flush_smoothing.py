"""The model of a ring before one processor."""

from __future__ import annotations

import pytest

from millrace.experiments.figures.flush_smoothing import (
    FLUSH,
    PACKET,
    RING,
    FlushStep,
    SmoothingCase,
    fullest,
    greatest_rate,
)

STEADY = [FlushStep(1000, 0, 0)] * 10


def test_without_entries_that_leave_the_processor_is_the_limit() -> None:
    assert greatest_rate(STEADY, STEADY) == pytest.approx(1 / PACKET)


def test_while_a_table_is_flushed_packets_wait() -> None:
    burst = [FlushStep(1000, 0, 200_000), *STEADY]
    assert fullest(burst, 100_000) == pytest.approx(200_000 * FLUSH * 100_000, rel=0.02)
    assert greatest_rate(STEADY, burst) == pytest.approx(RING / (200_000 * FLUSH), rel=0.02)


def test_entries_that_leave_one_by_one_are_work_and_no_burst() -> None:
    spread = [FlushStep(1000, 500, 0)] * 10
    assert greatest_rate(spread, spread) == pytest.approx(1000 / (1000 * PACKET + 500 * FLUSH), rel=0.01)


@pytest.mark.long
def test_the_real_operator_bursts_in_order_and_not_lazily() -> None:
    rates = [SmoothingCase(300_000, 600_000, policy).measure()["rate"] for policy in ("in_order", "lazy_flush(2)")]
    assert rates[1] > 1.4 * rates[0]
