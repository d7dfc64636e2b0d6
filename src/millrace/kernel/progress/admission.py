"""Who may still send what: time contracts, admission, bounds and enabling timestamps.

Rules:
- A stream's bound is the greatest that its rows allow by its order contract (see order.py); it never goes back.
- A row below the bound is late: it is counted and handed back, never mixed in. With promises for single groups it is
  late below its own group's; with several progressing columns, below the bound of any.
- A row without a time is quarantined, and so is one from the future: further ahead of the clock in a live run, or of
  its stream where that is asked for, than the future skew. A quarantined row moves nothing.
- What becomes of a row depends on the rows before it alone, not on how they were cut into batches.
- An enabling timestamp (ETS) stands in for data of a silent stream: the clock for internal and latent time; for
  external time t + elapsed - skew (000 section 5) or clock - lull (004 A.1.1), whichever is declared and better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Batch, GroupPunctuation, Mask, Microseconds, Times
from millrace.kernel.progress.order import Entering, Order, Part, plus
from millrace.kernel.progress.stamps import with_column, with_external_time, with_time
from millrace.kernel.progress.time_contract import LATE as LATE
from millrace.kernel.progress.time_contract import SEQUENCE as SEQUENCE
from millrace.kernel.progress.time_contract import EtsKind as EtsKind
from millrace.kernel.progress.time_contract import TimeContract as TimeContract

FUTURE_SKEW: Microseconds = 300_000_000
"""How far a row of a live stream may be ahead of the clock where nothing else is declared."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of some rows at the edge: those let in, and those that came too late.

    `bounds` are the stream's bounds after each row let in, up to the next one; the last is where the stream stands.
    """

    admitted: Batch
    late: Batch
    bounds: Times | tuple[Microseconds, ...] = ()


Progress = Mapping[str, Any]
"""How far a stream has come, as plain data: all of a `save` but the counts."""


class Ingress:
    """The edge of one stream: stamps rows, turns late ones away, and knows the stream's bound.

    `live` says that its rows come as they happen, so that the clock can tell which of them are from the future.
    """

    def __init__(self, contract: TimeContract, live: bool = False) -> None:
        self.contract = contract
        self.live = live
        self.greatest = NO_BOUND
        self.seen_at = NO_BOUND
        self.bound = NO_BOUND
        self.moved_at = NO_BOUND
        """The clock when the bound last advanced."""
        self.received = 0
        self.late = 0
        self.quarantined = 0
        self.enabled = 0
        self.next_beat: Microseconds | None = None
        """When the next periodic ETS is due; None until the clock has been seen."""
        self.sequence = 0
        """How many rows have been let in."""
        self.outlets = {name: Ingress(contract.outlet(name)) for name, _ in contract.also}
        """The edges of the stream's other outlets; further columns are always checked."""
        self._order = contract.order()
        self.held = False
        """Whether the bound stays where it is, because others read the stream too: they may know more partitions."""
        self._simple = type(self._order) is Order and self._future_skew is None and not contract.also

    # Rows

    def admit(self, rows: pa.RecordBatch, now: Microseconds) -> Admission:
        """Stamp raw rows, let in those at or above the bound, and advance the bound past them."""
        stamped = self._stamp(rows, now)
        nameless = rows.num_rows - stamped.num_rows
        self.received += nameless
        self.quarantined += nameless
        return self.enter(Batch(stamped), now)

    def enter(self, batch: Batch, now: Microseconds) -> Admission:
        """Let in rows that have their time already (see `stamped_ahead`) as `admit` does."""
        if self.contract.kind != "external":
            batch = self._raised(batch)
        self.received += len(batch)
        if len(batch) == 1 and self._simple:
            return self._enter_one(batch, now)
        entering = self._from_past(batch, now)
        self.quarantined += len(batch) - len(entering)
        if not len(entering):
            return Admission(entering, entering)
        on_time, bounds = self._judged(entering, now)
        for name, _ in self.contract.also:
            on_time &= self.outlets[name]._judged(self.through(name, entering), now)[0]
        return self._admitted(entering, on_time, bounds)

    def _judged(self, batch: Batch, now: Microseconds) -> tuple[Mask, Times]:
        """Which rows are on time, and the bound after each."""
        bounds = self._bounds(batch, now)
        on_time: Mask = batch.times >= np.concatenate([[self.bound], bounds[:-1]])
        floors = self._order.floors()
        if floors is not None:
            on_time &= batch.times >= floors
        self.raise_bound(int(bounds[-1]), now)
        return on_time, bounds

    def _enter_one(self, batch: Batch, now: Microseconds) -> Admission:
        """One row under a plain order: numbers instead of columns."""
        time, bound = int(batch.times[0]), self.bound
        self._note(time, now)
        self.raise_bound(self.greatest - self.contract.disorder, now)
        if time >= bound:
            self.sequence += 1
            return Admission(batch, batch.slice(0, 0), (self.bound,))
        self.late += 1
        return Admission(batch.slice(0, 0), batch)

    def _raised(self, batch: Batch) -> Batch:
        """Rows that the system stamps are never late: a stamp that an ETS has overtaken is raised to it."""
        times = batch.times
        if not len(times) or int(times[0]) >= self.bound:
            return batch
        return Batch(self._with_stamps(batch.rows, np.maximum(times, self.bound)))

    def readmit(self, batch: Batch) -> Admission:
        """Check rows that carry their time already against the bound once more; the bound stays as it is."""
        return self._admitted(batch, batch.times >= self.bound, np.full(len(batch), self.bound, np.int64))

    def _bounds(self, batch: Batch, now: Microseconds) -> Times:
        """The stream's bound after each row; notes how far the rows have come."""
        times = batch.times
        greatest = np.maximum(np.maximum.accumulate(times), self.greatest)
        entering = Entering(batch.rows, times, greatest, self._limits(greatest, now), now)
        allowed = self._order.after(entering)
        self._note(int(greatest[-1]), now)
        if self.held:
            return np.full(len(times), self.bound, np.int64)
        bounds: Times = np.maximum.accumulate(np.maximum(allowed, self.bound))
        return bounds

    def _admitted(self, batch: Batch, on_time: Mask, bounds: Times) -> Admission:
        if on_time.all():
            self.sequence += len(batch)
            return Admission(batch, batch.slice(0, 0), bounds)
        late = batch.where(~on_time)
        self.late += len(late)
        self.sequence += len(batch) - len(late)
        # What late rows add to the bound belongs to the row before them.
        places = np.flatnonzero(on_time)
        ends = np.append(places[1:] - 1, len(bounds) - 1)[: len(places)]
        return Admission(batch.where(on_time), late, bounds[ends])

    # Outlets

    def outlet(self, name: str) -> Ingress:
        """The edge of an outlet; itself for the stream's own time."""
        if not name:
            return self
        if name not in self.outlets:
            self.outlets[name] = Ingress(self.contract.outlet(name))
            if name == SEQUENCE:
                self.outlets[name].bound = self.sequence
        return self.outlets[name]

    def through(self, name: str, admitted: Batch) -> Batch:
        """Rows as an outlet gives them, right after they were let in: with another time."""
        if not name:
            return admitted
        rows = admitted.rows
        if name == SEQUENCE:
            first = self.sequence - rows.num_rows
            self.outlet(name).raise_bound(self.sequence)
            return Batch(with_time(rows, pa.array(np.arange(first, self.sequence))))
        return Batch(with_time(rows, rows.column(name).cast(pa.int64())))

    def news(self) -> GroupPunctuation | None:
        """The groups whose promises have advanced since the last call."""
        return self._order.news()

    def tell_anew(self) -> None:
        """Let the next news be of all groups: someone listens who has not heard any."""
        self._order.tell_anew()

    def end(self) -> None:
        """Promise that no row will follow on any outlet."""
        for edge in (self, *self.outlets.values()):
            edge.raise_bound(END_OF_TIME)

    def _note(self, greatest: Microseconds, seen_at: Microseconds) -> None:
        if greatest > self.greatest:
            self.greatest, self.seen_at = greatest, seen_at

    def _stamp(self, rows: pa.RecordBatch, now: Microseconds) -> pa.RecordBatch:
        contract = self.contract
        if contract.kind == "external":
            return with_external_time(rows, contract)
        return self._with_stamps(rows, np.full(rows.num_rows, max(now, self.bound), dtype=np.int64))

    def _with_stamps(self, rows: pa.RecordBatch, stamps: Times) -> pa.RecordBatch:
        times = pa.array(stamps)
        if self.contract.column is not None:
            rows = with_column(rows, self.contract.column, times.cast(pa.timestamp("us", tz="UTC")))
        return with_time(rows, times)

    def stamped_ahead(self, rows: pa.RecordBatch, arrivals: Times) -> pa.RecordBatch | None:
        """Rows with their time before they enter, so that pieces of them can `enter` cheaply as they arrive.

        The system's own stamp is the arrival. None where a row has no time.
        """
        if self.contract.kind != "external":
            return self._with_stamps(rows, arrivals)
        stamped = with_external_time(rows, self.contract)
        return stamped if stamped.num_rows == rows.num_rows else None

    # The future guard

    @property
    def _future_skew(self) -> Microseconds | None:
        if self.contract.kind != "external":
            return None
        skew = self.contract.max_future_skew
        return FUTURE_SKEW if skew is None and self.live else skew

    def _from_past(self, batch: Batch, now: Microseconds) -> Batch:
        """The rows that are not from the future."""
        skew = self._future_skew
        if skew is None or not len(batch):
            return batch
        times = batch.times
        if self.live:
            return batch.where(times <= min(now + skew, END_OF_TIME))
        start = int(times[0]) if self.greatest == NO_BOUND else self.greatest
        before = np.maximum(np.concatenate([[start], np.maximum.accumulate(times)[:-1]]), start)
        if (times > plus(before, skew)).any():
            # Only the rows that are let through move the limit, so each row waits for the verdict on the one before.
            before = np.array(list(accumulate(times.tolist(), _passing(skew), initial=start))[:-1], np.int64)
        return batch.where(times <= plus(before, skew))

    def _limits(self, greatest: Times, now: Microseconds) -> Times | None:
        """For each row how far ahead its promise may be."""
        skew = self._future_skew
        if skew is None:
            return None
        if self.live:
            return np.full(len(greatest), min(now + skew, END_OF_TIME), np.int64)
        return plus(greatest, skew)

    # Bounds

    def follow(self, progresses: Sequence[Progress]) -> None:
        """Learn how far the stream has come where it is read: one `progress` a file, in the order of the files."""
        for progress in progresses:
            self._note(progress["greatest"], progress["seen_at"])
        orders = [progress["order"] for progress in progresses]
        until = self._order.join(orders, [progress["bound"] for progress in progresses])
        self.raise_bound(until, max(max(each["seen_at"], each.get("moved_at", NO_BOUND)) for each in progresses))
        self.sequence = max(self.sequence, *(progress["sequence"] for progress in progresses))
        for name in progresses[-1]["outlets"]:
            self.outlet(name).follow([progress["outlets"][name] for progress in progresses])

    def listen_anew(self, now: Microseconds) -> None:
        """Count silence from now on: the stream's own time stood still until now."""
        self.seen_at = now if self.seen_at != NO_BOUND else NO_BOUND
        self._order.listen_anew(now)
        for edge in self.outlets.values():
            edge.listen_anew(now)

    def share(self, edge: Ingress) -> None:
        """Know the partitions and groups that another edge of the stream knows, from now on."""
        self._order.share(edge._order)

    def changes(self) -> dict[str, Any]:
        """What its order must remember; of partitions and groups those that have changed since the last call."""
        return self._order.changes()

    def progress(self, order: dict[str, Any] | None = None) -> dict[str, Any]:
        """How far the stream has come, for `follow` and `resume`.

        A host that keeps partitions apart says by `order` what to put down of them.
        """
        return {
            "greatest": self.greatest,
            "seen_at": self.seen_at,
            "bound": self.bound,
            "moved_at": self.moved_at,
            "order": self._order.save() if order is None else order,
            "sequence": self.sequence,
            "outlets": {name: edge.progress() for name, edge in self.outlets.items()},
        }

    def slowest(self, count: int) -> list[Part]:
        """The partitions or groups that are furthest behind, the last first; none where the stream has none."""
        return self._order.slowest(count)

    @property
    def parts(self) -> int:
        """How many partitions or groups of it have been seen."""
        return self._order.parts

    def raise_bound(self, until: Microseconds, now: Microseconds = NO_BOUND) -> None:
        """Promise that nothing below `until` will be let in any more, as of the clock `now` where that is known."""
        if until > self.bound:
            self.bound = until
            self.moved_at = max(self.moved_at, now)

    # Enabling timestamps

    def ets(self, now: Microseconds) -> Microseconds | None:
        """The enabling timestamp that silence up to `now` allows, if it is better than the bound."""
        until = max((now - behind for behind in self._behind()), default=NO_BOUND)
        return until if until > self.bound else None

    def reaches(self, until: Microseconds) -> Microseconds | None:
        """The clock at which an enabling timestamp of `until` becomes possible; None is never."""
        return min((until + behind for behind in self._behind()), default=None)

    def _behind(self) -> Iterator[Microseconds]:
        """How far behind the clock a silent stream may be, by each rule that applies."""
        contract = self.contract
        if contract.ets == "none":
            return
        if contract.kind != "external":
            yield 0
        if contract.lull is not None:
            yield contract.lull
        if contract.skew is not None and self.greatest != NO_BOUND:
            lead = self._order.lead()
            yield contract.skew - (self.greatest - self.seen_at if lead is None else lead)

    def beats(self, now: Microseconds, every_one: bool = False) -> Iterator[Microseconds]:
        """The times up to `now` at which a periodic ETS was due since the last call: the last, or every one."""
        every = self.contract.every
        if every is None:
            return
        following = (now // every + 1) * every
        due = following if self.next_beat is None else self.next_beat
        self.next_beat = max(following, due)
        yield from range(due if every_one else max(due, following - every), following, every)

    # State

    def save(self, order: dict[str, Any] | None = None) -> dict[str, Any]:
        """All it knows, as plain data; `order` is as for `progress`."""
        return {**self.progress(order), **{name: getattr(self, name) for name in _COUNTS}}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.resume(saved)
        for name in _COUNTS:
            setattr(self, name, saved[name])

    def resume(self, progress: Progress) -> None:
        """Go on from where the stream stood, with counts of its own."""
        self.greatest, self.seen_at, self.bound = progress["greatest"], progress["seen_at"], progress["bound"]
        self.moved_at = progress.get("moved_at", NO_BOUND)
        self._order.restore(progress["order"])
        self.sequence = progress["sequence"]
        for name, outlet in progress["outlets"].items():
            self.outlet(name).resume(outlet)
        if SEQUENCE in self.outlets and SEQUENCE not in progress["outlets"]:
            # Nobody read it when this was saved.
            self.outlets[SEQUENCE].raise_bound(self.sequence)


_COUNTS = ("received", "late", "quarantined", "enabled", "next_beat")


def _passing(skew: Microseconds) -> Any:
    """The greatest time let through so far, given the one before and the next row's time."""
    return lambda greatest, time: max(greatest, time) if time <= greatest + skew else greatest
