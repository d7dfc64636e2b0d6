"""Texts as numbers: their bytes, eight at a time, mixed into 64 bits.

Far faster than the hash of `hashing`, but no part of any checkpoint: it may change from one version to the next. Equal
texts have equal numbers; different ones may have, and must be compared.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Words = npt.NDArray[np.uint64]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_ALL = np.uint64(2**64 - 1)
_HALF = np.uint64(32)
_WORD = 8


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of bytes of any length."""
    types = pa.types
    tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(test(kind) for test in tests)


def text_words(column: pa.Array) -> Words:
    """A number for each text; what stands at a null does not matter.

    >>> found = text_words(pa.array(["sensor-1", "sensor-2", "sensor-1"]))
    >>> bool(found[0] == found[2]), bool(found[0] == found[1])
    (True, False)
    """
    kind = np.int64 if pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type) else np.int32
    _, offset_buffer, data_buffer = column.buffers()
    if not len(column):
        return np.empty(0, np.uint64)
    offsets = np.frombuffer(offset_buffer, kind)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = _padded(np.frombuffer(data_buffer or b"", np.uint8), int(offsets[0]), int(offsets[-1]))
    return _mixed(data, offsets[:-1] - offsets[0], np.diff(offsets))


def _padded(data: npt.NDArray[np.uint8], start: int, stop: int) -> npt.NDArray[np.uint8]:
    """Some bytes, and a word more, so that a word can be read from each of them on."""
    if stop + _WORD <= len(data):
        return data[start : stop + _WORD]
    return np.concatenate([data[start:stop], np.zeros(_WORD, np.uint8)])


def _mixed(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Words:
    """The words of each text mixed into one; texts that have ended take no part."""
    words = np.ndarray((len(data) - _WORD + 1,), "<u8", data, strides=(1,))
    mixed = lengths.astype(np.uint64) * _FACTOR
    longest, shortest = int(lengths.max()), int(lengths.min())
    for place in range(0, longest, _WORD):
        if place + _WORD <= shortest:
            mixed = _step(mixed, words[starts + place])
            continue
        longer = np.flatnonzero(lengths > place)
        missing = np.maximum(_WORD + place - lengths[longer], 0).astype(np.uint64)
        found = words[starts[longer] + place] & (_ALL >> (missing * np.uint64(8)))
        mixed[longer] = _step(mixed[longer], found)
    return mixed ^ (mixed >> _HALF)


def _step(mixed: Words, words: Words) -> Words:
    mixed = (mixed ^ words) * _FACTOR
    mixed ^= mixed >> _HALF
    mixed *= _MIX
    return mixed
