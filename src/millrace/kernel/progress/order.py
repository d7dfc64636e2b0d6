"""How far the rows of an external stream let its bound rise, one class per order contract.

Rules:
- An order says for each row what bound the rows up to it allow; the edge of the stream keeps the greatest of all.
- What it says depends on the rows and their order alone, not on how they were cut into batches.
- Late rows count: they tell how far the source has come, though they are not admitted. Quarantined rows do not.
- `save` gives plain data; `join` takes the data of several files that were read side by side, in their order, and may
  allow a lower bound than reading them one after another would, never a higher one. The data about partitions may be
  `changes` alone: the caller of `join` knows the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.errors import RunError
from millrace.kernel.columns.expressions import Expression
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, GroupPunctuation, Microseconds, Times, as_times
from millrace.kernel.progress.partition_progress import PartitionProgress


@dataclass(frozen=True, slots=True)
class Entering:
    """Rows at the edge of a stream, all with a time and none from the future.

    `greatest` is for each row the greatest time up to it; `limits` how far ahead a promise is believed, if guarded.
    """

    rows: pa.RecordBatch
    times: Times
    greatest: Times
    limits: Times | None
    now: Microseconds


PartitionValues = tuple[str | None, ...]
"""The values that a partition or group has in its columns, as texts."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """How far a partition or group has come: its values as texts, its greatest time, the clock of its last row, and its
    bound."""

    values: PartitionValues
    greatest: Microseconds
    seen_at: Microseconds
    bound: Microseconds


class Order:
    """Rows trail the greatest time before them by at most `disorder` (0: ordered)."""

    def __init__(self, disorder: Microseconds = 0) -> None:
        self.disorder = disorder

    def after(self, entering: Entering) -> Times:
        """For each row the bound that it and the rows before it allow; NO_BOUND where they allow none."""
        return less(entering.greatest, self.disorder)

    def behind(self, entering: Entering) -> Times | None:
        """For each row of the last `after` how far it came behind the rows before it; None where nothing says so."""
        return entering.greatest - entering.times

    def floors(self) -> Times | None:
        """For each row of the last `after`: what its group had promised before it; None without groups."""
        return None

    def group_promises(self) -> GroupPunctuation | None:
        """The groups whose promises have advanced since the last call, and those that are new."""
        return None

    def announce_all(self) -> None:
        """Make the next `group_promises` name all groups: a new consumer has not heard of any."""

    @property
    def parts(self) -> int:
        """How many partitions or groups have been seen."""
        return 0

    def slowest(self, count: int) -> list[PartitionState]:
        """The partitions or groups that are furthest behind, the slowest first."""
        return []

    @property
    def starting(self) -> bool:
        """True until the grace for partitions that have not turned up is over."""
        return False

    @property
    def partitions(self) -> PartitionProgress | None:
        """The partitions whose least bound is the stream's, each of which may be silent; None without any."""
        return None

    def expect(self, partitions: Iterable[PartitionValues]) -> None:
        """Let the bound wait for the first rows, or the silence, of these partitions."""

    def declare(self, partitions: Iterable[PartitionValues]) -> None:
        """Let the bound wait for these partitions, and no longer for others that have not sent a row."""

    def restart_silence(self, now: Microseconds) -> None:
        """Count silence from now on."""

    def share(self, other: Order) -> None:
        """Use the partitions that another order of the stream knows, from now on, and learn of none by itself."""

    def save(self) -> dict[str, Any]:
        """What it must remember, as plain data; not what it shares."""
        return {}

    def changes(self) -> dict[str, Any]:
        """The same, with only the partitions and groups that have changed since the last call."""
        return self.save()

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""

    def join(self, saves: Sequence[dict[str, Any]], bounds: Sequence[Microseconds]) -> Microseconds:
        """Go on from what several files came to, each with its bound; the bound they allow together."""
        self.restore(saves[-1])
        return max(bounds)


class TrailingRows(Order):
    """A row trails by at most `count` rows: no later row is below the greatest time among all rows but the last
    `count`.

    State: the times of the last `count` rows.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self._last: Times = np.empty(0, np.int64)

    def after(self, entering: Entering) -> Times:
        """The greatest time among the rows that came at least `count` rows earlier."""
        times = np.concatenate([self._last, entering.times])
        old = np.maximum.accumulate(times)[: max(len(times) - self.count, 0)]
        bounds = np.full(len(entering.times), NO_BOUND, np.int64)
        said = min(len(old), len(bounds))
        bounds[len(bounds) - said :] = old[len(old) - said :]
        self._last = times[max(len(times) - self.count, 0) :]
        return bounds

    def save(self) -> dict[str, Any]:
        return {"last": self._last.tolist()}

    def restore(self, saved: dict[str, Any]) -> None:
        # An order by another rule has kept no rows: the stream's bound knows of them.
        self._last = np.array(saved.get("last", ()), np.int64)


class Punctuated(Order):
    """The source itself promises: by a time below which no row will follow, or by marking rows whose time is such a
    promise."""

    def __init__(self, promise: Expression) -> None:
        super().__init__()
        self.promise = promise

    def after(self, entering: Entering) -> Times:
        """Each row's promise; the greatest so far is kept by the edge of the stream."""
        return promises(self.promise, entering)


def promises(promise: Expression, entering: Entering) -> Times:
    """What each row promises; NO_BOUND where it promises nothing, or more than is believed."""
    try:
        said = promise.over(entering.rows)
    except pa.ArrowException as error:
        raise RunError(
            f'the promise "{promise}" failed: {str(error).splitlines()[0]}',
            hint="The rows it failed on were not admitted; change PUNCTUATED BY.",
        ) from error
    if pa.types.is_boolean(said.type):
        marked = said.fill_null(False).to_numpy(zero_copy_only=False)
        until: Times = np.where(marked, entering.times, NO_BOUND)
    else:
        until = as_times(said).fill_null(NO_BOUND).to_numpy(zero_copy_only=False)
    return until if entering.limits is None else np.where(until > entering.limits, NO_BOUND, until)


def less(times: Times, length: Microseconds) -> Times:
    """Times less a length, without falling off the lower end."""
    if not length:
        return times
    earlier: Times = np.maximum(times, NO_BOUND + length) - length
    return earlier


def plus(times: Times, length: Microseconds) -> Times:
    """Times plus a length, without falling off the upper end."""
    later: Times = np.minimum(times, END_OF_TIME - length) + length
    return later
