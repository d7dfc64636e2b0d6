"""Counts that are part of the kernel's result; hosts only export them."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Literal

from millrace.kernel.elements import ARRIVED, NO_BOUND, Batch, Microseconds
from millrace.kernel.latency import Latency

MALFORMED: ContextVar[int] = ContextVar("malformed", default=0)
"""How many texts from_json could not read so far: the step that lets an operator work counts what is added to it."""


@dataclass(slots=True)
class NodeMetrics:
    """What went through one node, what it cost, and how long it idle-waited (microseconds)."""

    rows_in: int = 0
    rows_out: int = 0
    punctuations_in: int = 0
    punctuations_out: int = 0
    peak_held: int = 0
    cost: Microseconds = 0
    idle: Microseconds = 0
    _wanted: Microseconds | None = None
    _since: Microseconds = 0

    def waits_for(self, wanted: Microseconds | None, now: Microseconds) -> None:
        """Note which bound a node waits for from now on; time counts as idle from when that bound is due."""
        if wanted == self._wanted:
            return
        if self._wanted is not None:
            self.idle += max(0, now - max(self._since, self._wanted))
        self._wanted, self._since = wanted, now

    def idle_at(self, now: Microseconds) -> Microseconds:
        """How long it has idle-waited so far, the present wait among it."""
        if self._wanted is None:
            return self.idle
        return self.idle + max(0, now - max(self._since, self._wanted))

    def save(self) -> list[int | None]:
        """What `restore` takes, as plain data."""
        return [getattr(self, each) for each in _SAVED]

    def restore(self, saved: Iterable[int | None]) -> None:
        """Go on from what `save` gave."""
        for name, value in zip(_SAVED, saved, strict=True):
            setattr(self, name, value)

    def copy(self) -> NodeMetrics:
        """The same counts, apart from later ones."""
        return replace(self)


_SAVED = ("rows_in", "rows_out", "punctuations_in", "punctuations_out", "cost", "idle", "_wanted", "_since")


@dataclass(frozen=True, slots=True)
class OperatorMetrics:
    """One operator at a moment: what went through it, what it holds, and how far it has come."""

    queries: tuple[str, ...] = ()
    """The queries that it works for."""
    rows_in: int = 0
    rows_out: int = 0
    punctuations_in: int = 0
    punctuations_out: int = 0
    cost: Microseconds = 0
    """How long it worked."""
    idle: Microseconds = 0
    """How long it idle-waited, the present wait among it."""
    waiting: int = 0
    """Rows that wait at its inputs."""
    held: int = 0
    """Rows and partial results that it holds."""
    state_bytes: int = 0
    bound: Microseconds = NO_BOUND
    """The least bound of its inputs."""


@dataclass(slots=True)
class SinkMetrics:
    """What left through one sink; latency only where rows carry their arrival."""

    rows: int = 0
    latency: Latency = field(default_factory=Latency)

    def count(self, batch: Batch, now: Microseconds) -> None:
        """Count a delivered batch."""
        rows = len(batch)
        self.rows += rows
        if ARRIVED in batch.block.rows.schema.names:
            arrived = batch.block.integers(ARRIVED)[batch.start : batch.stop]
            if rows == 1:
                if (single := int(arrived[0])) != NO_BOUND:
                    self.latency.add_one(now - single)
            elif len(known := arrived[arrived != NO_BOUND]):
                self.latency.add(now - known)

    def copy(self) -> SinkMetrics:
        """The same counts, apart from later ones."""
        return SinkMetrics(self.rows, self.latency.copy())


@dataclass(frozen=True, slots=True)
class InputCounts:
    """What became of the rows of one input of a queue: entered = let_go + superseded + shed + waiting."""

    entered: int = 0
    let_go: int = 0
    superseded: int = 0
    shed: int = 0
    waiting: int = 0


def least_processed(counts: Iterable[InputCounts]) -> InputCounts:
    """The counts of the reader that has processed least: of the same rows it has most superseded, shed or waiting.

    >>> least_processed([InputCounts(entered=5, let_go=5), InputCounts(entered=5, let_go=2, superseded=3)]).let_go
    2
    """
    return max(counts, key=lambda each: each.superseded + each.shed + each.waiting, default=InputCounts())


@dataclass(frozen=True, slots=True)
class QueueMetrics:
    """A queue of updates at one moment: entered = let_go + superseded + shed + waiting, in rows.

    Staleness is in microseconds, a mean over keys: `now`, and over time.
    """

    policy: str
    keys: int = 0
    waiting: int = 0
    entered: int = 0
    let_go: int = 0
    superseded: int = 0
    """Rows that were not accepted, or overwritten before they left."""
    shed: int = 0
    allocated: int = 0
    """Rows, or places for rows of windows, that have memory, and how many of them hold a row that waits."""
    used: int = 0
    queue_now: float = 0.0
    queue_mean: float = 0.0
    application_now: float = 0.0
    application_mean: float = 0.0
    cost: float = 0.0
    """Microseconds that a row takes downstream."""
    mode: str = ""
    """What it does at present: its policy; of `auto`, append or inplace, or access with ACCESS."""
    switches: int = 0
    """How often it switched its mode by itself."""
    oldest: Microseconds = 0
    """For how long the key that waits longest has waited."""
    by_input: tuple[InputCounts, ...] = ()
    """The counts of each input; they add up to the whole."""

    @property
    def effective_usage(self) -> float:
        """The share of the allocated locations that hold a row (002 section 7); 1 if there are none."""
        return self.used / self.allocated if self.allocated else 1.0


@dataclass(frozen=True, slots=True)
class JoinMetrics:
    """A join whose results leave in order of time, at one moment."""

    mode: str
    """What it does at present: sync_filter, filter_order, or draining on the way from the second to the first."""
    switches: int = 0
    """How often it changed from one method to the other."""
    waiting: int = 0
    """Rows of its inputs that wait to be joined."""
    hold: int = 0
    """Results in its hold buffer."""


@dataclass(frozen=True, slots=True)
class AggregateMetrics:
    """An aggregate over windows that can keep rows or partials, at one moment."""

    mode: str
    """What it keeps at present: panes, which hold partials, or rows."""
    switches: int = 0
    """How often it changed from one to the other."""


@dataclass(frozen=True, slots=True)
class AsideRow:
    """A row that was set aside: its text, and its file and line where it has them."""

    raw: str | None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class AsideRows:
    """How many rows of a stream were set aside for one reason, and the first of them."""

    count: int
    examples: tuple[AsideRow, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceMetrics:
    """The accounting of one stream, at any moment:

    received = processed + late + quarantined + shed + superseded + buffered. Of several queries it is that of the one
    which has processed least. Two accounts are equal whatever the clock was.
    """

    received: int
    late: int
    quarantined: int
    buffered: int
    """Rows that wait for an operator to take them, or in a queue."""
    bound: Microseconds
    greatest: Microseconds
    enabled: int
    shed: int = 0
    superseded: int = 0
    unit: Literal["time", "number"] = "time"
    """What its bound and its greatest time are: times, or numbers without a unit."""
    moved_at: Microseconds = field(default=NO_BOUND, compare=False)
    """The clock when its bound last advanced."""
    seen_at: Microseconds = field(default=NO_BOUND, compare=False)
    """The clock when its greatest time came."""
    aside: dict[str, AsideRows] = field(default_factory=dict)
    """Its quarantined rows by the reason."""
    disorder: Latency | None = field(default=None, compare=False)
    """How far rows came behind the greatest time before them, in this run; None where nothing says so."""

    @property
    def admitted(self) -> int:
        """Rows that were admitted."""
        return self.received - self.late - self.quarantined

    @property
    def processed(self) -> int:
        """Rows that every query has taken, and released where it has a queue."""
        return self.admitted - self.buffered - self.shed - self.superseded


@dataclass(frozen=True, slots=True)
class LookupCounts:
    """What an as-of join has done: rows that asked, those that met a row, and rows that there were to meet."""

    asked: int
    met: int
    known: int

    @property
    def in_vain(self) -> int:
        """How many asked, if none met a row though there were some: their times are probably all later."""
        return self.asked if self.known and not self.met else 0


@dataclass(frozen=True, slots=True)
class Metrics:
    """A snapshot of a graph at work."""

    sources: dict[str, SourceMetrics]
    nodes: dict[str, NodeMetrics]
    sinks: dict[str, SinkMetrics]
    held: dict[str, int]
    state_bytes: dict[str, int]
    peak_queued: int
    """The most that buffers and operators held at once, rows and punctuation together."""
    turned_away: dict[str, int] = field(default_factory=dict)
    """Rows that operators dropped because they came below a bound that the operator itself had made."""
    lookups: dict[str, LookupCounts] = field(default_factory=dict)
    """Of as-of joins, by the name of the node."""
    queues: dict[str, QueueMetrics] = field(default_factory=dict)
    """By the name of its node."""
    titles: dict[str, str] = field(default_factory=dict)
    """By node the query that a queue belongs to, with a number from its second queue on."""
    joins: dict[str, JoinMetrics] = field(default_factory=dict)
    """By query its joins whose results leave in order, with a number from the second on."""
    aggregates: dict[str, AggregateMetrics] = field(default_factory=dict)
    """By query its aggregates that keep rows or panes, numbered like joins."""
    malformed: dict[str, int] = field(default_factory=dict)
    """By query the texts that from_json could not read."""
    operators: dict[str, OperatorMetrics] = field(default_factory=dict)
    """By the name of the node."""
    arcs: dict[tuple[str, str, int], tuple[int, Microseconds]] = field(default_factory=dict)
    """By producer, consumer and input how many rows wait on the arc, and the bound in its register."""
