"""Results of windows as a batch: bounds, keys, results, and the reserved columns last."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.partials import Partials
from millrace.kernel.elements import ARRIVED, NO_BOUND, TIME, Batch, Times

TIMESTAMP = pa.timestamp("us", tz="UTC")
Bounds = tuple[pa.Array, pa.Array]


def windowed(partials: Partials, bounds: Bounds, made: pa.Table, times: Times, *, timed: bool) -> Batch:
    """One row a row of `made`, which holds keys and partials; with `timed` they say that they never arrived."""
    columns = [*bounds, *map(made.column, partials.keys), *partials.results(made), pa.array(times)]
    names = ["window_start", "window_end", *partials.keys, *(each.name for each in partials.calls), TIME]
    if timed:
        columns.append(pa.array(np.full(len(times), NO_BOUND)))
        names.append(ARRIVED)
    return Batch(pa.table(columns, names=names).combine_chunks().to_batches()[0])


def time_bounds(starts: Times, ends: Times) -> Bounds:
    """Bounds that are times."""
    return pa.array(starts).cast(TIMESTAMP), pa.array(ends).cast(TIMESTAMP)


def row_bounds(starts: Times, ends: Times) -> Bounds:
    """Bounds that are numbers of rows."""
    return pa.array(starts), pa.array(ends)
