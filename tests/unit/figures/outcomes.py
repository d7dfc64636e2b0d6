"""Outcomes made by hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from millrace.figures.experiment import Outcome


def outcome(
    *,
    latency: float = 0.0,
    idle: float = 0.0,
    peak: int = 0,
    answers: str = "",
    moments: npt.ArrayLike = (),
    counts: npt.ArrayLike = (),
) -> Outcome:
    return Outcome(100, latency, idle, peak, np.array(moments, np.int64), np.array(counts, np.int64), answers)
