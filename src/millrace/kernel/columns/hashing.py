"""Hashes of columns: one that never changes, and a faster one of texts for use in memory.

Rules:
- Equal values have equal hashes, whatever process, batch or width of integer they come in; nulls are equal. Different
  values may share a hash, so the reader compares the values.
- `hashes` is part of every checkpoint, hence written out here: no library may change it under us.
- `text_words` may change from one version to the next: no checkpoint holds it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.errors import RequestError

Words = npt.NDArray[np.uint64]
Hashes = npt.NDArray[np.int64]

_NULL = np.uint64(0x6E756C6C)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_RADIX = 0x100000001B3
_ALL = np.uint64(2**64 - 1)
_HALF = np.uint64(32)
_WORD = 8


def hashes(columns: Sequence[pa.Array], count: int | None = None) -> Words:
    """Each row's hash by some columns; the same for all `count` rows when there are no columns.

    >>> found = hashes([pa.array([1, 2, 1]), pa.array(["a", "b", "a"])])
    >>> bool(found[0] == found[2]), bool(found[0] == found[1])
    (True, False)
    """
    mixed = np.zeros(len(columns[0]) if columns else count or 0, dtype=np.uint64)
    for column in columns:
        mixed = _mix(mixed * _STEP + _column_hash(column))
    return mixed


def hashes_of(rows: pa.Table | pa.RecordBatch, keys: Sequence[str]) -> Hashes:
    """Each row's hash by its key columns, as a signed number."""
    return hashes([rows.column(name) for name in keys], rows.num_rows).view(np.int64)


def _column_hash(key: pa.Array) -> Words:
    """A hash per row of one column; nulls hash alike."""
    key = key.combine_chunks() if isinstance(key, pa.ChunkedArray) else key
    if pa.types.is_null(key.type):
        return np.full(len(key), _NULL)
    if _by_value(key.type):
        encoded = key if pa.types.is_dictionary(key.type) else key.dictionary_encode()
        values = _value_hash(encoded.dictionary)
        return _filled(values, encoded.indices)
    return _null_safe(key)


def _by_value(kind: pa.DataType) -> bool:
    """True if a column is hashed once per distinct value: values that are slow to hash often repeat."""
    tests = (pa.types.is_dictionary, pa.types.is_decimal, pa.types.is_fixed_size_binary, is_text)
    return any(test(kind) for test in tests)


def is_text(kind: pa.DataType) -> bool:
    """True if a type is one of bytes of any length."""
    types = pa.types
    tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(test(kind) for test in tests)


def _filled(values: Words, indices: pa.Array) -> Words:
    """The hashes of distinct values laid out by row."""
    if not len(values):
        return np.full(len(indices), _NULL)
    places = indices.fill_null(0).to_numpy(zero_copy_only=False)
    hashes: Words = values[places]
    if indices.null_count:
        hashes[indices.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _null_safe(key: pa.Array) -> Words:
    hashes = _value_hash(key)
    if key.null_count:
        hashes[key.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _value_hash(values: pa.Array) -> Words:
    """A hash per value by its kind; what stands at a null does not matter."""
    kind = values.type
    if is_text(kind) or pa.types.is_fixed_size_binary(kind):
        return _text_hash(values)
    if pa.types.is_floating(kind):
        return _float_hash(values.cast(pa.float64()).fill_null(0.0).to_numpy())
    if pa.types.is_decimal(kind):
        return _float_hash(values.cast(pa.float64()).fill_null(0.0).to_numpy())
    return _mix(_integers(values).view(np.uint64))


def _integers(values: pa.Array) -> npt.NDArray[np.int64]:
    kind = values.type
    if pa.types.is_timestamp(kind):
        values = pc.cast(values, pa.timestamp("us", kind.tz), safe=False)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        values = values.cast(pa.int32())
    if not (pa.types.is_primitive(kind) or pa.types.is_boolean(kind)):
        raise RequestError(
            f'rows cannot be partitioned by a key of type "{kind}"',
            hint="Use keys of text, numbers, booleans or times; take a field out of a nested value.",
        )
    integers: npt.NDArray[np.int64] = values.cast(pa.int64(), safe=False).fill_null(0).to_numpy()
    return integers


def _float_hash(values: npt.NDArray[np.float64]) -> Words:
    """Whole numbers hash as integers do, so that 5.0 meets 5 and -0.0 meets 0; all NaNs meet."""
    whole = (np.trunc(values) == values) & (np.abs(values) < 2.0**63)
    bits = np.where(np.isnan(values), np.nan, values).view(np.uint64).copy()
    bits[whole] = values[whole].astype(np.int64).view(np.uint64)
    return _mix(bits)


def _text_hash(values: pa.Array) -> Words:
    """A polynomial over each value's bytes, and its length."""
    plain = values.cast(pa.large_binary()) if len(values) else pa.array([], pa.large_binary())
    _, offset_buffer, data_buffer = plain.buffers()
    if not len(plain):
        return np.empty(0, dtype=np.uint64)
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[plain.offset : plain.offset + len(plain) + 1]
    lengths = np.diff(offsets)
    data = np.frombuffer(data_buffer or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    starts = offsets[:-1] - offsets[0]
    places = np.arange(len(data)) - np.repeat(starts, lengths)
    terms = (data.astype(np.uint64) + np.uint64(1)) * _powers(int(lengths.max()))[places]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return _mix((sums[offsets[1:] - offsets[0]] - sums[starts]) ^ lengths.astype(np.uint64))


def _powers(length: int) -> Words:
    factors = np.full(max(length, 1), _RADIX, dtype=np.uint64)
    return np.cumprod(factors, dtype=np.uint64)


def _mix(values: Words) -> Words:
    """Every bit of the input in every bit of the result (the finalizer of SplitMix64)."""
    mixed = values + _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


def text_words(column: pa.Array) -> Words:
    """A number for each text, from its bytes, eight at a time; what stands at a null does not matter.

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
    return _words_mixed(data, offsets[:-1] - offsets[0], np.diff(offsets))


def _padded(data: npt.NDArray[np.uint8], start: int, stop: int) -> npt.NDArray[np.uint8]:
    """Some bytes, and a word more, so that a word can be read from each of them on."""
    if stop + _WORD <= len(data):
        return data[start : stop + _WORD]
    return np.concatenate([data[start:stop], np.zeros(_WORD, np.uint8)])


def _words_mixed(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Words:
    """The words of each text mixed into one; texts that have ended take no part."""
    words = np.ndarray((len(data) - _WORD + 1,), "<u8", data, strides=(1,))
    mixed = lengths.astype(np.uint64) * _STEP
    longest, shortest = int(lengths.max()), int(lengths.min())
    for place in range(0, longest, _WORD):
        if place + _WORD <= shortest:
            mixed = _word_mixed(mixed, words[starts + place])
            continue
        longer = np.flatnonzero(lengths > place)
        missing = np.maximum(_WORD + place - lengths[longer], 0).astype(np.uint64)
        found = words[starts[longer] + place] & (_ALL >> (missing * np.uint64(8)))
        mixed[longer] = _word_mixed(mixed[longer], found)
    return mixed ^ (mixed >> _HALF)


def _word_mixed(mixed: Words, words: Words) -> Words:
    mixed = (mixed ^ words) * _STEP
    mixed ^= mixed >> _HALF
    mixed *= _FIRST
    return mixed
