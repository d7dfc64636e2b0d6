"""What released the rows of a query, as columns of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.elements import (
    END_OF_TIME,
    NO_BOUND,
    RESERVED,
    TIMESTAMP,
    Batch,
    Cause,
    Element,
    Microseconds,
)
from millrace.kernel.operator import Operator

COLUMNS = ("released_by", "released_how", "released_bound", "released_at")
_RECENT = 20
"""How many of the last releases are remembered."""


@dataclass(frozen=True, slots=True)
class PastRelease:
    """Rows that left together: what released them, how many they were, and when."""

    release: Cause
    rows: int
    at: Microseconds


class Released(Operator):
    """Rows with four columns more: the stream whose promise released them, how that came about, its bound, the clock.

    State: none; the last releases are remembered for `millrace why`, and not saved. Punctuations: passed on unchanged.
    """

    label = "released"
    passes_rows = True

    def __init__(self, *, by_number: bool = False) -> None:
        self._bound_type = pa.int64() if by_number else TIMESTAMP
        self._release: Cause | None = None
        self._now: Microseconds = 0
        self.recent: deque[PastRelease] = deque(maxlen=_RECENT)

    def on_release(self, release: Cause | None, now: Microseconds) -> None:
        """Learn what releases the next rows."""
        self._release, self._now = release, now

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        release, rows = self._release or Cause("", "", NO_BOUND), batch.rows
        known = release.bound not in (NO_BOUND, END_OF_TIME)
        values = [
            pa.scalar(release.stream or None, pa.string()),
            pa.scalar(release.how or None, pa.string()),
            pa.scalar(release.bound if known else None, pa.int64()).cast(self._bound_type),
            pa.scalar(self._now, pa.int64()).cast(TIMESTAMP),
        ]
        self._remember(release, len(batch))
        columns = {name: rows.column(name) for name in rows.schema.names}
        told = {name: pa.repeat(value, len(batch)) for name, value in zip(COLUMNS, values, strict=True)}
        kept = {name: column for name, column in columns.items() if name not in RESERVED}
        last = {name: column for name, column in columns.items() if name in RESERVED}
        yield Batch(pa.RecordBatch.from_pydict({**kept, **told, **last}))

    def _remember(self, release: Cause, rows: int) -> None:
        if self.recent and (self.recent[-1].release, self.recent[-1].at) == (release, self._now):
            rows += self.recent.pop().rows
        self.recent.append(PastRelease(release, rows, self._now))


# Between graphs

_CARRIED = ("__released_stream", "__released_how", "__released_bound")


def with_release(batch: Batch, release: Cause | None) -> Batch:
    """Rows that carry to another graph what released them in this one."""
    release = release or Cause("", "", NO_BOUND)
    rows = batch.rows
    for name, value in zip(_CARRIED, (release.stream, release.how, release.bound), strict=True):
        rows = rows.append_column(name, pa.repeat(pa.scalar(value), len(batch)))
    return Batch(rows, batch.until)


def by_release(rows: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Cause | None]]:
    """Rows of another graph, in groups that were released by the same promise; one group if rows do not carry it."""
    if _CARRIED[0] not in rows.schema.names:
        yield rows, None
        return
    plain = rows.drop_columns(list(_CARRIED))
    carried = pa.Table.from_batches([rows.select(list(_CARRIED))])
    for each in carried.group_by(list(_CARRIED), use_threads=False).aggregate([]).to_pylist():
        stream, how, bound = (each[name] for name in _CARRIED)
        same = [pc.equal(rows.column(name), each[name]) for name in _CARRIED]
        chosen = pc.and_(pc.and_(same[0], same[1]), same[2])
        yield plain.filter(chosen), Cause(stream, how, bound)
