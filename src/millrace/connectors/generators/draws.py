"""Random numbers that depend on a seed, a purpose and a number only, so that any row can be drawn alone.

A draw is a hash of its number (the finalizer of SplitMix64): no state, no order, whole columns at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_LETTERS = 26
_MARKS = 13
"""One character in so many is a mark, where there are marks."""


@dataclass(frozen=True)
class Draws:
    """The draws of a seed, one for each of some numbers.

    >>> Draws(7, np.arange(5)).below("dice", 6).tolist() == Draws(7, np.arange(9)).below("dice", 6)[:5].tolist()
    True
    """

    seed: int
    numbers: Numbers

    def unit(self, purpose: str) -> npt.NDArray[np.float64]:
        """A fraction in [0, 1) each."""
        # 53 bits are what a fraction has room for.
        return (self._bits(purpose) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, purpose: str, limit: int | Numbers) -> Numbers:
        """A whole number in [0, limit) each."""
        return (self.unit(purpose) * limit).astype(np.int64)

    def text(self, purpose: str, lengths: Numbers, mark: str | None = None) -> pa.Array:
        """Letters from a to z, so many each; with a mark, one character in thirteen is that."""
        width = int(lengths.max(initial=0))
        pieces = self._pieces(purpose, width).astype(np.uint32)
        # A piece is scaled to a letter and, beside it, to whether it is a mark.
        drawn = (pieces * np.uint32(_LETTERS * _MARKS)) >> np.uint32(16)
        characters = (drawn % _LETTERS + ord("a")).astype(np.uint8)
        if mark is not None:
            characters[drawn < _LETTERS] = ord(mark)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        kept = characters[np.arange(width) < lengths[:, None]]
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(kept)]
        return pa.Array.from_buffers(pa.string(), len(lengths), buffers)

    def _pieces(self, purpose: str, width: int) -> npt.NDArray[np.uint16]:
        """So many draws of 16 bits each: four to a hash."""
        hashes = -(-width // 4)
        steps = np.arange(1, hashes + 1, dtype=np.uint64) * _STEP
        bits = _mixed(self._bits(purpose)[:, None] + steps)
        return bits.astype("<u8").view("<u2").reshape(len(self.numbers), hashes * 4)[:, :width]

    def _bits(self, purpose: str) -> Bits:
        salt = blake2b(f"{self.seed}/{purpose}".encode(), digest_size=8).digest()
        start = np.uint64(int.from_bytes(salt, "little"))
        return _mixed(_mixed(self.numbers.astype(np.uint64) * _STEP + start))


def _mixed(bits: Bits) -> Bits:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
