"""A server in front of which an update queue stands, and rows for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from millrace.kernel.elements import ARRIVED, END_OF_TIME, TIME, Batch, Punctuation
from millrace.kernel.metrics import InputCounts
from millrace.kernel.state import Changes
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.kernel.updates.update_queue import UpdateQueue
from tests.reference_updates import Delivery, Row

Cut = Callable[[Sequence[Row]], Iterator[Sequence[Row]]]


def whole(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """All rows in one batch."""
    yield rows


def singly(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """A batch a row."""
    for row in rows:
        yield [row]


def batch_of(rows: Sequence[Row]) -> Batch:
    """Rows as a batch with the columns k, v, and their arrival."""
    columns = {
        "k": pa.array([row.key for row in rows], pa.string()),
        "v": pa.array([row.value for row in rows], pa.int64()),
        TIME: pa.array([row.time for row in rows], pa.int64()),
        ARRIVED: pa.array([row.arrival for row in rows], pa.int64()),
    }
    return Batch(pa.record_batch(columns))


def queue_of(policy: str = "inplace", **options: Any) -> UpdateQueue:
    """A queue by the column k."""
    inputs, truth = options.pop("inputs", 1), options.pop("truth", None)
    return UpdateQueue(["k"], QueueSettings(policy, **options), inputs, truth)


class Server:
    """Works on what a queue lets go, one row at a time, and takes `cost` for it.

    `between` is called before each row, with how many have been served: it may give another queue to go on with.
    """

    def __init__(
        self,
        queue: UpdateQueue,
        cost: int,
        *,
        cut: Cut = whole,
        between: Callable[[int, UpdateQueue], UpdateQueue] = lambda served, queue: queue,
    ) -> None:
        self.queue = queue
        self.cost = cost
        self.cut = cut
        self.between = between
        self.deliveries: list[Delivery] = []

    def run(self, rows: Sequence[Row], until: int | None = None) -> Server:
        """Work all rows off; or go on until a moment, and leave the rest waiting."""
        at, now = 0, 0
        while at < len(rows) or self.queue.held:
            if not self.queue.held:
                now = max(now, rows[at].arrival)
            stop = at
            while stop < len(rows) and rows[stop].arrival <= now:
                stop += 1
            self.enter(rows[at:stop], now)
            at = stop
            if until is not None and now > until:
                break
            self.queue = self.between(len(self.deliveries), self.queue)
            if self.queue.held:
                now = self.serve(now)
        return self

    def enter(self, rows: Sequence[Row], now: int) -> None:
        """Rows come in, by whatever input each one comes."""
        for piece in self.cut(rows):
            for part in _by_port(piece):
                self.queue.on_time(now)
                assert not list(self.queue.on_batch(part[0].port, batch_of(part)))

    def serve(self, now: int) -> int:
        """Let one row go and deliver it; the time when that is done."""
        self.queue.on_time(now)
        [batch] = self.queue.on_more(1)
        assert isinstance(batch, Batch)
        [row] = batch.rows.to_pylist()
        let_go, now = now, now + self.cost
        self.queue.on_time(now)
        self.queue.on_rest()
        self.deliveries.append(Delivery(let_go, now, Row(row[ARRIVED], row[TIME], row["k"], row["v"])))
        return now

    def values(self) -> list[Any]:
        """The values delivered, in order."""
        return [each.row.value for each in self.deliveries]


def _by_port(rows: Sequence[Row]) -> Iterator[list[Row]]:
    part: list[Row] = []
    for row in rows:
        if part and row.port != part[-1].port:
            yield part
            part = []
        part.append(row)
    if part:
        yield part


def restored(queue: UpdateQueue, segments: dict[int, pa.Table], settings: QueueSettings | None = None) -> UpdateQueue:
    """A queue that goes on from what another one saves; `segments` holds what it saved before."""
    changes = queue.changes()
    for number in changes.removed:
        del segments[number]
    segments.update(changes.added)
    inputs = len(queue.queue_metrics(queue.now).by_input)
    made = UpdateQueue(queue.key, settings or queue.settings, inputs, queue.truth)
    made.restore(Changes(dict(segments), (), changes.note))
    return made


def drained(queue: UpdateQueue) -> list[dict[str, Any]]:
    """All that a queue lets go when its input ends."""
    list(queue.on_punctuation(Punctuation(END_OF_TIME)))
    rows = list[dict[str, Any]]()
    while queue.unfinished:
        for element in queue.on_more(None):
            rows += element.rows.to_pylist() if isinstance(element, Batch) else []
        queue.on_rest()
    return rows


def check_counts(queue: UpdateQueue) -> None:
    """entered == let_go + superseded + shed + waiting, for each input and all together."""
    metrics = queue.queue_metrics(queue.now)
    assert metrics.waiting == queue.held
    whole = InputCounts(metrics.entered, metrics.let_go, metrics.superseded, metrics.shed, metrics.waiting)
    for each in (whole, *metrics.by_input):
        assert each.entered == each.let_go + each.superseded + each.shed + each.waiting
        assert min(each.entered, each.let_go, each.superseded, each.shed, each.waiting) >= 0
    assert sum(each.waiting for each in metrics.by_input) == queue.held
