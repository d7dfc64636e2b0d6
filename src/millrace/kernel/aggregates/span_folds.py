"""Fold spans of a sequence of partials, each in a logarithmic number of steps.

The sequence is folded into aligned blocks of two, four, eight, ... partials; a span is combined of the few blocks that
fill it exactly. So no aggregate has to be undone, and overlapping spans share their work.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.partials import PANE, Partials
from millrace.kernel.columns.integers import Integers, ranges, starts
from millrace.kernel.elements import concat_tables

_Level = tuple[Integers, Integers]
"""Blocks of one size that are needed: for which span, and the number of the block."""

_PAIRS = 2**18
"""Spans are folded together up to this many blocks, or partials where those grow with what they hold."""

_FEW = 2**13
"""Up to this many leaves in all spans, blocks cost more than they save."""


def in_panes(rows: pa.Table, panes: Integers) -> pa.Table:
    """The rows, each in the pane it is given."""
    column = pa.array(panes)
    if PANE not in rows.schema.names:
        return rows.append_column(PANE, column)
    return rows.set_column(rows.schema.get_field_index(PANE), PANE, column)


def leaves(partials: Partials, rows: pa.Table, panes: Integers) -> pa.Table:
    """One row of partials per pane, in order of the panes; columns that partials do not read are left out."""
    batch = pa.RecordBatch.from_struct_array(in_panes(rows, panes).to_struct_array().combine_chunks())
    return _in_order(partials.of_rows([batch]))


def merged(partials: Partials, leaves: pa.Table, panes: Integers) -> pa.Table:
    """Partials put into panes, those of one pane merged; in order of the panes."""
    return _in_order(partials.merged_by([in_panes(leaves, panes)], [PANE]))


def folded(partials: Partials, leaves: pa.Table, lows: Integers, highs: Integers) -> Iterator[tuple[slice, pa.Table]]:
    """The folds of the leaves from low up to high, for spans of which none is empty: some of them at a time."""
    if not len(lows):
        return
    lengths = highs - lows
    if lengths.sum() <= _FEW:
        own = leaves.take(pa.array(ranges(lows, lengths)))
        yield slice(0, len(lows)), merged(partials, own, np.repeat(np.arange(len(lows)), lengths))
        return
    levels = _levels(lows, highs)
    blocks, offsets = _blocks(partials, leaves, len(levels))
    spans = np.concatenate([span for span, _ in levels])
    chosen = np.concatenate([number + offset for (_, number), offset in zip(levels, offsets, strict=True)])
    order = np.argsort(spans, kind="stable")
    spans, chosen = spans[order], chosen[order]
    weights = lengths if _growing(leaves) else np.bincount(spans, minlength=len(lows))
    for part in _parts(weights):
        begin, end = np.searchsorted(spans, [part.start, part.stop])
        yield part, merged(partials, blocks.take(pa.array(chosen[begin:end])), spans[begin:end])


def suffixes(partials: Partials, leaves: pa.Table, codes: Integers) -> pa.Table:
    """The fold of each leaf and those after it in its group; a group's leaves stand together and have one code.

    The leaves of a group are paired. The suffix of the first of a pair is that of the pair, and the suffix of the
    second is the leaf itself before that of the next pair: so there is half as much left to do.
    """
    begins = np.flatnonzero(starts(codes))
    odd = (np.arange(len(codes)) - np.repeat(begins, np.diff(np.append(begins, len(codes)))) & 1).astype(np.bool_)
    if not odd.any():
        return leaves
    pairs = np.cumsum(~odd) - 1
    of_pairs = suffixes(partials, _merged(partials, leaves, pairs), codes[~odd])
    followed = odd & (np.append(codes[1:], -1) == codes)
    tables = [leaves.filter(pa.array(odd)), of_pairs.take(pa.array(pairs[followed] + 1))]
    seconds = np.cumsum(odd) - 1
    of_seconds = _merged(partials, concat_tables(tables), np.append(seconds[odd], seconds[followed]))
    places = np.where(odd, of_pairs.num_rows + seconds, pairs)
    return concat_tables([of_pairs, of_seconds]).take(pa.array(places))


def _levels(lows: Integers, highs: Integers) -> list[_Level]:
    """The blocks that fill each span: at most two of a size, by size."""
    found = []
    spans = np.arange(len(lows))
    while len(spans):
        left, right = (lows & 1).astype(np.bool_), (highs & 1).astype(np.bool_)
        found.append((np.concatenate([spans[left], spans[right]]), np.concatenate([lows[left], highs[right] - 1])))
        lows, highs = (lows + 1) >> 1, highs >> 1
        more = lows < highs
        spans, lows, highs = spans[more], lows[more], highs[more]
    return found


def _blocks(partials: Partials, leaves: pa.Table, levels: int) -> tuple[pa.Table, list[int]]:
    """The blocks of all sizes one after another, and where each size begins."""
    made, offsets = [leaves], [0]
    for _ in range(levels - 1):
        last = made[-1]
        offsets.append(offsets[-1] + last.num_rows)
        made.append(_merged(partials, last, np.arange(last.num_rows) >> 1))
    names = [name for name in made[-1].schema.names if name != PANE]
    return concat_tables([each.select(names) for each in made]), offsets


def _merged(partials: Partials, leaves: pa.Table, panes: Integers) -> pa.Table:
    return merged(partials, leaves, panes).drop_columns([PANE])


def _growing(leaves: pa.Table) -> bool:
    """True if some partials grow with what they were made of."""
    return any(pa.types.is_nested(field.type) for field in leaves.schema)


def _parts(weights: Integers) -> Iterator[slice]:
    """Cut a sequence into parts of about `_PAIRS` of weight."""
    part = (np.cumsum(weights) - weights) // _PAIRS
    begins = np.flatnonzero(np.concatenate([[True], part[1:] != part[:-1]]))
    for begin, end in zip(begins, [*begins[1:], len(weights)], strict=True):
        yield slice(int(begin), int(end))


def _in_order(table: pa.Table) -> pa.Table:
    panes = table.column(PANE).to_numpy()
    if bool((panes[1:] >= panes[:-1]).all()):
        return table
    return table.take(pa.array(np.argsort(panes)))
