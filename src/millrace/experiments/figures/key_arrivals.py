"""Which key each row of an update stream has: in turn, or at random with some keys more often than others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.kernel.aggregates.panes.window_geometry import Numbers
from millrace.plan.nodes.endpoints import TIMESTAMP

_SECOND = 1_000_000


def keys_of(keys: int, rows: int, theta: float | None = None, seed: int = 1) -> Numbers:
    """The key of each row: in turn, or by Zipf's law, by which key n has a share of 1 / n**theta.

    >>> keys_of(3, 7).tolist()
    [0, 1, 2, 0, 1, 2, 0]
    >>> np.bincount(keys_of(2, 3000, theta=1.0)).round(-2).tolist()
    [2000, 1000]
    """
    if theta is None:
        return np.arange(rows) % keys
    shares = 1 / np.arange(1, keys + 1) ** theta
    ends = np.cumsum(shares) / shares.sum()
    # The last end may be a little less than 1.
    return np.minimum(np.searchsorted(ends, np.random.default_rng(seed).random(rows), side="right"), keys - 1)


def numbered(keys: Numbers) -> Numbers:
    """For each row, how many rows of its key are before it.

    >>> numbered(np.array([5, 7, 5, 5, 7])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(keys, kind="stable")
    counts = np.bincount(keys)
    found = np.empty(len(keys), np.int64)
    found[order] = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
    return found


def feed(keys: Numbers, **seconds: npt.NDArray[Any]) -> list[pa.Table]:
    """A feed of a column `k` and some columns of times, which are given in seconds."""
    times: Mapping[str, pa.Array] = {
        name: pa.array(np.round(column * _SECOND).astype(np.int64)).cast(TIMESTAMP) for name, column in seconds.items()
    }
    return [pa.table({"k": keys, **times})]
