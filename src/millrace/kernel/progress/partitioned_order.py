"""The order contracts of streams that consist of partitions or groups, each with a progress of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.kernel.columns.expressions import Expression
from millrace.kernel.columns.grouping import codes_of
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import NO_BOUND, GroupPunctuation, Microseconds, Times
from millrace.kernel.progress.order import Entering, Order, PartitionState, PartitionValues, less, promises
from millrace.kernel.progress.partition_progress import PartitionProgress


class Partitioned(Order):
    """Progress by partition: the bound is the least of those of the partitions seen so far.

    State: for each partition its least and greatest time, the clock at which its last row came, and the bound that it
    allows. A partition that turns up late does not take the bound back: its rows below the bound are late. So it may be
    `declared`: then the bound waits for its first row, until it is not declared any more; None if others say which
    there are. And nothing lets the bound rise before some partition has sent rows over the `grace`.
    """

    def __init__(
        self,
        columns: Sequence[str],
        disorder: Microseconds,
        promise: Expression | None,
        declared: Sequence[PartitionValues] | None = None,
        grace: Microseconds | None = None,
    ) -> None:
        super().__init__(disorder)
        self.columns = tuple(columns)
        self.promise = promise
        self.grace = grace
        self._declared: dict[str, None] | None = None
        self._partitions = PartitionProgress()
        self._shared = False
        if declared is not None:
            self.declare(declared)
        self._behind: Times | None = None

    def after(self, entering: Entering) -> Times:
        codes, first_rows = self._codes(entering.rows)
        allowed = self._partitions.allowed
        before, reached = self._reached(codes, entering)
        bounds = np.empty(len(codes), np.int64)
        for begin, end, known in self._stretches(first_rows, len(codes)):
            allowed[codes[begin:end]] = reached[begin:end]
            # The bound of a partition is what its next row finds before it, or what the stretch leaves: so the least of
            # these from a row on is the least over all partitions.
            bounds[end - 1] = allowed[:known].min()
            bounds[begin : end - 1] = before[begin + 1 : end]
            bounds[begin:end] = np.minimum.accumulate(bounds[begin:end][::-1])[::-1]
        bounds[: self._in_grace(codes, entering.times)] = NO_BOUND
        self._partitions.see(codes, entering.times, entering.now)
        return bounds

    def _reached(self, codes: Integers, entering: Entering) -> tuple[Times, Times]:
        """For each row the bound of its partition before it and up to it; notes how far rows came behind."""
        parts = self._partitions
        if self.promise is not None:
            self._behind = None
            return _running(codes, promises(self.promise, entering), parts.allowed)
        before, reached = _running(codes, entering.times, parts.greatest)
        self._behind = reached - entering.times
        # What a partition has allowed by an earlier rule, such as less disorder, it does not take back.
        floors = parts.allowed[codes]
        return np.maximum(less(before, self.disorder), floors), np.maximum(less(reached, self.disorder), floors)

    def behind(self, entering: Entering) -> Times | None:
        return self._behind

    def _in_grace(self, codes: Integers, times: Times) -> int:
        """How many of these rows come before the grace is over."""
        if self.grace is None or not self.starting:
            return 0
        parts = self._partitions
        least = -_running(codes, -times, -parts.least)[1]
        over = np.flatnonzero(_running(codes, times, parts.greatest)[1] - least >= self.grace)
        return int(over[0]) if len(over) else len(times)

    @property
    def starting(self) -> bool:
        return self.grace is not None and not bool((self._partitions.spans() >= self.grace).any())

    @property
    def parts(self) -> int:
        return len(self._partitions)

    def slowest(self, count: int) -> list[PartitionState]:
        parts = self._partitions
        least = np.arange(len(parts))
        if len(least) > count:
            least = np.argpartition(parts.allowed, count)[:count]
        first = least[np.lexsort((parts.seen_at[least], parts.allowed[least]))]
        columns = (parts.greatest, parts.seen_at, parts.allowed)
        return [
            PartitionState(tuple(json.loads(parts.names[each])), *(int(column[each]) for column in columns))
            for each in first
        ]

    @property
    def partitions(self) -> PartitionProgress | None:
        return self._partitions if len(self._partitions) else None

    def expect(self, partitions: Iterable[PartitionValues]) -> None:
        self._partitions.numbers_of([json.dumps(values) for values in partitions])

    def declare(self, partitions: Iterable[PartitionValues]) -> None:
        self._declared = dict.fromkeys(json.dumps(values) for values in partitions)
        self._wait()

    def _wait(self) -> None:
        """Wait for the declared partitions, and for no others that have not sent a row."""
        if self._declared is not None and not self._shared:
            self._partitions.forget_unheard(self._declared)
            self._partitions.numbers_of(list(self._declared))

    def restart_silence(self, now: Microseconds) -> None:
        self._partitions.restart_silence(now)

    def share(self, other: Order) -> None:
        assert isinstance(other, Partitioned)
        self._partitions, self._shared = other._partitions, True

    def save(self) -> dict[str, Any]:
        return {} if self._shared else {"partitions": [self._partitions.whole()]}

    def changes(self) -> dict[str, Any]:
        changed = "" if self._shared else self._partitions.changes()
        return {"partitions": [changed] if changed else []}

    def restore(self, saved: dict[str, Any]) -> None:
        if not self._shared:
            self._partitions.restore(saved["partitions"])
            self._wait()

    def join(self, saves: Sequence[dict[str, Any]], bounds: Sequence[Microseconds]) -> Microseconds:
        """Each partition as far as any file brought it. A file's own bound knows nothing of the others' partitions."""
        self._absorb(saves)
        allowed = int(self._partitions.allowed.min()) if len(self._partitions) and not self.starting else NO_BOUND
        # One that read everything may have passed a bound before a partition turned up that is behind it.
        return max(*bounds, allowed) if len(saves) == 1 else allowed

    def _absorb(self, saves: Sequence[dict[str, Any]]) -> None:
        for text in (text for save in saves if not self._shared for text in save["partitions"]):
            self._partitions.absorb(text)
        self._wait()

    def _codes(self, rows: pa.RecordBatch) -> tuple[Integers, list[int]]:
        """Each row's partition by number, and the first rows of those that are new."""
        columns = [rows.column(name) for name in self.columns]
        codes, first = codes_of(columns, rows.num_rows)
        texts = [column.take(pa.array(first)).cast(pa.string()).to_pylist() for column in columns]
        known = len(self._partitions)
        numbers = self._partitions.numbers_of([json.dumps(values) for values in zip(*texts, strict=True)])
        return numbers[codes], [int(row) for row in first[numbers >= known]]

    def _stretches(self, first_rows: list[int], count: int) -> Iterator[tuple[int, int, int]]:
        """Rows from one new partition to the next, and how many partitions have been seen by then."""
        known = len(self._partitions) - len(first_rows)
        edges = [*first_rows, count]
        if edges[0] > 0:
            yield 0, edges[0], known
        for number, (begin, end) in enumerate(pairwise(edges), start=1):
            yield begin, end, known + number


class PerGroup(Partitioned):
    """A promise is for the rows of its own group: it moves no bound of the stream, and no other group waits for it."""

    def __init__(self, columns: Sequence[str], promise: Expression) -> None:
        super().__init__(columns, 0, promise)
        self._floors: Times | None = None
        self._told: Times = np.empty(0, np.int64)
        """What was last said of each group."""

    def after(self, entering: Entering) -> Times:
        parts = self._partitions
        parts.keys = pa.schema([entering.rows.schema.field(name) for name in self.columns])
        codes, _ = self._codes(entering.rows)
        assert self.promise is not None
        before, reached = _running(codes, promises(self.promise, entering), parts.allowed)
        np.maximum.at(parts.allowed, codes, reached)
        parts.see(codes, entering.times, entering.now)
        self._floors = before
        return np.full(len(codes), NO_BOUND, np.int64)

    def floors(self) -> Times | None:
        return self._floors

    def group_promises(self) -> GroupPunctuation | None:
        known, parts = len(self._told), self._partitions
        advanced = np.flatnonzero(parts.allowed[:known] > self._told)
        changed = np.concatenate([advanced, np.arange(known, len(parts))])
        if not len(changed):
            return None
        self._told = parts.allowed.copy()
        assert parts.keys is not None
        texts = zip(*(json.loads(parts.names[number]) for number in changed), strict=True)
        keys = [
            pa.array(list(each), pa.string()).cast(field.type) for each, field in zip(texts, parts.keys, strict=True)
        ]
        return GroupPunctuation(pa.RecordBatch.from_arrays(keys, schema=parts.keys), parts.allowed[changed])

    def announce_all(self) -> None:
        self._told = np.empty(0, np.int64)

    def save(self) -> dict[str, Any]:
        return {**super().save(), "told": len(self._told) == len(self._partitions)}

    def restore(self, saved: dict[str, Any]) -> None:
        super().restore(saved)
        self._told = self._partitions.allowed.copy() if saved.get("told") else np.empty(0, np.int64)

    def join(self, saves: Sequence[dict[str, Any]], bounds: Sequence[Microseconds]) -> Microseconds:
        """The bound of the last file, which read them all one after another; no group moves it."""
        self._absorb(saves)
        return max(bounds)


def _running(codes: Integers, values: Times, allowed: Times) -> tuple[Times, Times]:
    """For each row the greatest value of its partition before it and up to it."""
    before, reached = np.empty_like(values), np.empty_like(values)
    by_partition = np.argsort(codes, kind="stable")
    edges = np.flatnonzero(np.diff(codes[by_partition])) + 1
    for rows in np.split(by_partition, edges):
        until = np.maximum(np.maximum.accumulate(values[rows]), allowed[codes[rows[0]]])
        reached[rows] = until
        before[rows[0]] = allowed[codes[rows[0]]]
        before[rows[1:]] = until[:-1]
    return before, reached
