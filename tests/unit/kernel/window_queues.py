"""A server in front of which a queue of windows stands: rows arrive tick by tick, and each row takes its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import pyarrow as pa

from millrace.kernel.elements import END_OF_TIME, MARK, TIME, Batch, GroupPunctuation, Punctuation
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.kernel.updates.windows.window_queue import WindowQueue
from tests.reference_windows_updates import Row

Log = list[tuple[object, ...]]


def queue_of(
    length: int,
    slide: int,
    mode: str = "eager",
    tick: int | None = None,
    settings: QueueSettings | None = None,
    inputs: int = 1,
    truth: int | None = None,
) -> WindowQueue:
    """A queue by the column k, closed by its own rows if there is a tick."""
    return WindowQueue(
        ["k"],
        length,
        slide,
        settings or QueueSettings(),
        update_window=mode,  # type: ignore[arg-type]
        close="bound" if tick is None else "own",
        tick=tick or 1,
        inputs=inputs,
        truth=truth,
    )


def batch_of(rows: Sequence[Row], until: int | None = None) -> Batch:
    """Rows as a batch with the columns k and v."""
    keys, times, values = zip(*rows, strict=True)
    columns = {"k": pa.array(keys, pa.string()), "v": pa.array(values, pa.int64()), TIME: pa.array(times, pa.int64())}
    return Batch(pa.record_batch(columns), until)


def enter(queue: WindowQueue, rows: Sequence[Row], port_of: Callable[[Row], int] = lambda row: 0) -> None:
    """Rows come, those that follow each other by one input as a batch."""
    for port, batch in groupby(rows, port_of):
        assert not list(queue.on_batch(port, batch_of(list(batch))))


class Server:
    """Works on what a queue lets go, a row at a time, each of which takes `cost` ticks."""

    def __init__(
        self,
        queue: WindowQueue,
        cost: int,
        between: Callable[[WindowQueue], WindowQueue] = lambda it: it,
        port_of: Callable[[Row], int] = lambda row: 0,
    ) -> None:
        self.queue = queue
        self.cost = cost
        self.between = between
        self.port_of = port_of
        self.now = 0
        self.busy: int | None = None
        self.log: Log = []
        self.results: list[tuple[int, int]] = []
        """The starts of windows, and when they were delivered."""
        self._closed: list[int] = []

    @property
    def rows(self) -> list[tuple[str, int]]:
        """The keys and times of the rows that were let go, in order."""
        return [(entry[2], entry[3]) for entry in self.log if entry[0] == "row"]  # type: ignore[misc]

    def tick(self, rows: Sequence[Row], bound: int | None) -> None:
        """One tick: work that is done, then what arrives, then the next row."""
        self.queue.on_time(self.now)
        if self.busy == self.now:
            self._rest()
        enter(self.queue, rows, self.port_of)
        if bound is not None:
            list(self.queue.on_punctuation(Punctuation(bound)))
        while self.busy is None and self.queue.unfinished:
            self._step()
        self.now += 1

    def end(self) -> None:
        """No more rows come; all that is left is worked off."""
        self.tick([], END_OF_TIME)
        while self.busy is not None or self.queue.unfinished:
            self.tick([], None)

    def _step(self) -> None:
        self.queue = self.between(self.queue)
        self.queue.on_time(self.now)
        rows = 0
        for element in self.queue.on_more(1):
            if isinstance(element, Batch):
                rows += len(element)
                columns = [element.rows.column(name).to_pylist() for name in (MARK, "k", TIME, "v")]
                self.log += [("row", *row) for row in zip(*columns, strict=True)]
            elif isinstance(element, GroupPunctuation):
                marks = element.keys.column(MARK).to_pylist()
                self.log += [("close", *pair) for pair in zip(marks, element.until.tolist(), strict=True)]
                self._closed += [end - self.queue.geometry.range for end in element.until.tolist()]
        assert rows <= 1
        self.queue.check()
        if rows:
            self.busy = self.now + self.cost
        else:
            self._rest()

    def _rest(self) -> None:
        self.busy = None
        self.queue.on_rest()
        self.results += [(start, self.now) for start in self._closed]
        self._closed = []
