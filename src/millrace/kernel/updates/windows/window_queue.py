"""Queue of windows under update semantics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from millrace.kernel.aggregates.panes.window_geometry import WindowGeometry
from millrace.kernel.baselines.all_windows import AllWindows
from millrace.kernel.columns.integers import Integers
from millrace.kernel.elements import (
    END_OF_TIME,
    MARK,
    NO_BOUND,
    TIME,
    Batch,
    Element,
    GroupPunctuation,
    JointPunctuation,
    Microseconds,
    Punctuation,
    Times,
)
from millrace.kernel.metrics import InputCounts, QueueMetrics
from millrace.kernel.state import Changes, combined, separated
from millrace.kernel.stores.key_table import KeyTable
from millrace.kernel.updates.key_cells import NONE
from millrace.kernel.updates.queue import Queue
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.kernel.updates.row_counts import ENTERED, SUPERSEDED, RowCounts
from millrace.kernel.updates.windows.acceptance import Acceptance
from millrace.kernel.updates.windows.commitments import Release
from millrace.kernel.updates.windows.newest_windows import NewestWindows
from millrace.kernel.updates.windows.window_rows import PORT

UpdateWindow = Literal["lazy", "eager", "every", "random"]
_COST_WEIGHT = 0.2
"""How much the last cost of a row counts among those before."""


class WindowQueue(Queue):
    """Release the rows of one window per key after another: always the newest (002 section 6).

    Rows leave with the number of the commitment they leave for (`__mark`); behind the last row of a window that is
    closed follows its closer, a promise for that number up to the end of the window. So what reports the window needs
    neither key nor start. Windows close by the stream's bound, or by the key's `own` rows, of which one at t promises
    that later ones are at t + `tick` or later.

    `update_window`: `lazy` commits to the newest window that has fully arrived, `eager` to the newest that has started.
    `every` and `random` are baselines: all windows, or a share of them, each with a copy of its rows.

    State: rows of windows that wait or are under processing, by key. Punctuations: passed on as far as nothing is below
    that waits or is under processing.
    """

    label = "window_queue"

    def __init__(
        self,
        key: Sequence[str],
        range: int,
        slide: int,
        settings: QueueSettings,
        *,
        origin: int = 0,
        update_window: UpdateWindow = "eager",
        close: Literal["bound", "own"] = "bound",
        tick: int = 1,
        inputs: int = 1,
        truth: int | None = None,
    ) -> None:
        self.geometry = WindowGeometry(range, slide, origin)
        self.update_window = update_window
        self.tick = tick if close == "own" else None
        self._tick = tick
        self.inputs = inputs
        self.truth = truth
        self.table = KeyTable(key)
        self.counts = RowCounts(inputs)
        self._acceptance = Acceptance(self.geometry, self.tick, inputs)
        self._windows = self._make(settings)
        self._passed = NO_BOUND
        self._moment: tuple[Microseconds, Microseconds] = (NO_BOUND, NO_BOUND)
        """When rows were last taken, and the latest arrival among them: a bound that comes with them came then."""
        self._cost: float | None = None
        self._let_go = 0
        self._since: Microseconds = 0
        """How many rows have been released since the last rest, and since when."""
        self.configure(settings)

    def _make(self, settings: QueueSettings) -> NewestWindows | AllWindows:
        if self.update_window in ("every", "random"):
            return AllWindows(self.geometry, self.counts, tick=self.tick, random=self.update_window == "random")
        return NewestWindows(self.geometry, self.counts, eager=self.update_window == "eager", tick=self.tick)

    def configure(self, settings: QueueSettings) -> None:
        super().configure(settings)
        self._windows.configure(settings.policy, settings.keep)

    # Enqueue

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        rows, times = batch.rows, batch.times
        keys = self.table.numbers(rows)
        self._windows.grow(len(self.table))
        self.counts.add(ENTERED, port, len(keys))
        arrivals = self.arrivals(batch)
        before = self._moment[1] if self._moment[0] == self.now else NO_BOUND
        self._moment = (self.now, max(before, int(arrivals.max())))
        accepted = self._accepted(port, keys, times)
        if not accepted.all():
            self.counts.add(SUPERSEDED, port, int((~accepted).sum()))
            keys, times, arrivals = keys[accepted], times[accepted], arrivals[accepted]
            rows = rows.filter(pa.array(accepted))
        if self.inputs > 1:
            rows = rows.append_column(PORT, pa.array(np.full(len(keys), port)))
        if len(keys):
            self._windows.take(port, keys, times, arrivals, rows, self.row_cost)
        return iter(())

    def _accepted(self, port: int, keys: Integers, times: Times) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        cells, bound = self._windows.cells, self._windows.bound
        if port != self.truth or self.inputs == 1:
            return self._acceptance.accepted(cells, keys, times, port, bound, None)
        accepted = self._acceptance.accepted(cells, keys, times, port, bound, self._windows.can_yield(keys))
        # Only the row with which the source of truth takes over replaces others: from then on it goes on as if alone.
        taking = np.flatnonzero(accepted & (cells.port[keys] != port))
        owners, firsts = np.unique(keys[taking], return_index=True)
        self._windows.yield_to(port, owners[times[taking[firsts]] == cells.last[owners]])
        return accepted

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        until = punctuation.until
        self.ended = self.ended or until == END_OF_TIME
        with_rows = self._moment[0] == self.now and not self.ended
        self._windows.close(until, self._moment[1] if with_rows else self.now, self.row_cost)
        yield from self._pass_on()

    def on_groups(self, punctuation: GroupPunctuation) -> Iterator[Element]:
        return iter(())

    def on_joint(self, punctuation: JointPunctuation) -> Iterator[Element]:
        return iter(())

    def _pass_on(self) -> Iterator[Element]:
        """The bound of what may still leave, if it has advanced."""
        until = self._windows.low()
        if until > self._passed:
            self._passed = until
            yield Punctuation(until)

    # Dequeue

    @property
    def due(self) -> bool:
        return self._windows.due

    @property
    def held(self) -> int:
        return self.counts.whole().waiting

    def on_more(self, limit: int | None) -> Iterator[Element]:
        self._windows.rest(self.now)
        left = self.portion(limit, self.row_cost)
        while (release := self._windows.release(left, self.now)) is not None:
            count = len(release.marks)
            left -= count
            self.use_up(count)
            self._count(count)
            yield from self._elements(release)
            if not count:
                # Closers alone are delivered at once; rows behind them would hold them up.
                break
        yield from self._pass_on()

    def _elements(self, release: Release) -> Iterator[Element]:
        if release.rows is not None and len(release.marks):
            yield Batch(_marked(release.rows, release.marks))
        if len(release.closers):
            marks = pa.RecordBatch.from_arrays([pa.array(release.closers)], names=[MARK])
            yield GroupPunctuation(marks, release.ends)

    def _count(self, rows: int) -> None:
        self._since = self.now if not self._let_go else self._since
        self._let_go += rows

    def on_rest(self) -> None:
        self._windows.rest(self.now)
        if self._let_go:
            cost = (self.now - self._since) / self._let_go
            self._cost = cost if self._cost is None else self._cost + _COST_WEIGHT * (cost - self._cost)
            self._let_go = 0

    def deliver_late(self) -> None:
        super().deliver_late()
        self._windows.staleness.late = True

    def on_delivery(self, at: Microseconds) -> None:
        self._windows.staleness.show(at)

    @property
    def row_cost(self) -> float | None:
        return self._cost if self.told_cost is None else self.told_cost

    def usable(self, until: Microseconds) -> Microseconds:
        return self.geometry.usable(until)

    def wanted(self) -> Microseconds | None:
        return self._windows.wanted

    def urgency(self, now: Microseconds) -> float:
        """What the area under its staleness loses for each microsecond of work if the next key is served now.

        That is waited * (waited / 2 + the time between two updates of the key) for the cost of the window's rows, the
        measure that queues of rows have too.
        """
        waited, interval, rows = self._windows.next_wait(now)
        return waited * (waited / 2 + interval) / (max(self.row_cost or 1.0, 1.0) * max(rows, 1))

    # What is known

    def input_counts(self) -> tuple[InputCounts, ...]:
        return self.counts.by_input()

    def queue_metrics(self, now: Microseconds) -> QueueMetrics:
        allocated, used = self._windows.locations
        return self.metrics_of(now, self.counts, self._windows.staleness, allocated=allocated, used=used)

    def staleness(self, now: Microseconds) -> pa.Table:
        cells, some = self._windows.cells, slice(self._windows.cells.count)
        lived = np.maximum(now - cells.first[some], 1).astype(np.float64)
        waiting = cells.queue_since[some] != NONE
        per_second = cells.updates[some] * 1e6 / lived
        return self.staleness_of(now, self.table.keys(), self._windows.staleness, waiting, per_second)

    def check(self, *, in_step: bool = False) -> None:
        """Assert what always holds; with one row per tick and key (`in_step`) also that buffers keep their bound."""
        self._windows.check(self._most_rows() if in_step else None)

    def _most_rows(self) -> int:
        """How many rows the window buffer of a key holds at most, with one row per tick."""
        windows = 1 if self.update_window == "eager" else 2
        return -(-(windows * self.geometry.range + self.geometry.slide) // self._tick) - 1

    @property
    def state_bytes(self) -> int:
        return self.table.nbytes + self._windows.nbytes

    def changes(self) -> Changes:
        note = {
            "windows": self._windows.note(),
            "counts": self.counts.note(),
            "passed": self._passed,
            "ended": self.ended,
            "cost": self._cost,
            "told": self.told_cost,
        }
        return combined([self.table.changes(), *self._windows.changes()], note)

    def restore(self, changes: Changes) -> None:
        keys, *windows = separated(changes)
        note = changes.note
        self.table.restore(keys)
        self.counts.restore(note["counts"])
        self._passed, self.ended = note["passed"], note["ended"]
        self._cost, self.told_cost = note["cost"], note["told"]
        self._windows.restore(windows, note["windows"], self.table.find)


def _marked(rows: pa.RecordBatch, marks: Integers) -> pa.RecordBatch:
    """Rows with the numbers of their commitments, behind their times."""
    if PORT in rows.schema.names:
        rows = rows.drop_columns([PORT])
    return rows.add_column(rows.schema.get_field_index(TIME) + 1, MARK, pa.array(marks))
