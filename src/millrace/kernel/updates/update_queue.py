"""A queue of updates: rows wait by key, and newer ones take the place of older ones (002 sections 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Batch, Element, Microseconds, Punctuation
from millrace.kernel.metrics import InputCounts, QueueMetrics
from millrace.kernel.state import Changes
from millrace.kernel.updates.load import Load, Switch
from millrace.kernel.updates.queue import Queue
from millrace.kernel.updates.queue_settings import QueueSettings
from millrace.kernel.updates.storage import ROWS, Storage, Terms, kind_of

_SPARE = 1e-30
"""How urgent keys are that may wait, beside others: still more than nothing."""


class UpdateQueue(Queue):
    """Hold the newest row of each key until it is its turn; or every row, as an append queue does.

    Rows come by `inputs` inputs; of rows of one key and time by several of them the first stays, or that of the
    input `truth`. State: the keys with their cells, the rows that wait, and what the statistics monitor knows.
    Punctuations: held back at the least time of the rows that wait, or somewhat below it.
    """

    label = "update_queue"

    def __init__(self, key: Sequence[str], settings: QueueSettings, inputs: int = 1, truth: int | None = None) -> None:
        self.key = tuple(key)
        self.settings = settings
        self.truth = truth
        self._load = Load()
        self._switch = Switch()
        self._storage = Storage(self.key, inputs, truth, kind_of(settings, self._switch.appends), settings)
        self._out = 0
        self._out_at: Microseconds = 0
        """How many rows are under way, and since when."""
        self._bound = NO_BOUND
        self._passed = NO_BOUND
        """The last bound that came in, and the last one passed on."""

    # Rows

    def on_batch(self, port: int, batch: Batch) -> Iterator[Element]:
        self._load.come(len(batch))
        terms = Terms(self.row_cost, self.settings.lossless, self._keep_share())
        self._storage.enter(port, batch, self.arrivals(batch), terms)
        return iter(())

    def _keep_share(self) -> float:
        if self.settings.policy != "append_shed":
            return 1.0
        return self._load.keep if self.settings.keep is None else self.settings.keep

    # Leaving

    def on_more(self, limit: int | None) -> Iterator[Element]:
        self._look()
        rows = self._storage.take(self.portion(limit, self.row_cost), self.now, self.row_cost)
        if rows is None:
            return
        self.use_up(rows.num_rows)
        self._out_at = self._out_at if self._out else self.now
        self._out += rows.num_rows
        self._load.leave(self.now, rows.num_rows, len(self._storage), spent=self.allowance == 0)
        yield Batch(rows)
        yield from self._pass_on(ets=False)

    def on_rest(self) -> None:
        if self._out and self.told_cost is None:
            self._load.work(self._out, self.now - self._out_at)
        self._out = 0
        if not self.delivers_late:
            self._storage.staleness.rest(self.now)

    def on_delivery(self, at: Microseconds) -> None:
        self._storage.staleness.rest(at)

    def on_punctuation(self, punctuation: Punctuation) -> Iterator[Element]:
        self._bound = punctuation.until
        self.ended = self._bound == END_OF_TIME
        yield from self._pass_on(punctuation.ets)

    def _pass_on(self, ets: bool) -> Iterator[Element]:
        """The bound that holds for all that leaves later, if it has advanced."""
        until = min(self._bound, self._storage.least(self._bound))
        if until > self._passed:
            self._passed = until
            yield Punctuation(until, ets)

    # Time, cost, and the switch

    def on_time(self, now: Microseconds) -> None:
        passed = now > self.now or not self._load.begun
        self.now = now
        if passed:
            self._load.tick(now, self._each(), len(self._storage))
            self._look()

    def _look(self) -> None:
        """Become another kind of queue if the load asks for it."""
        waiting, load = len(self._storage), self._load.load
        if self.settings.policy == "auto" and self._switch.look(self.now, waiting, self._each(), load):
            self._become()

    def _each(self) -> float:
        """How long the consumers take to process one row, in microseconds."""
        return self._load.each(self.row_cost, self.settings.budget_rows, self.settings.budget_time)

    @property
    def row_cost(self) -> float | None:
        return self._load.measured if self.told_cost is None else self.told_cost

    def urgency(self, now: Microseconds) -> float:
        """What is gained by a microsecond of work for the key that has waited longest.

        For the least staleness of all keys of all queries a key should be released when W² / 2 + W/u, by what it costs,
        has grown to the same price for all (see `Linecutting`): W is how long it has waited, 1/u the mean time between
        its updates. In simulations of four queries with different costs, keys and rates it was better than W / cost by
        14 to 32 %, than W² / cost by up to 5 %, and than taking turns by 26 to 90 %. A row of an append queue makes its
        key fresher by the time to the next one only: W/u. Keys that are not read yet are less urgent than all others.
        """
        key, since = self._storage.held.first()
        if key < 0:
            return 0.0
        waited = max(now - since, 0) + 1.0
        between = max(self._storage.frequency.mean_interval(key, now), 0.0)
        gain = waited * between if self._storage.kind == ROWS else waited * (waited / 2 + between)
        presses = self._storage.held.presses(now, self.row_cost)
        return gain / max(self.row_cost or 1.0, 1e-3) * (1.0 if presses else _SPARE)

    # Settings

    def configure(self, settings: QueueSettings) -> None:
        before, self.settings = self.settings, settings
        if settings == before:
            return
        if settings.policy == "auto" and before.policy != "auto":
            self._switch = Switch()
            self._switch.appends = self._storage.kind == ROWS
        self._become(anew=settings.access != before.access)

    def _become(self, anew: bool = False) -> None:
        """Be of the kind that the settings ask for."""
        kind = kind_of(self.settings, self._switch.appends)
        if kind != self._storage.kind or anew:
            self._storage.become(kind, self.settings)
        if not self.settings.lossless:
            self._storage.drop_older()

    # What is known

    @property
    def by_key(self) -> bool:  # type: ignore[override]
        return self._storage.kind != ROWS

    @property
    def held(self) -> int:
        return len(self._storage)

    @property
    def state_bytes(self) -> int:
        return self._storage.nbytes

    @property
    def mode(self) -> str:
        kind = self._storage.kind
        return self.settings.policy if self.settings.policy != "auto" else "append" if kind == ROWS else kind

    def input_counts(self) -> tuple[InputCounts, ...]:
        return self._storage.counts.by_input()

    def queue_metrics(self, now: Microseconds) -> QueueMetrics:
        storage = self._storage
        memory = {"allocated": storage.allocated, "used": len(storage)}
        return self.metrics_of(now, storage.counts, storage.staleness, **memory, switches=self._switch.switches)

    def staleness(self, now: Microseconds) -> pa.Table:
        storage, count = self._storage, self._storage.cells.count
        waiting, per_second = storage.cells["waits"][:count] > 0, storage.frequency.per_second(now, count)
        return self.staleness_of(now, storage.table.keys(), storage.staleness, waiting, per_second)

    # Saving

    def changes(self) -> Changes:
        changes = self._storage.changes()
        note: dict[str, Any] = {
            "policy": self.settings.policy, "bound": self._bound, "passed": self._passed, "told": self.told_cost,
            "now": self.now, "load": self._load.note(), "switch": self._switch.note(),
        }  # fmt: skip
        return Changes(changes.added, changes.removed, {**changes.note, **note})

    def restore(self, changes: Changes) -> None:
        note = changes.note
        self._storage.restore(changes, self.settings)
        self._load.restore(note["load"])
        self._bound, self._passed = note["bound"], note["passed"]
        self.ended = self._bound == END_OF_TIME
        self.told_cost, self.now = note["told"], note["now"]
        if note["policy"] == self.settings.policy:
            self._switch.restore(note["switch"])
        else:
            self._switch.appends = self._storage.kind == ROWS
        # What was saved by a queue of another kind is changed like one at work.
        self._become()
