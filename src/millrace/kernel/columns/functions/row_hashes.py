"""`hash` (Murmur3) and `xxhash64` as Spark computes them: column by column, each with the hash so far as its seed.

All values of a column at once; texts a word at a time for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.columns.decimals import unscaled
from millrace.kernel.columns.functions.array_functions import Elements
from millrace.kernel.columns.functions.distinct_arguments import Kernel
from millrace.kernel.columns.nested.nested_columns import over_columns

Words = Any  # npt.NDArray of np.uint32 or np.uint64
_SEED = 42
_WIDE = Context(prec=76)


class _Murmur3:
    """The 32 bits of Murmur3; what is left of a text after whole words is hashed byte by byte."""

    word, width = np.uint32, 4

    @staticmethod
    def _rotated(value: Words, by: int) -> Words:
        return (value << np.uint32(by)) | (value >> np.uint32(32 - by))

    def mixed(self, seed: Words, word: Words) -> Words:
        scrambled = self._rotated(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        return self._rotated(seed ^ scrambled, 13) * np.uint32(5) + np.uint32(0xE6546B64)

    def _finished(self, value: Words, length: Words) -> Words:
        value = value ^ length
        value = (value ^ (value >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        value = (value ^ (value >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return value ^ (value >> np.uint32(16))

    def ints(self, values: Any, seed: Words) -> Words:
        return self._finished(self.mixed(seed, values.astype(np.int32).view(np.uint32)), np.uint32(4))

    def longs(self, values: Any, seed: Words) -> Words:
        words = values.astype(np.int64).view(np.uint64)
        low, high = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32), (words >> np.uint64(32)).astype(np.uint32)
        return self._finished(self.mixed(self.mixed(seed, low), high), np.uint32(8))

    def texts(self, data: Any, starts: Any, lengths: Any, seed: Words) -> Words:
        found = seed.copy()
        for place in range(0, int(lengths.max(initial=0)), 4):
            rows = np.flatnonzero(lengths >= place + 4)
            found[rows] = self.mixed(found[rows], _word(data, starts[rows] + place, np.uint32))
        whole = lengths // 4 * 4
        for extra in range(3):
            rows = np.flatnonzero(lengths - whole > extra)
            byte = data[starts[rows] + whole[rows] + extra].view(np.int8).astype(np.int32).view(np.uint32)
            found[rows] = self.mixed(found[rows], byte)
        return self._finished(found, lengths.astype(np.uint32))


_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(each)
    for each in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)


class _XxHash64:
    """The 64 bits of xxHash."""

    word, width = np.uint64, 8

    @staticmethod
    def _rotated(value: Words, by: int) -> Words:
        return (value << np.uint64(by)) | (value >> np.uint64(64 - by))

    def _finished(self, value: Words) -> Words:
        value = (value ^ (value >> np.uint64(33))) * _P2
        value = (value ^ (value >> np.uint64(29))) * _P3
        return value ^ (value >> np.uint64(32))

    def _round(self, lane: Words, word: Words) -> Words:
        return self._rotated(lane + word * _P2, 31) * _P1

    def ints(self, values: Any, seed: Words) -> Words:
        found = seed + _P5 + np.uint64(4)
        word = values.astype(np.int32).view(np.uint32).astype(np.uint64)
        return self._finished(self._rotated(found ^ (word * _P1), 23) * _P2 + _P3)

    def longs(self, values: Any, seed: Words) -> Words:
        found = seed + _P5 + np.uint64(8)
        return self._finished(self._of_word(found, values.astype(np.int64).view(np.uint64)))

    def _of_word(self, found: Words, word: Words) -> Words:
        return self._rotated(found ^ self._round(np.uint64(0), word), 27) * _P1 + _P4

    def texts(self, data: Any, starts: Any, lengths: Any, seed: Words) -> Words:
        found, done = seed + _P5, np.zeros(len(lengths), np.int64)
        long = np.flatnonzero(lengths >= 32)
        if len(long):
            found[long], done[long] = self._stripes(data, starts[long], lengths[long], seed[long])
        found = found + lengths.astype(np.uint64)
        for _ in range(3):
            rows = np.flatnonzero(lengths - done >= 8)
            found[rows] = self._of_word(found[rows], _word(data, starts[rows] + done[rows], np.uint64))
            done[rows] += 8
        rows = np.flatnonzero(lengths - done >= 4)
        word = _word(data, starts[rows] + done[rows], np.uint32).astype(np.uint64)
        found[rows] = self._rotated(found[rows] ^ (word * _P1), 23) * _P2 + _P3
        done[rows] += 4
        for _ in range(3):
            rows = np.flatnonzero(lengths > done)
            byte = data[starts[rows] + done[rows]].astype(np.uint64)
            found[rows] = self._rotated(found[rows] ^ (byte * _P5), 11) * _P1
            done[rows] += 1
        return self._finished(found)

    def _stripes(self, data: Any, starts: Any, lengths: Any, seed: Words) -> tuple[Words, Any]:
        """The parts of 32 bytes of long texts, in four lanes."""
        lanes = [seed + _P1 + _P2, seed + _P2, seed.copy(), seed - _P1]
        stripes = lengths // 32
        for place in range(int(stripes.max(initial=0))):
            rows = np.flatnonzero(stripes > place)
            for number, lane in enumerate(lanes):
                word = _word(data, starts[rows] + place * 32 + number * 8, np.uint64)
                lane[rows] = self._round(lane[rows], word)
        found = sum((self._rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)), np.uint64(0))
        for lane in lanes:
            found = (found ^ self._round(np.uint64(0), lane)) * _P1 + _P4
        return found, stripes * 32


def _word(data: Any, places: Any, kind: Any) -> Words:
    """The words that begin at places among bytes."""
    parts = [data[places + byte].astype(kind) << kind(8 * byte) for byte in range(np.dtype(kind).itemsize)]
    return np.bitwise_or.reduce(parts) if len(places) else np.zeros(0, kind)


def _hashed(method: Any, column: pa.Array, seed: Words) -> Words:
    """The hashes of a column; where it is null, the seed."""
    kind = column.type
    if pa.types.is_null(kind):
        return seed
    if pa.types.is_struct(kind):
        found = seed
        for part in column.flatten():
            found = _hashed(method, part, found)
    elif pa.types.is_list(kind):
        found = _of_lists(method, column, seed)
    elif pa.types.is_map(kind):
        raise pa.ArrowInvalid("a MAP has no hash")
    else:
        found = _of_plain(method, column, seed)
    return np.where(np.asarray(column.is_null()), seed, found)


def _of_lists(method: Any, column: pa.Array, seed: Words) -> Words:
    """The elements one after the other, place by place for all arrays."""
    elements, found = Elements(column), seed.copy()
    for place in range(int(elements.lengths.max(initial=0))):
        rows = np.flatnonzero(elements.lengths > place)
        found[rows] = _hashed(method, elements.values.take(pa.array(elements.starts[rows] + place)), found[rows])
    return found


def _of_plain(method: Any, column: pa.Array, seed: Words) -> Words:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return method.texts(*_bytes(pc.cast(column, pa.large_binary())), seed)
    if pa.types.is_decimal(kind):
        return _of_decimals(method, column, seed)
    if pa.types.is_floating(kind):
        numbers = np.asarray(column.fill_null(0)) + 0.0
        numbers = np.where(np.isnan(numbers), np.nan, numbers).astype(np.asarray(column.fill_null(0)).dtype)
        return (method.ints if numbers.dtype.itemsize == 4 else method.longs)(
            numbers.view(np.int32 if numbers.dtype.itemsize == 4 else np.int64), seed
        )
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or kind == pa.int64():
        return method.longs(np.asarray(pc.cast(column, pa.int64()).fill_null(0)), seed)
    return method.ints(np.asarray(pc.cast(column, pa.int32()).fill_null(0)), seed)


def _of_decimals(method: Any, column: pa.Array, seed: Words) -> Words:
    """Decimals of up to 18 digits as whole numbers, others as the bytes of their digits."""
    if column.type.precision <= 18:
        return method.longs(np.ascontiguousarray(unscaled(column)[:, 0]), seed)
    encoded = column.dictionary_encode()
    scale = column.type.scale
    digits = pa.array(
        [_shortest(int(each.scaleb(scale, _WIDE))) for each in encoded.dictionary.to_pylist()], pa.large_binary()
    )
    return method.texts(*_bytes(digits.take(encoded.indices)), seed)


def _shortest(number: int) -> bytes:
    """The fewest bytes of two's complement."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def _bytes(column: pa.Array) -> tuple[Any, Any, Any]:
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data or b"", np.uint8), places[:-1].copy(), np.diff(places)


def _hash(method: Any, signed: Any) -> Kernel:
    @over_columns
    def compute(*columns: pa.Array) -> pa.Array:
        found = np.full(len(columns[0]), _SEED, method.word)
        with np.errstate(over="ignore"):
            for column in columns:
                found = _hashed(method, column, found)
        return pa.array(found.astype(method.word).view(signed))

    return compute


HASH_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "hash": _hash(_Murmur3(), np.int32),
    "xxhash64": _hash(_XxHash64(), np.int64),
}
