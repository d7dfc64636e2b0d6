"""Outcomes made by hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from millrace.experiments.figures.experiment import Outcome


def outcome(
    *,
    latency: float = 0.0,
    idle: float = 0.0,
    peak: int = 0,
    answers: str = "",
    moments: npt.ArrayLike = (),
    counts: npt.ArrayLike = (),
    memory: int = 0,
    turned_away: int = 0,
    rate: float = 0.0,
    seconds: float = 0.0,
) -> Outcome:
    moved, counted = np.array(moments, np.int64), np.array(counts, np.int64)
    return Outcome(100, latency, idle, peak, moved, counted, answers, memory, turned_away, rate, seconds)
