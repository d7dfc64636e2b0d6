"""Results of windows as a batch: window bounds, keys, results, and the reserved columns last."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.partials import Partials
from millrace.kernel.elements import ARRIVED, MARK, NO_BOUND, TIME, TIMESTAMP, Batch, Times

Bounds = tuple[pa.Array, pa.Array]


def window_results(partials: Partials, made: pa.Table, bounds: Bounds | None, times: Times, *, timed: bool) -> Batch:
    """A result per row of `made`, which holds keys and partials.

    `times` are the results' own times. A mark among the keys stays a reserved column; with `timed` the results have an
    arrival, which says that they never arrived: so they can meet rows that have one in a union.
    """
    keys = [name for name in partials.keys if name != MARK]
    columns = [*(bounds or ()), *map(made.column, keys), *partials.results(made), pa.array(times)]
    names = [*keys, *(call.name for call in partials.calls), TIME]
    if bounds is not None:
        names = ["window_start", "window_end", *names]
    if MARK in partials.keys:
        columns.append(made.column(MARK))
        names.append(MARK)
    if timed:
        columns.append(pa.array(np.full(len(times), NO_BOUND)))
        names.append(ARRIVED)
    return Batch(pa.table(columns, names=names).combine_chunks().to_batches()[0])


def window_bounds(starts: Times, ends: Times, *, numbers: bool = False) -> Bounds:
    """Where windows begin and end: times, or numbers."""
    kind = pa.int64() if numbers else TIMESTAMP
    return pa.array(starts).cast(kind), pa.array(ends).cast(kind)
