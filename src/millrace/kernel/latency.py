"""How long rows took, as a histogram."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from millrace.kernel.elements import Microseconds

_FINE = 16
"""Steps of a histogram between a power of two and the next: quantiles are right within 1/16."""
_SAMPLED = 1_024
"""The most lengths of a batch that are told apart where some stand for all."""


class Latency:
    """How long rows took, as a histogram with steps that grow with the length.

    >>> latency = Latency()
    >>> latency.add(np.array([10, 20, 1000]))
    >>> latency.count, latency.max, round(latency.mean)
    (3, 1000, 343)
    >>> latency.quantile(0.5)
    20
    """

    __slots__ = ("_counts", "count", "max", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum: Microseconds = 0
        self.max: Microseconds = 0
        self._counts: dict[int, int] = {}

    def add(self, micros: npt.NDArray[np.int64], weight: int = 1) -> None:
        """Count lengths of time, each `weight` times."""
        self.count += len(micros) * weight
        self.sum += int(micros.sum()) * weight
        self.max = max(self.max, int(micros.max()))
        counts = np.bincount(_steps(micros))
        for step in np.flatnonzero(counts).tolist():
            self._counts[step] = self._counts.get(step, 0) + int(counts[step]) * weight

    def add_some(self, micros: npt.NDArray[np.int64]) -> None:
        """Count lengths of time; of many only some at equal distances, which stand for the others. All have the max."""
        if len(micros) == 1:
            self.add_one(int(micros[0]))
            return
        weight = -(-len(micros) // _SAMPLED)
        self.add(micros[::weight], weight)
        self.max = max(self.max, int(micros.max()))

    def add_one(self, micros: Microseconds) -> None:
        """Count one length of time, as `add` does; with arrays a row alone would cost a fifth more in all."""
        self.count += 1
        self.sum += micros
        self.max = max(self.max, micros)
        step = _step(max(micros, 0))
        self._counts[step] = self._counts.get(step, 0) + 1

    @property
    def mean(self) -> float:
        """The average; 0 without rows."""
        return self.sum / self.count if self.count else 0.0

    def quantile(self, share: float) -> Microseconds:
        """The length that this share of rows did not exceed, within 1/16."""
        passed, wanted = 0, share * self.count
        for step in sorted(self._counts):
            passed += self._counts[step]
            if passed >= wanted:
                return min(_length(step), self.max)
        return self.max

    def bars(self, most: int) -> list[tuple[Microseconds, int]]:
        """At most `most` bars of a histogram: the least length of each, and how many lengths fall in it.

        >>> latency = Latency()
        >>> latency.add(np.array([0, 0, 3, 100, 120, 5000]))
        >>> latency.bars(3)
        [(0, 3), (64, 2), (4096, 1)]
        """
        doublings: dict[int, int] = {}
        for step, count in sorted(self._counts.items()):
            bits = _length(step).bit_length()
            doublings[bits] = doublings.get(bits, 0) + count
        while len(doublings) > most:
            # What is shortest is told least apart.
            first, second, *_ = sorted(doublings)
            doublings[first] += doublings.pop(second)
        return [(1 << bits >> 1, count) for bits, count in sorted(doublings.items())]

    def save(self) -> dict[str, int]:
        """The counts by step, as plain data that adds up; see `read`."""
        return {str(step): count for step, count in self._counts.items()}

    @staticmethod
    def read(saved: Mapping[str, int]) -> Latency:
        """What `save` gave; its greatest length is known within 1/16.

        >>> latency = Latency()
        >>> latency.add(np.array([10, 20, 1000]))
        >>> Latency.read(latency.save()).quantile(0.99)
        992
        """
        other = Latency()
        other._counts = {int(step): count for step, count in saved.items()}
        other.count = sum(saved.values())
        other.sum = sum(_length(step) * count for step, count in other._counts.items())
        other.max = max(map(_length, other._counts), default=0)
        return other

    def copy(self) -> Latency:
        """The same counts, apart from later ones."""
        other = Latency()
        other.count, other.sum, other.max, other._counts = self.count, self.sum, self.max, dict(self._counts)
        return other


def _step(micros: int) -> int:
    """The number of the step that a length falls in: exact below 2 * _FINE, then _FINE to each doubling."""
    shift = max(micros.bit_length() - 5, 0)
    return _FINE * shift + (micros >> shift)


def _steps(micros: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    lengths = np.maximum(micros, 0)
    shifts = np.maximum(np.frexp(lengths.astype(np.float64))[1] - 5, 0).astype(np.int64)
    steps: npt.NDArray[np.int64] = _FINE * shifts + (lengths >> shifts)
    return steps


def _length(step: int) -> int:
    """The least length of a step."""
    if step < 2 * _FINE:
        return step
    shift = step // _FINE - 1
    return (step - _FINE * shift) << shift
