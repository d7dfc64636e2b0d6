"""How far the rows of an external stream let its bound rise, one class an order contract.

Rules:
- An order says for each row what bound the rows up to it allow; the edge of the stream keeps the greatest of all.
- What it says depends on the rows and their order alone, not on how they were cut into batches.
- Late rows count: they tell how far the source has come, though they are let in no more. Quarantined rows do not.
- `save` gives plain data; `join` takes the data of several files that were read side by side, in their order, and may
  say less than reading them one after another would, never more.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millrace.errors import RunError
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, GroupPunctuation, Microseconds, Times
from millrace.kernel.expressions import Expression
from millrace.kernel.grouping import codes_of

Codes = npt.NDArray[np.int64]


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


@dataclass(frozen=True, slots=True)
class Part:
    """How far a partition or group has come: its values as texts, its greatest time, when that came, and its bound."""

    values: tuple[str | None, ...]
    greatest: Microseconds
    seen_at: Microseconds
    bound: Microseconds


class Order:
    """Rows trail the greatest time before them by at most `disorder` (0: ordered)."""

    def __init__(self, disorder: Microseconds = 0) -> None:
        self.disorder = disorder

    def after(self, entering: Entering) -> Times:
        """For each row the bound that it and the rows before it allow; NO_BOUND where they say nothing."""
        return less(entering.greatest, self.disorder)

    def floors(self) -> Times | None:
        """Of the rows last asked about: what the group of each had promised before it; None without groups."""
        return None

    def news(self) -> GroupPunctuation | None:
        """The groups whose promises have advanced since the last call, and those that are new."""
        return None

    def tell_anew(self) -> None:
        """Let the next news be of all groups: someone listens who has not heard any."""

    @property
    def parts(self) -> int:
        """How many partitions or groups have been seen."""
        return 0

    def slowest(self, count: int) -> list[Part]:
        """The partitions or groups that are furthest behind, the last first."""
        return []

    def lead(self) -> Microseconds | None:
        """How far the slowest partition is ahead of the clock; None where the stream has no partitions."""
        return None

    def listen_anew(self, now: Microseconds) -> None:
        """Count silence from now on."""

    def save(self) -> dict[str, Any]:
        """What it must remember, as plain data."""
        return {}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""

    def join(self, saves: Sequence[dict[str, Any]], bounds: Sequence[Microseconds]) -> Microseconds:
        """Go on from what several files came to, each with its bound; the bound they allow together."""
        self.restore(saves[-1])
        return max(bounds)


class TrailingRows(Order):
    """A row trails by at most `count` rows: what is older than that can be passed by none to come.

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
        self._last = np.array(saved["last"], np.int64)


class Punctuated(Order):
    """The source itself promises: by a time below which none will follow, or by marking a row whose time is one."""

    def __init__(self, promise: Expression) -> None:
        super().__init__()
        self.promise = promise

    def after(self, entering: Entering) -> Times:
        """Each row's promise; the greatest so far is kept by the edge of the stream."""
        return promises(self.promise, entering)


class Partitioned(Order):
    """Progress by partition: the bound is the least of those of the partitions seen so far.

    State: for each partition its greatest time, the clock at which it came, and the bound that it allows.
    A partition that turns up late does not take the bound back: its rows below the bound are late.
    """

    def __init__(self, columns: Sequence[str], disorder: Microseconds, promise: Expression | None) -> None:
        super().__init__(disorder)
        self.columns = tuple(columns)
        self.promise = promise
        self._numbers: dict[str, int] = {}
        self._greatest: Times = np.empty(0, np.int64)
        self._seen_at: Times = np.empty(0, np.int64)
        self._allowed: Times = np.empty(0, np.int64)

    def after(self, entering: Entering) -> Times:
        codes, first_rows = self._codes(entering.rows)
        if self.promise is None:
            values = less(entering.times, self.disorder)
        else:
            values = promises(self.promise, entering)
        before, reached = _running(codes, values, self._allowed)
        bounds = np.empty(len(codes), np.int64)
        for begin, end, known in self._stretches(first_rows, len(codes)):
            self._allowed[codes[begin:end]] = reached[begin:end]
            # A partition stands where its next row finds it, or where the stretch leaves it: the least of all that
            # is still to be found is the least of all partitions.
            bounds[end - 1] = self._allowed[:known].min()
            bounds[begin : end - 1] = before[begin + 1 : end]
            bounds[begin:end] = np.minimum.accumulate(bounds[begin:end][::-1])[::-1]
        self._note(codes, entering)
        return bounds

    @property
    def parts(self) -> int:
        return len(self._numbers)

    def slowest(self, count: int) -> list[Part]:
        least = np.arange(len(self._allowed))
        if len(least) > count:
            least = np.argpartition(self._allowed, count)[:count]
        first = least[np.lexsort((self._seen_at[least], self._allowed[least]))]
        names = list(self._numbers)
        columns = (self._greatest, self._seen_at, self._allowed)
        return [Part(tuple(json.loads(names[each])), *(int(column[each]) for column in columns)) for each in first]

    def lead(self) -> Microseconds | None:
        return int((self._greatest - self._seen_at).min()) if len(self._greatest) else None

    def listen_anew(self, now: Microseconds) -> None:
        self._seen_at[:] = now

    def save(self) -> dict[str, Any]:
        columns = (self._greatest.tolist(), self._seen_at.tolist(), self._allowed.tolist())
        return {"partitions": dict(zip(self._numbers, zip(*columns, strict=True), strict=True))}

    def restore(self, saved: dict[str, Any]) -> None:
        partitions = saved["partitions"]
        self._numbers = {name: number for number, name in enumerate(partitions)}
        columns = np.array(list(partitions.values()), np.int64).reshape(-1, 3)
        self._greatest, self._seen_at, self._allowed = (columns[:, each].copy() for each in range(3))

    def join(self, saves: Sequence[dict[str, Any]], bounds: Sequence[Microseconds]) -> Microseconds:
        """Each partition as far as any file brought it. A file's own bound knows nothing of the others' partitions."""
        if len(saves) == 1:
            return super().join(saves, bounds)
        joined: dict[str, tuple[int, int, int]] = {}
        for save in saves:
            for name, (greatest, seen_at, allowed) in save["partitions"].items():
                known = joined.get(name, (NO_BOUND, NO_BOUND, NO_BOUND))
                newer = (greatest, seen_at) if greatest > known[0] else known[:2]
                joined[name] = (*newer, max(allowed, known[2]))
        self.restore({"partitions": joined})
        return int(self._allowed.min()) if joined else NO_BOUND

    def _codes(self, rows: pa.RecordBatch) -> tuple[Codes, list[int]]:
        """Each row's partition by number, and the first rows of those that are new."""
        columns = [rows.column(name) for name in self.columns]
        codes, first = codes_of(columns, rows.num_rows)
        texts = [column.take(pa.array(first)).cast(pa.string()).to_pylist() for column in columns]
        names = [json.dumps(values) for values in zip(*texts, strict=True)]
        known = len(self._numbers)
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in names]
        fresh = [int(row) for row, number in zip(first, numbers, strict=True) if number >= known]
        for name in ("_greatest", "_seen_at", "_allowed"):
            setattr(self, name, np.concatenate([getattr(self, name), np.full(len(fresh), NO_BOUND, np.int64)]))
        return np.array(numbers, np.int64)[codes], fresh

    def _stretches(self, first_rows: list[int], count: int) -> Iterator[tuple[int, int, int]]:
        """Rows from one new partition to the next, and how many partitions have been seen by then."""
        known = len(self._numbers) - len(first_rows)
        edges = [*first_rows, count]
        if edges[0] > 0:
            yield 0, edges[0], known
        for number, (begin, end) in enumerate(pairwise(edges), start=1):
            yield begin, end, known + number

    def _note(self, codes: Codes, entering: Entering) -> None:
        """Take each partition's greatest time into account, and when it came."""
        before = self._greatest.copy()
        np.maximum.at(self._greatest, codes, entering.times)
        self._seen_at[self._greatest > before] = entering.now


class PerGroup(Partitioned):
    """A promise is for the rows of its own group: it moves no bound of the stream, and no other group waits for it."""

    def __init__(self, columns: Sequence[str], promise: Expression) -> None:
        super().__init__(columns, 0, promise)
        self._schema: pa.Schema | None = None
        self._floors: Times | None = None
        self._told: Times = np.empty(0, np.int64)
        """What was last said of each group."""

    def after(self, entering: Entering) -> Times:
        self._schema = pa.schema([entering.rows.schema.field(name) for name in self.columns])
        codes, _ = self._codes(entering.rows)
        assert self.promise is not None
        before, reached = _running(codes, promises(self.promise, entering), self._allowed)
        np.maximum.at(self._allowed, codes, reached)
        self._note(codes, entering)
        self._floors = before
        return np.full(len(codes), NO_BOUND, np.int64)

    def floors(self) -> Times | None:
        return self._floors

    def news(self) -> GroupPunctuation | None:
        known = len(self._told)
        advanced = np.flatnonzero(self._allowed[:known] > self._told)
        changed = np.concatenate([advanced, np.arange(known, len(self._allowed))])
        if not len(changed):
            return None
        self._told = self._allowed.copy()
        assert self._schema is not None
        names = list(self._numbers)
        texts = zip(*(json.loads(names[number]) for number in changed), strict=True)
        keys = [
            pa.array(list(each), pa.string()).cast(field.type) for each, field in zip(texts, self._schema, strict=True)
        ]
        return GroupPunctuation(pa.RecordBatch.from_arrays(keys, schema=self._schema), self._allowed[changed])

    def tell_anew(self) -> None:
        self._told = np.empty(0, np.int64)

    def save(self) -> dict[str, Any]:
        schema = "" if self._schema is None else base64.b64encode(self._schema.serialize()).decode()
        return {**super().save(), "schema": schema}

    def restore(self, saved: dict[str, Any]) -> None:
        known = list(self._numbers)
        super().restore(saved)
        if saved["schema"]:
            self._schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(saved["schema"])))
        if list(self._numbers)[: len(known)] != known:
            self.tell_anew()

    def join(self, saves: Sequence[dict[str, Any]], bounds: Sequence[Microseconds]) -> Microseconds:
        """What the last file came to: files of such a stream are read one after another."""
        return Order.join(self, saves, bounds)


def _running(codes: Codes, values: Times, allowed: Times) -> tuple[Times, Times]:
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


def promises(promise: Expression, entering: Entering) -> Times:
    """What each row promises; NO_BOUND where it promises nothing, or more than is believed."""
    try:
        said = promise.over(entering.rows)
    except pa.ArrowException as error:
        raise RunError(
            f'the promise "{promise}" failed: {str(error).splitlines()[0]}',
            hint="The rows it failed on were not let in; change PUNCTUATED BY.",
        ) from error
    if pa.types.is_boolean(said.type):
        marked = said.fill_null(False).to_numpy(zero_copy_only=False)
        until: Times = np.where(marked, entering.times, NO_BOUND)
    else:
        until = said.cast(pa.int64()).fill_null(NO_BOUND).to_numpy(zero_copy_only=False)
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
