"""Which bucket a row goes to, and rows split by bucket.

Rules:
- There is one bucket per shuffle partition, numbered so that Spark's own hash sends each to a partition of its own.
- Equal keys meet in one bucket, whatever process, batch or width of integer they come in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count as naturals

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.hosts.spark.exchange.rows import Row, pack
from millrace.kernel.columns.hashing import hashes
from millrace.kernel.elements import Batch, concat

_WORD = 0xFFFFFFFF


def bucket_ids(count: int) -> list[int]:
    """The least ids that Spark's hash spreads over `count` partitions, one each, in partition order.

    >>> bucket_ids(4)
    [12, 6, 2, 0]
    """
    found: dict[int, int] = {}
    for number in naturals():
        if len(found) == count:
            break
        found.setdefault(_spark_hash(number) % count, number)
    return [found[partition] for partition in range(count)]


def assign(keys: Sequence[pa.Array], ids: Sequence[int], rows: int | None = None) -> npt.NDArray[np.int32]:
    """Each row's bucket id, by its key columns; the first id for all `rows` when there are no keys."""
    buckets = np.asarray(ids, dtype=np.int32)
    if not keys or len(buckets) == 1:
        return np.full(len(keys[0]) if keys else rows or 0, buckets[0], dtype=np.int32)
    return buckets[(hashes(keys) % np.uint64(len(buckets))).astype(np.int64)]


def split(
    port: str, batches: Sequence[Batch], keys: tuple[str, ...] | None, buckets: Sequence[int], seq: int
) -> Iterator[Row]:
    """One exchange row per bucket with all its tuples; without a key they all go to the first bucket.

    Where the choice is open (`keys` is None) they stay together in one bucket, which `seq` chooses: its own number, or
    one after another.
    """
    for alike in _alike(batches):
        for bucket, rows in _parts(concat(alike).rows, keys, buckets, seq):
            yield Row(bucket, port, seq, pack(rows))


def _parts(
    rows: pa.RecordBatch, keys: tuple[str, ...] | None, buckets: Sequence[int], seq: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    if keys is None:
        yield buckets[seq % len(buckets)], rows
        return
    assigned = assign([rows.column(name) for name in keys], buckets, rows.num_rows)
    if not keys or len(buckets) == 1:
        yield int(assigned[0]), rows
        return
    for bucket in buckets:
        mine = np.flatnonzero(assigned == bucket)
        if len(mine):
            yield bucket, rows.take(pa.array(mine))


def _alike(batches: Sequence[Batch]) -> list[list[Batch]]:
    """Batches of the same columns together: some may hold rows, some partials."""
    groups: dict[tuple[str, ...], list[Batch]] = {}
    for batch in batches:
        groups.setdefault(tuple(batch.rows.schema.names), []).append(batch)
    return list(groups.values())


def _spark_hash(number: int) -> int:
    """Spark's `hash(int)`: 32-bit MurmurHash3 with seed 42, as a signed integer."""
    block = number * 0xCC9E2D51 & _WORD
    block = _rotated(block, 15) * 0x1B873593 & _WORD
    state = (_rotated(42 ^ block, 13) * 5 + 0xE6546B64 & _WORD) ^ 4
    state = (state ^ state >> 16) * 0x85EBCA6B & _WORD
    state = (state ^ state >> 13) * 0xC2B2AE35 & _WORD
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _rotated(word: int, places: int) -> int:
    return (word << places | word >> 32 - places) & _WORD
