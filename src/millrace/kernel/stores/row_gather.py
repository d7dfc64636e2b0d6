"""Rows gathered from several blocks, in any order, as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers

_SMALL = 2**14
"""Blocks of fewer rows than this, on average, are cheaper to put together than to take from one by one."""


def parts_of(numbers: Integers, firsts: Integers) -> tuple[Integers | None, list[tuple[int, Integers]]]:
    """The numbers in order, one part for each owner that has some; and that order, if they are not in it.

    An owner's numbers are those from its first one, in `firsts`, up to that of the next.

    >>> order, parts = parts_of(np.array([7, 3, 5]), np.array([0, 4]))
    >>> order.tolist(), [(owner, part.tolist()) for owner, part in parts]
    ([1, 2, 0], [(0, [3]), (1, [5, 7])])
    """
    order = None if bool((numbers[1:] >= numbers[:-1]).all()) else np.argsort(numbers, kind="stable")
    ordered = numbers if order is None else numbers[order]
    cuts = [*np.searchsorted(ordered, firsts).tolist(), len(ordered)]
    spans = pairwise(cuts)
    return order, [(owner, ordered[start:stop]) for owner, (start, stop) in enumerate(spans) if stop > start]


def gathered(pieces: Sequence[tuple[pa.RecordBatch, Integers]], order: Integers | None) -> pa.RecordBatch:
    """The rows at some places of each block, one after another; row `order[i]` of the result is the i-th of these."""
    if len(pieces) == 1:
        rows, places = pieces[0]
        return rows.take(pa.array(_placed(places, order)))
    if sum(rows.num_rows for rows, _ in pieces) <= _SMALL * len(pieces):
        return _from_one(pieces, order)
    found = pa.concat_batches([rows.take(pa.array(places)) for rows, places in pieces])
    return found if order is None else found.take(pa.array(_placed(np.arange(len(order)), order)))


def _from_one(pieces: Sequence[tuple[pa.RecordBatch, Integers]], order: Integers | None) -> pa.RecordBatch:
    """Put the blocks together and take from the whole."""
    begins = np.cumsum([0, *(rows.num_rows for rows, _ in pieces[:-1])])
    places = np.concatenate([places + begin for (_, places), begin in zip(pieces, begins, strict=True)])
    return pa.concat_batches([rows for rows, _ in pieces]).take(pa.array(_placed(places, order)))


def _placed(places: Integers, order: Integers | None) -> Integers:
    if order is None:
        return places
    placed = np.empty(len(places), np.int64)
    placed[order] = places
    return placed


def compact(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without the memory of others that they were cut from."""
    if rows.get_total_buffer_size() <= 2 * rows.nbytes:
        return rows
    return rows.take(pa.array(np.arange(rows.num_rows)))
