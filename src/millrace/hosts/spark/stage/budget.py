"""How many rows the queues of a bucket may release in a micro-batch.

Rules:
- A budget of rows holds per query and micro-batch: buckets share it, and take turns with the remainder.
- A budget of time becomes rows by the cost of a row so far. Without a budget, the rows that queues release may take
  80 % of the trigger's interval, all queries together; a run that ends by itself has no interval, and no limit.
- The time that Spark needs around the work differs. Where micro-batches take longer than the interval while rows wait,
  queues take less of it, down to 20 %; where they do not, more again.
- Buckets that run one after another share the time: each has that of its cores.
- Queues that share time get slices of it; each slice goes to the most urgent queue, by what it gains in the time that
  its rows take, times the `share` of its query. What one does not need is for the others.
- All of it depends on what was saved with the micro-batch before, never on this one's clock: a replay releases the
  same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from millrace.kernel.elements import Microseconds

FIRST_ROWS = 256
"""How many rows a queue releases before their cost is known."""
INTERVAL: Microseconds = 1_000_000
"""Microseconds: the interval of a run that has no trigger."""
MOST, _LEAST = 0.8, 0.2
"""The most and the least share of an interval for the work downstream of queues; the rest is Spark's."""
SLICES = 16
"""Into how many slices time is cut that several queues share."""
_SLACK = 1.05
"""A micro-batch that is longer than its interval by more than this factor takes too long."""
_FADING = 0.7
"""The weight of earlier measurements in the next micro-batch."""


@dataclass(frozen=True)
class TriggerPace:
    """How often a run has a micro-batch (None: it ends by itself), and how many cores its buckets have, each.

    >>> TriggerPace.of(500_000, cores=2, buckets=4)
    TriggerPace(interval=500000, cores=0.5)
    """

    interval: Microseconds | None = None
    cores: float = 1.0

    @staticmethod
    def of(interval: Microseconds | None, cores: int, buckets: int) -> TriggerPace:
        """The pace of a run with so many buckets; more cores than buckets are of no use."""
        return TriggerPace(interval, min(1.0, cores / buckets))

    def time(self, budget: Microseconds | None, share: float = MOST) -> float:
        """How long a bucket's queues may keep it busy: by a budget, or for a share of the interval."""
        return self.cores * (share * (self.interval or INTERVAL) if budget is None else budget)

    def kept(self, share: float, took: Microseconds) -> float:
        """Which share of an interval queues may take, if with this one a micro-batch took so long.

        >>> TriggerPace(100).kept(0.5, 100), TriggerPace(100).kept(0.5, 125), TriggerPace(100).kept(0.5, 1000)
        (0.55, 0.4, 0.35)
        """
        if self.interval is None:
            return share
        length = took / self.interval
        return max(_LEAST, share * max(0.7, 1 / length)) if length > _SLACK else min(MOST, share * 1.1)


@dataclass
class RowCost:
    """The recent cost of a queue's rows, and the most rows that it has released at once."""

    rows: float = 0.0
    micros: float = 0.0
    most: int = 0

    def learn(self, rows: int, micros: float) -> None:
        """Add a micro-batch; each row counts alike, so few of them say little."""
        if rows:
            self.rows = _FADING * self.rows + rows
            self.micros = _FADING * self.micros + micros
            self.most = max(self.most, rows)

    @property
    def row(self) -> float | None:
        """Microseconds per row; None if not known."""
        return self.micros / self.rows if self.rows else None

    def rows_in(self, time: float) -> int:
        """How many rows can be released in a time: one at least, and at most twice as many as ever before.

        >>> RowCost().rows_in(1000.0)
        256
        >>> RowCost(rows=1000, micros=2000, most=1000).rows_in(1000.0)
        500
        """
        return self.most_next if not self.micros else max(1, min(self.most_next, round(time * self.rows / self.micros)))

    @property
    def most_next(self) -> int:
        """The greatest number of rows to release in a micro-batch."""
        return max(FIRST_ROWS, 2 * self.most)

    def saved(self) -> list[float]:
        """All of it as plain data, for `RowCost(*saved)`."""
        return [self.rows, self.micros, self.most]


@dataclass(frozen=True)
class WaitingQueue:
    """A queue that holds rows: of which query, how many, and what a row costs; its query's budget; how urgent it is."""

    query: str
    rows: int
    cost: RowCost
    budget_rows: int | None = None
    budget_time: Microseconds | None = None
    name: str = ""
    urgency: float = 0.0


class BatchBudget:
    """What the queues of a bucket may still release in a micro-batch; the bucket has a `place` among `buckets`.

    `turn` counts micro-batches; `free` says that nothing limits queries without a budget of their own, which otherwise
    have their `share` of the interval.
    """

    def __init__(
        self, pace: TriggerPace, place: int, buckets: int, turn: int, *, free: bool, share: float = MOST
    ) -> None:
        self.pace = pace
        self.share = share
        self.place, self.buckets = place, buckets
        self.turn = turn
        self.free = free
        self.released: dict[str, int] = {}
        """How many rows each queue has released."""
        self._full: set[str] = set()
        self._rows: dict[str, int] = {}
        self._time: dict[str | None, float] = {}

    def next(self, queues: Sequence[WaitingQueue]) -> WaitingQueue | None:
        """Of queues that hold rows the one whose turn it is; None if no more may leave.

        Those that do not share time come first, in their order, each once; then a queue whose next row saves no
        staleness: what is behind that row may be urgent.
        """
        some = [each for each in queues if each.name not in self._full and self._fits(each)]
        for each in some:
            if not self._shares_time(each) or (not each.urgency and each.name not in self.released):
                return each
        return max(some, key=lambda each: each.urgency, default=None)

    def allowance(self, queue: WaitingQueue, queues: Sequence[WaitingQueue]) -> int | None:
        """How many rows a queue may release at its turn, among all that hold rows; None is any number."""
        others = [each for each in queues if each.name != queue.name and each.name not in self._full]
        if queue.budget_rows is not None:
            left = self._share(queue.budget_rows) - self._rows.get(queue.query, 0)
            return ceil(even_share(left, [each.rows for each in others if each.query == queue.query]))
        if not self._shares_time(queue):
            return None
        time = self._left(queue)
        if any(self._shares_time(each) and _account(each) == _account(queue) for each in others):
            time = min(time, self._whole(queue) / SLICES)
        return min(queue.cost.rows_in(time), queue.cost.most_next - self.released.get(queue.name, 0))

    def spend(self, queue: WaitingQueue, rows: int) -> None:
        """Count what a queue has released at its turn."""
        name, account = queue.name, _account(queue)
        self.released[name] = self.released.get(name, 0) + rows
        self._rows[queue.query] = self._rows.get(queue.query, 0) + rows
        self._time[account] = self._time.get(account, 0.0) + rows * (queue.cost.row or 0.0)
        if not rows or not self._shares_time(queue) or self.released[name] >= queue.cost.most_next:
            self._full.add(name)

    def _fits(self, queue: WaitingQueue) -> bool:
        """True if there is time for another row, more or less; there always is for the first one."""
        return not self._shares_time(queue) or not self._spent(queue) or self._left(queue) >= (queue.cost.row or 0) / 2

    def _shares_time(self, queue: WaitingQueue) -> bool:
        return queue.budget_rows is None and not (queue.budget_time is None and self.free)

    def _whole(self, queue: WaitingQueue) -> float:
        return self.pace.time(queue.budget_time, self.share)

    def _left(self, queue: WaitingQueue) -> float:
        return self._whole(queue) - self._spent(queue)

    def _spent(self, queue: WaitingQueue) -> float:
        return self._time.get(_account(queue), 0.0)

    def _share(self, rows: int) -> int:
        """This bucket's part of a budget of rows; what does not divide goes to one bucket after another."""
        each, rest = divmod(rows, self.buckets)
        return each + ((self.place + self.turn) % self.buckets < rest)


def _account(queue: WaitingQueue) -> str | None:
    """Whose time a queue uses: that of its own query if it has a budget, else that of all queries without one."""
    return None if queue.budget_time is None else queue.query


def even_share(amount: float, others: Sequence[float]) -> float:
    """The part of an amount that is shared evenly with others, which get no more than they need.

    >>> even_share(90, [10, 100])
    40.0
    >>> even_share(90, [])
    90
    """
    for position, each in enumerate(sorted(others)):
        fair = amount / (len(others) - position + 1)
        if each > fair:
            return max(fair, 0)
        amount -= each
    return max(amount, 0)
