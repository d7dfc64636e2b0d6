"""Rows of one port, split among the buckets that read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from millrace.hosts.spark.exchange.buckets import assign
from millrace.hosts.spark.exchange.rows import Row, pack
from millrace.kernel.elements import Batch, concat


def split(
    port: str, batches: Sequence[Batch], keys: tuple[str, ...] | None, buckets: Sequence[int], seq: int
) -> Iterator[Row]:
    """One exchange row a bucket with all tuples that are for it; without a key they all go to the first.

    Where the choice is open (`keys` is None) they stay together in the bucket that `seq` is for: its own number, or
    one in turn.
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
