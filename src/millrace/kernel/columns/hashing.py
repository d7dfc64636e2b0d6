"""A hash of columns that never changes.

Rules:
- Equal values have equal hashes, whatever process, batch or width of integer they come in; nulls are equal.
- The hash is part of every checkpoint, hence written out here: no library may change it under us.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millrace.errors import RequestError

Hashes = npt.NDArray[np.uint64]

_NULL = np.uint64(0x6E756C6C)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_RADIX = 0x100000001B3


def hashes(columns: Sequence[pa.Array], count: int | None = None) -> Hashes:
    """Each row's hash by some columns; the same for all `count` rows when there are no columns.

    >>> found = hashes([pa.array([1, 2, 1]), pa.array(["a", "b", "a"])])
    >>> bool(found[0] == found[2]), bool(found[0] == found[1])
    (True, False)
    """
    mixed = np.zeros(len(columns[0]) if columns else count or 0, dtype=np.uint64)
    for column in columns:
        mixed = _mix(mixed * _STEP + _column_hash(column))
    return mixed


def _column_hash(key: pa.Array) -> Hashes:
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
    """Whether a column is hashed once per distinct value: what is dear to hash often repeats."""
    tests = (pa.types.is_dictionary, pa.types.is_decimal, _is_text)
    return any(test(kind) for test in tests)


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary,
             types.is_fixed_size_binary)  # fmt: skip
    return any(test(kind) for test in tests)


def _filled(values: Hashes, indices: pa.Array) -> Hashes:
    """The hashes of distinct values laid out by row."""
    if not len(values):
        return np.full(len(indices), _NULL)
    places = indices.fill_null(0).to_numpy(zero_copy_only=False)
    hashes: Hashes = values[places]
    if indices.null_count:
        hashes[indices.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _null_safe(key: pa.Array) -> Hashes:
    hashes = _value_hash(key)
    if key.null_count:
        hashes[key.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _value_hash(values: pa.Array) -> Hashes:
    """A hash per value by its kind; what stands at a null does not matter."""
    kind = values.type
    if _is_text(kind):
        return _text_hash(values)
    if pa.types.is_floating(kind):
        return _float_hash(values.cast(pa.float64()).fill_null(0.0).to_numpy())
    if pa.types.is_decimal(kind):
        return _float_hash(np.array([float(value or 0) for value in values.to_pylist()], dtype=np.float64))
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


def _float_hash(values: npt.NDArray[np.float64]) -> Hashes:
    """Whole numbers hash as integers do, so that 5.0 meets 5 and -0.0 meets 0; all NaNs meet."""
    whole = (np.trunc(values) == values) & (np.abs(values) < 2.0**63)
    bits = np.where(np.isnan(values), np.nan, values).view(np.uint64).copy()
    bits[whole] = values[whole].astype(np.int64).view(np.uint64)
    return _mix(bits)


def _text_hash(values: pa.Array) -> Hashes:
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


def _powers(length: int) -> Hashes:
    factors = np.full(max(length, 1), _RADIX, dtype=np.uint64)
    return np.cumprod(factors, dtype=np.uint64)


def _mix(values: Hashes) -> Hashes:
    """Every bit of the input in every bit of the result (the finalizer of SplitMix64)."""
    mixed = values + _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))
