"""Arrays that grow by doubling."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def grown(numbers: npt.NDArray[Any], needed: int, filler: int | bool) -> npt.NDArray[Any]:
    """The array itself if it has `needed` places, and else one twice as long, or longer, filled up.

    >>> grown(np.array([7, 8, 9]), 5, -1).tolist()
    [7, 8, 9, -1, -1, -1]
    """
    room = len(numbers)
    while room < needed:
        room *= 2
    if room == len(numbers):
        return numbers
    larger = np.full(room, filler, numbers.dtype)
    larger[: len(numbers)] = numbers
    return larger
