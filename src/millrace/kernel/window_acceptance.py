"""Which rows of a key a queue of windows accepts.

Rules:
- A row that is in no window is not accepted.
- Windows that close by the stream's bound: every row from the bound on is accepted, out of order or not, since each
  window that it is in is still open. What a key reports of a window is all that came of it.
- Windows that close by the key's own rows: a row is accepted if it is not older than the newest one of its key, and in
  no window that this one has closed. A row at t closes the windows that end at or before t + tick.
- Of several inputs, the one that gave the newest row of a key goes on as if it were alone. Another one takes over with
  a newer row, or, if it is the source of truth, with one of the same time, before which the others' rows of that time
  make room if none of them has left. Its older rows are not accepted.
"""

from __future__ import annotations

import numpy as np

from millrace.kernel.elements import Mask, Microseconds, Times
from millrace.kernel.frames import Numbers
from millrace.kernel.queue_policies.cells import NONE
from millrace.kernel.window_cells import FAR, WindowCells
from millrace.kernel.window_spans import Spans


class Acceptance:
    """Decides row by row, in whole columns; `tick` is None where the stream's bound closes windows."""

    def __init__(self, spans: Spans, tick: int | None, inputs: int) -> None:
        self.spans = spans
        self.tick = tick
        self.inputs = inputs

    def accepted(
        self, cells: WindowCells, keys: Numbers, times: Times, port: int, bound: Microseconds, yields: Mask | None
    ) -> Mask:
        """Which rows of one input are accepted, the rows before them being known to the cells.

        `yields` says of which keys the newest row can make room for one of the source of truth.
        """
        mask: Mask = np.ones(len(keys), np.bool_)
        if self.spans.slide > self.spans.range:
            mask = self.spans.oldest(times) <= self.spans.newest(times)
        if self.inputs > 1:
            mask &= self._from(cells, keys, times, port, yields)
        if self.tick is None:
            return mask & (times >= bound)
        mask[mask] = self._in_order(cells.last[keys[mask]], keys[mask], times[mask])
        return mask

    def _from(self, cells: WindowCells, keys: Numbers, times: Times, port: int, yields: Mask | None) -> Mask:
        """Where the input is the one that the key listens to."""
        own: Mask = np.isin(cells.port[keys], (NONE, port))
        if own.all():
            return own
        newer = times > cells.last[keys]
        if yields is not None:
            newer |= (times == cells.last[keys]) & yields[keys]
        # From the first row that takes over on, the input has the newest row.
        took = np.full(len(cells), len(keys))
        np.minimum.at(took, keys[newer], np.flatnonzero(newer))
        return own | (np.arange(len(keys)) >= took[keys])

    def _in_order(self, last: Times, keys: Numbers, times: Times) -> Mask:
        """Which rows are in no window that an earlier row of their key has closed, and not older than it."""
        assert self.tick is not None
        if len(keys) == 1:
            return self._keeps_order(last, times)
        order = np.argsort(keys, kind="stable")
        begins = np.concatenate([[True], keys[order][1:] != keys[order][:-1]]) if len(order) else np.empty(0, np.bool_)
        newest = np.maximum(_before(times[order], begins), last[order])
        mask = self._keeps_order(newest, times[order])
        if bool((~mask & (times[order] > newest)).any()):
            # A row that is newer, but nearer than a tick: whether a later one is accepted depends on it.
            mask = self._one_by_one(last[order], begins, times[order])
        found = np.empty_like(mask)
        found[order] = mask
        return found

    def _keeps_order(self, newest: Times, times: Times) -> Mask:
        assert self.tick is not None
        closed = self.spans.closed(np.maximum(newest, -FAR) + self.tick) + self.spans.range
        kept: Mask = (times >= newest) & ((times >= closed) | (newest < -FAR))
        return kept

    def _one_by_one(self, last: Times, begins: Mask, times: Times) -> Mask:
        found = np.empty(len(times), np.bool_)
        newest = last[:1]
        for place in range(len(times)):
            newest = last[place : place + 1] if begins[place] else newest
            found[place] = self._keeps_order(newest, times[place : place + 1])[0]
            newest = times[place : place + 1] if found[place] else newest
        return found


def _before(times: Times, begins: Mask) -> Times:
    """The greatest time before each row of its group; the groups follow each other, and begin where it says."""
    if len(times) < 2:
        return np.full(len(times), np.iinfo(np.int64).min)
    distinct, ranks = np.unique(times, return_inverse=True)
    groups = np.cumsum(begins) * len(distinct)
    greatest = np.maximum.accumulate(groups + ranks)[:-1]
    before = np.concatenate([[np.iinfo(np.int64).min], distinct[greatest % len(distinct)]])
    before[begins] = np.iinfo(np.int64).min
    return before
