"""How much fresher keys can be if those that are updated seldom cut the line, by how often each is updated.

A key that is updated at random every 1/u on average and is released each time it has waited for W is stale for
(W² / 2) / (W + 1/u) on average, and takes 1 / (W + 1/u) of the service (see linecutting.py). In place all keys wait for
the same W; at best W² / 2 + W/u is the same for all. Either is found from the service that there is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Lengths = npt.NDArray[np.float64]
_HALVINGS = 50
_FAR = 1e6


def cutting_gain(intervals: Lengths, keys: Lengths, served: float) -> float:
    """The least staleness that cutting can reach over that of IN-PLACE, at most 1.

    So many `keys` are updated at each of some mean `intervals`; `served` keys leave in a unit of time.

    >>> alike, seldom = np.array([2.0]), np.array([2.0, 200.0])
    >>> round(cutting_gain(alike, np.array([10.0]), 1.0), 3), round(cutting_gain(seldom, np.array([2.0, 8.0]), 0.2), 3)
    (1.0, 0.823)
    """
    if float((keys / intervals).sum()) <= served:
        return 1.0
    most = _FAR * float(keys.sum()) / served
    wait = _root(lambda wait: float((keys / (wait + intervals)).sum()) - served, most)
    price = _root(lambda price: float((keys / np.sqrt(intervals**2 + 2 * price)).sum()) - served, most**2)
    waits = np.sqrt(intervals**2 + 2 * price) - intervals
    in_place, best = (float((keys * (each**2 / 2) / (each + intervals)).sum()) for each in (wait, waits))
    return best / in_place if in_place > 0 else 1.0


def _root(falls: Callable[[float], float], high: float) -> float:
    """Where a function that falls is 0, from 0 to `high`, to a few parts of a million."""
    low = high / _FAR**3
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if falls(middle) > 0 else (low, middle)
    return low
