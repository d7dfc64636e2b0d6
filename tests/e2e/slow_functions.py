"""Functions of known cost, for queries that cannot keep up."""

from __future__ import annotations

import time

SECONDS = 0.002


def slow(value: int) -> int:
    """The value, two milliseconds later."""
    time.sleep(SECONDS)
    return value
