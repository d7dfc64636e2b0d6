"""The join of update streams in order of time: every match, whenever rows come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.integers import Integers, starts
from millrace.kernel.elements import (
    END_OF_TIME,
    TIME,
    Batch,
    Element,
    Mask,
    Microseconds,
    Punctuation,
    integer_column,
)
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.hold_buffer import HoldBuffer
from millrace.kernel.stores.recent_rows import concat_rows
from millrace.kernel.updates.joins.latest_rows import NONE, NUMBER
from millrace.kernel.updates.joins.update_join import UpdateJoin


class TimedUpdateJoin(UpdateJoin):
    """Give the latest rows of all inputs up to a time, at each time at which a row of their key has come.

    Rows match as in `UpdateJoin`. They wait until the bounds of all inputs are past them, so that results depend on the
    times of rows alone: a result for each key and time at which some input has a row, if the latest rows up to then,
    those of that time among them, match. Of rows of one input, key and time the one that came last counts.

    State: beside the latest rows, those that wait. Punctuations: passed on behind what they release.
    """

    label = "timed_update_join"
    by_input = False
    holds = True

    @cached_property
    def _waiting(self) -> tuple[HoldBuffer, ...]:
        """The rows that wait, by input."""
        return tuple(HoldBuffer() for _ in self.schemas)

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        batch = self._whole(port, batch)
        if len(batch):
            self._waiting[port].add(batch)
        return iter(())

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        until = punctuation.until
        released = {port: rows for port, each in enumerate(self._waiting) if (rows := each.release(until - 1))}
        if released:
            yield from self._at_their_times(released)
        self._bounds = [until] * len(self._bounds)
        self._expire(at_once=until == END_OF_TIME)
        yield punctuation

    def wanted(self) -> Microseconds | None:
        least = [each.least for each in self._waiting if each.least is not None]
        return min(min(least), END_OF_TIME - 1) + 1 if least else None

    def _at_their_times(self, released: Mapping[int, Batch]) -> Iterator[Batch]:
        """What matches at the times of some rows, which are later than all rows before them."""
        numbers = {port: self._numbers(port, batch.rows) for port, batch in released.items()}
        owners = np.unique(np.concatenate(list(numbers.values())))
        pools, before = [], []
        for port, side in enumerate(self._sides):
            kept = side.rows_of(owners)
            before.append(kept.num_rows)
            if port in released:
                kept = concat_rows([kept, side.as_kept(released[port].rows, numbers[port])])
                side.update(released[port], numbers[port])
            pools.append(kept)
        needed = range(len(pools)) if self.kept is None else (self.kept,)
        places = _latest_at_each_time(pools, before, needed)
        if not len(places[0]):
            return
        if self.kept is None:
            yield from self._joined([pool.take(pa.array(some)) for pool, some in zip(pools, places, strict=True)])
        else:
            other = 1 - self.kept
            yield from self._answered(pools[self.kept].take(pa.array(places[self.kept])), pools[other], places[other])

    # State

    @property
    def held(self) -> int:
        return super().held + sum(map(len, self._waiting))

    @property
    def state_bytes(self) -> int:
        return super().state_bytes + sum(each.nbytes for each in self._waiting)

    def changes(self) -> Changes:
        changes = super().changes()
        return combined([changes, *(each.changes() for each in self._waiting)], {})

    def restore(self, changes: Changes) -> None:
        latest, *waiting = separated(changes)
        super().restore(latest)
        for each, saved in zip(self._waiting, waiting, strict=True):
            each.restore(saved)


def _latest_at_each_time(
    pools: Sequence[pa.RecordBatch], before: Sequence[int], needed: Sequence[int]
) -> list[Integers]:
    """The places in each pool of the latest rows of a key at each time of one of its new rows, in order of time.

    Left out are times at which some input that is `needed` has had no row of the key yet; of others the place is -1
    then. The first `before` rows of a pool are no new ones.
    """
    sizes = [pool.num_rows for pool in pools]
    ports, places = np.repeat(np.arange(len(pools)), sizes), np.concatenate([np.arange(size) for size in sizes])
    numbers, times = (np.concatenate([integer_column(pool, name) for pool in pools]) for name in (NUMBER, TIME))
    order = np.lexsort((times, numbers))
    ports, places, numbers, times = ports[order], places[order], numbers[order], times[order]
    steps = np.arange(len(order))
    begins = np.maximum.accumulate(np.where(starts(numbers), steps, 0))
    latest = [np.maximum.accumulate(np.where(ports == port, steps, -1)) for port in range(len(pools))]
    ends = np.append((numbers[1:] != numbers[:-1]) | (times[1:] != times[:-1]), True)
    found: Mask = ends & (places >= np.array(before)[ports])
    for port in needed:
        found &= latest[port] >= begins
    at = np.flatnonzero(found)
    at = at[np.argsort(times[at], kind="stable")]
    return [np.where(each[at] >= begins[at], places[each[at]], NONE) for each in latest]
