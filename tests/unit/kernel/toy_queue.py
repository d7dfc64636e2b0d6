"""A small queue for tests of the executor: plain Python, a row a key, keys in the order in which they began to wait."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Batch, Element, Microseconds, Punctuation
from millrace.kernel.metrics import InputCounts, QueueMetrics
from millrace.kernel.state import Changes
from millrace.kernel.updates.queue import Queue


class ToyQueue(Queue):
    """The newest row of each key `n % keys`, oldest key first; `log` says what it was told and when."""

    label = "toy_queue"

    def __init__(self, keys: int = 1_000_000, inputs: int = 1) -> None:
        self.keys = keys
        self.waits: dict[int, tuple[pa.RecordBatch, int, Microseconds, int]] = {}
        """By key its row, the row's time, since when the key waits, and the input it came by."""
        self.counts = [[0, 0, 0] for _ in range(inputs)]
        """By input the rows that entered, were let go, were superseded."""
        self.bound = NO_BOUND
        self.log: list[tuple[Microseconds, str, int]] = []
        self.fixed_urgency: float | None = None

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self.log.append((self.now, "takes", len(batch)))
        for at, number in enumerate(batch.rows.column("n").to_pylist()):
            self.counts[port][0] += 1
            known = self.waits.get(number % self.keys)
            if known is not None:
                self.counts[known[3]][2] += 1
            since = self.now if known is None else known[2]
            self.waits[number % self.keys] = (batch.rows.slice(at, 1), int(batch.times[at]), since, port)
        return iter(())

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        self.bound = punctuation.until
        self.ended = punctuation.until == END_OF_TIME
        yield self._promise()

    def on_more(self, limit: int | None) -> Iterator[Element]:
        count = min(self.portion(limit, self.row_cost), len(self.waits))
        rows = [self.waits.pop(key) for key in list(self.waits)[:count]]
        for _, _, _, port in rows:
            self.counts[port][1] += 1
        self.use_up(count)
        self.log.append((self.now, "lets go", count))
        yield Batch(pa.concat_batches([row for row, _, _, _ in rows]))
        yield self._promise()

    def _promise(self) -> Punctuation:
        return Punctuation(min([self.bound, *(time for _, time, _, _ in self.waits.values())]))

    def on_rest(self) -> None:
        self.log.append((self.now, "rests", 0))

    def urgency(self, now: Microseconds) -> float:
        if self.fixed_urgency is not None:
            return self.fixed_urgency
        return float(now - next(iter(self.waits.values()))[2])

    @property
    def held(self) -> int:
        return len(self.waits)

    def input_counts(self) -> tuple[InputCounts, ...]:
        return tuple(
            InputCounts(entered, let_go, superseded, 0, sum(each[3] == port for each in self.waits.values()))
            for port, (entered, let_go, superseded) in enumerate(self.counts)
        )

    def queue_metrics(self, now: Microseconds) -> QueueMetrics:
        entered, let_go, superseded = map(sum, zip(*self.counts, strict=True))
        oldest = max((now - since for _, _, since, _ in self.waits.values()), default=0)
        return QueueMetrics(
            "toy", len(self.waits), self.held, entered, let_go, superseded, oldest=oldest, by_input=self.input_counts()
        )

    def staleness(self, now: Microseconds) -> pa.Table:
        waits = self.waits.items()
        return pa.table(
            {
                "key": pa.array([key for key, _ in waits], pa.int64()),
                "queue_now": pa.array([now - each[2] for _, each in waits], pa.int64()),
                "application_now": pa.array([now - each[2] for _, each in waits], pa.int64()),
            }
        )

    def changes(self) -> Changes:
        return Changes({}, (), {"waits": dict(self.waits), "counts": self.counts, "bound": self.bound})

    def restore(self, changes: Changes) -> None:
        self.waits, self.counts = dict(changes.note["waits"]), changes.note["counts"]
        self.bound = changes.note["bound"]
