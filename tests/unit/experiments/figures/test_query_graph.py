"""What is measured of the output of 001's graphs: how bursty it is, and which answers it has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.experiments.figures.query_graph import BIN, answers, burstiness

BINS = 12_000_000 // BIN


def run_of(moments: Any, counts: Any) -> Any:
    """A finished run with so many rows delivered at each moment."""
    rows = [pa.table({"n": np.arange(count)}) for count in counts]
    pairs = zip(moments, rows, strict=True)
    return SimpleNamespace(deliveries=[SimpleNamespace(now=int(now), rows=table) for now, table in pairs])


@pytest.mark.parametrize("slide", [0.1, 0.5, 2.0])
def test_output_that_leaves_once_per_slide_is_as_bursty_as_the_slide_is_long(slide: float) -> None:
    width = round(slide * 1e6) // BIN
    full = np.arange(0, BINS, width)
    assert burstiness(run_of(full * BIN, [10 * width] * len(full)))["burstiness"] == pytest.approx(width)


def test_output_that_leaves_evenly_is_bursty_by_its_spread() -> None:
    counts = 10 + 8 * (-1) ** np.arange(BINS)
    assert burstiness(run_of(np.arange(BINS) * BIN, counts))["burstiness"] == pytest.approx(1.6)


def test_answers_are_told_apart_by_their_rows_and_not_by_their_batches() -> None:
    whole = SimpleNamespace(deliveries=[SimpleNamespace(rows=pa.table({"n": [1, 2, 3]}))])
    parts = SimpleNamespace(deliveries=[SimpleNamespace(rows=pa.table({"n": each})) for each in ([1], [2, 3])])
    other = SimpleNamespace(deliveries=[SimpleNamespace(rows=pa.table({"n": [1, 3, 2]}))])
    found: list[Any] = [answers(run)["answers"] for run in (whole, parts, other)]  # type: ignore[arg-type]
    assert found[0] == found[1] != found[2]
