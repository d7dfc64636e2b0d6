"""The edge of a stream: rows enter here, get their time, and move the stream's bound.

Rules:
- A stream's bound is the greatest that its rows allow by its order contract (see order.py); it never goes back.
- Which rows are admitted is decided in admission.py.
- A stream has an outlet for each further progressing column, for sequence numbers and for late rows: the same rows with
  another time, and a bound of their own.
- `save` gives all it knows as plain data, `progress` all but the counts; a host that reads a stream in several places
  has one edge per place, and one that follows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.clock import ReplayClock
from millrace.kernel.elements import (
    ARRIVED,
    END_OF_TIME,
    NO_BOUND,
    PARTITION,
    RESERVED,
    TIME,
    TIMESTAMP,
    Batch,
    Mask,
    Microseconds,
    Times,
    as_times,
)
from millrace.kernel.latency import Latency
from millrace.kernel.progress.admission import Admission, FutureGuard, by_lateness, on_time, sorted_out
from millrace.kernel.progress.open_windows import OpenWindows, open_windows
from millrace.kernel.progress.order import Entering, Order
from millrace.kernel.progress.quarantine import Aside, AsideBook, UnreadRows
from millrace.kernel.progress.time_contract import SEQUENCE, TimeContract

Progress = Mapping[str, Any]
"""How far a stream has come, as plain data: all of a `save` but the counts."""


class Ingress:
    """The edge of one stream: stamps rows, admits those that are on time, and knows the stream's bound.

    `live` is True if rows come as they happen, so that the clock can tell which of them are from the future.
    """

    def __init__(self, contract: TimeContract, live: bool = False) -> None:
        self.contract = contract
        self.order = contract.order()
        """How rows let the bound rise, and what is known of partitions and groups."""
        self.greatest = NO_BOUND
        self.seen_at = NO_BOUND
        """The clock when the greatest time came."""
        self.bound = NO_BOUND
        self.moved_at = NO_BOUND
        """The clock when the bound last advanced."""
        self.received = 0
        self.late = 0
        self.quarantined = 0
        self.aside = AsideBook()
        """Why rows were quarantined."""
        self.enabled = 0
        self.disorder = Latency()
        """How far rows came behind the greatest time before them, that of their partition if there are some."""
        self.next_beat: Microseconds | None = None
        """When the next periodic ETS is due by the stream's own clock; None until the clock has been seen."""
        self.read_until: Microseconds | None = None
        """The clock up to which all that had come was read, while more may be unread; None if no one may know.

        Hosts set it for streams with partitions, in runs in which ETS are made (see `reached`).
        """
        self.clock: ReplayClock | None = None
        """The replayed time of a stream that is replayed in real time, if its timestamps are its own."""
        self.sequence = 0
        """How many rows have been admitted."""
        self.outlets = {name: Ingress(contract.outlet(name)) for name, _ in contract.also}
        """The edges of the stream's other outlets; further columns are always checked."""
        self.windows: tuple[OpenWindows, ...] = ()
        """What its readers take of the rows below its bound, if it is LATE BY WINDOW."""
        self.frozen = False
        """True if rows do not move the bound, because other readers of the stream may know more partitions."""
        self._guard = FutureGuard(contract, live)
        self._simple = type(self.order) is Order and not contract.also

    # Rows

    def admit(self, rows: pa.RecordBatch, now: Microseconds) -> Admission:
        """Stamp raw rows, admit those that are on time, and advance the bound past them."""
        rows = with_computed(rows, self.contract)
        stamped = self._stamp(rows, now)
        without_time = rows.num_rows - stamped.num_rows
        if not without_time:
            return self.enter(Batch(stamped), now)
        self.received += without_time
        self.quarantined += without_time
        timeless, timed = _without_time(rows, self.contract)
        admission = self.enter(Batch(stamped), now)
        # The rows that remained count anew.
        future = (Aside(each.reason, timed[each.positions]) for each in admission.aside)
        return replace(admission, aside=(*timeless, *future))

    def enter(self, batch: Batch, now: Microseconds) -> Admission:
        """Admit rows that have their time already (see `stamped_ahead`) as `admit` does."""
        if self.contract.kind != "external":
            batch = self._raised(batch)
        self.received += len(batch)
        if len(batch) == 1 and self._simple and not self.windows:
            time = int(batch.times[0])
            if self._guard.passes(time, now):
                return self._enter_one(batch, time, now)
        passing = self._guard.passing(batch.times, self.greatest, now)
        if passing is None or passing.all():
            return self._admission(batch, now)
        future = np.flatnonzero(~passing)
        self.quarantined += len(future)
        reason = f'column "{self.contract.column}" is too far in the future'
        return replace(self._admission(batch.where(passing), now), aside=(Aside(reason, future),))

    def reject(self, unread: UnreadRows) -> None:
        """Count rows that their source could not read."""
        self.received += len(unread)
        self.quarantined += len(unread)

    def _admission(self, entering: Batch, now: Microseconds) -> Admission:
        """What becomes of rows that are not from the future."""
        if not len(entering):
            return Admission(entering, entering)
        before = self.bound
        accepted, bounds = self._judged(entering, now)
        if PARTITION in entering.rows.schema.names:
            entering = Batch(entering.rows.drop_columns([PARTITION]))
        for name, _ in self.contract.also:
            accepted &= self.outlets[name]._judged(self.through(name, entering), now)[0]
        admission = by_lateness(entering, accepted, bounds)
        if self.windows and len(admission.late):
            admission = sorted_out(admission, np.append(before, bounds[:-1])[~accepted], self.windows)
        return self._counted(admission)

    def _judged(self, batch: Batch, now: Microseconds) -> tuple[Mask, Times]:
        """True for each row that is on time, and the bound after each row."""
        bounds = self._bounds(batch, now)
        accepted = on_time(batch.times, self.bound, bounds, self.order.floors())
        self.raise_bound(int(bounds[-1]), now)
        return accepted, bounds

    def _enter_one(self, batch: Batch, time: Microseconds, now: Microseconds) -> Admission:
        """The same for one row under a plain order, with numbers instead of columns.

        A row that passes one filter would cost 24 % more with columns, one that enters an update queue 10 %.
        """
        bound = self.bound
        self._note(time, now)
        if self.contract.kind == "external":
            self.disorder.add_one(self.greatest - time)
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

    def readmit(self, batch: Batch, until: Microseconds | None = None) -> Admission:
        """Check rows that carry their time already against a bound, or the stream's, once more; it stays as it is."""
        until = self.bound if until is None else until
        return self._counted(by_lateness(batch, batch.times >= until, np.full(len(batch), until, np.int64)))

    def _bounds(self, batch: Batch, now: Microseconds) -> Times:
        """The stream's bound after each row; notes how far the rows have come."""
        times = batch.times
        greatest = np.maximum(np.maximum.accumulate(times), self.greatest)
        entering = Entering(batch.rows, times, greatest, self._guard.promise_limits(greatest, now), now)
        allowed = self.order.after(entering)
        self._note(int(greatest[-1]), now)
        if self.contract.kind == "external" and (behind := self.order.behind(entering)) is not None:
            self.disorder.add_some(behind)
        if self.frozen:
            return np.full(len(times), self.bound, np.int64)
        bounds: Times = np.maximum.accumulate(np.maximum(allowed, self.bound))
        return bounds

    def _counted(self, admission: Admission) -> Admission:
        self.sequence += len(admission.admitted)
        self.late += len(admission.late)
        return admission

    # Outlets

    def outlet(self, name: str) -> Ingress:
        """The edge of an outlet; itself for the stream's own time."""
        if not name or open_windows(name):
            return self
        if name not in self.outlets:
            self.outlets[name] = Ingress(self.contract.outlet(name))
            if name == SEQUENCE:
                self.outlets[name].bound = self.sequence
        return self.outlets[name]

    def through(self, name: str, admitted: Batch) -> Batch:
        """Rows as an outlet gives them, right after they were admitted: with another time."""
        if not name:
            return admitted
        rows = admitted.rows
        if name == SEQUENCE:
            first = self.sequence - rows.num_rows
            self.outlet(name).raise_bound(self.sequence)
            return Batch(_with_time(rows, pa.array(np.arange(first, self.sequence))))
        return Batch(_with_time(rows, as_times(rows.column(name))))

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
            return _with_external_time(rows, contract)
        return self._with_stamps(rows, np.full(rows.num_rows, max(now, self.bound), dtype=np.int64))

    def _with_stamps(self, rows: pa.RecordBatch, stamps: Times) -> pa.RecordBatch:
        times = pa.array(stamps)
        if self.contract.column is not None:
            rows = _with_column(rows, self.contract.column, times.cast(TIMESTAMP))
        return _with_time(rows, times)

    def stamped_ahead(self, rows: pa.RecordBatch, arrivals: Times) -> pa.RecordBatch | None:
        """Rows with their time before they enter, so that pieces of them can `enter` cheaply as they arrive.

        The system's own stamp is the arrival. None where a row has no time.
        """
        rows = with_computed(rows, self.contract)
        if self.contract.kind != "external":
            return self._with_stamps(rows, arrivals)
        stamped = _with_external_time(rows, self.contract)
        return stamped if stamped.num_rows == rows.num_rows else None

    # Bounds

    def follow(self, progresses: Sequence[Progress]) -> None:
        """Learn how far the stream has come where it is read: one `progress` per file, in the order of the files."""
        for progress in progresses:
            self._note(progress["greatest"], progress["seen_at"])
        orders = [progress["order"] for progress in progresses]
        until = self.order.join(orders, [progress["bound"] for progress in progresses])
        self.raise_bound(until, max(max(each["seen_at"], each.get("moved_at", NO_BOUND)) for each in progresses))
        self.sequence = max(self.sequence, *(progress["sequence"] for progress in progresses))
        for name in progresses[-1]["outlets"]:
            self.outlet(name).follow([progress["outlets"][name] for progress in progresses])

    def replay(self, clock: ReplayClock) -> None:
        """Make ETS by the replayed time from now on; those of the system's own stamps stay by the host's clock."""
        for edge in (self, *self.outlets.values()):
            edge.clock = clock if edge.contract.kind == "external" else None

    def reached(self, now: Microseconds) -> Microseconds | None:
        """Up to when a stream has been read, by the rows that came last: what follows them did not arrive earlier.

        A replayed row arrives when it is due, any other not before its own time. Of the partitions that were heard last
        the one furthest behind counts; those that are declared and have sent nothing do not.
        """
        parts = self.order.partitions if self.contract.partitions else None
        if parts is None or not (known := parts.greatest != NO_BOUND).any():
            return None
        last = int(parts.seen_at[known].max())
        if self.clock is not None:
            return last - 1
        return min(now, int(parts.greatest[known & (parts.seen_at == last)].min()))

    def restart_silence(self, now: Microseconds) -> None:
        """Count silence from now on: the stream's own time stood still until now."""
        self.seen_at = now if self.seen_at != NO_BOUND else NO_BOUND
        self.order.restart_silence(now)
        for edge in self.outlets.values():
            edge.restart_silence(now)

    def progress(self, order: dict[str, Any] | None = None) -> dict[str, Any]:
        """How far the stream has come, for `follow` and `resume`.

        A host that stores partitions elsewhere passes as `order` what to write about them.
        """
        return {
            "greatest": self.greatest,
            "seen_at": self.seen_at,
            "bound": self.bound,
            "moved_at": self.moved_at,
            "order": self.order.save() if order is None else order,
            "sequence": self.sequence,
            "outlets": {name: edge.progress() for name, edge in self.outlets.items()},
        }

    def raise_bound(self, until: Microseconds, now: Microseconds = NO_BOUND) -> None:
        """Promise that no row below `until` will be admitted, as of the clock `now` where that is known."""
        if until > self.bound:
            self.bound = until
            self.moved_at = max(self.moved_at, now)

    # State

    def save(self, order: dict[str, Any] | None = None) -> dict[str, Any]:
        """All it knows, as plain data; `order` is as for `progress`."""
        return {**self.progress(order), **{name: getattr(self, name) for name in _COUNTS}, "aside": self.aside.save()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.resume(saved)
        for name in _COUNTS:
            setattr(self, name, saved[name])
        self.aside = AsideBook()
        self.aside.add(saved.get("aside", {}))

    def resume(self, progress: Progress) -> None:
        """Go on from where the stream stood, with counts of its own."""
        self.greatest, self.seen_at, self.bound = progress["greatest"], progress["seen_at"], progress["bound"]
        self.moved_at = progress.get("moved_at", NO_BOUND)
        self.order.restore(progress["order"])
        self.sequence = progress["sequence"]
        for name, outlet in progress["outlets"].items():
            self.outlet(name).resume(outlet)
        if SEQUENCE in self.outlets and SEQUENCE not in progress["outlets"]:
            # No operator read it when this was saved.
            self.outlets[SEQUENCE].raise_bound(self.sequence)


_COUNTS = ("received", "late", "quarantined", "enabled", "next_beat")


def with_computed(rows: pa.RecordBatch, contract: TimeContract) -> pa.RecordBatch:
    """Rows with the computed columns whose arguments are all there."""
    if not contract.computed:
        return rows
    for name, expression in contract.computed:
        if name not in rows.schema.names and {*expression.columns()} <= {*rows.schema.names}:
            rows = rows.append_column(name, expression.over(rows))
    reserved = [name for name in rows.schema.names if name not in contract.layout]
    return rows.select([*(name for name in contract.layout if name in rows.schema.names), *reserved])


def _with_external_time(rows: pa.RecordBatch, contract: TimeContract) -> pa.RecordBatch:
    """Rows with their own time, without those that lack it or another progressing column."""
    assert contract.column is not None, "an external stream names its time column"
    for column in (contract.column, *(name for name, _ in contract.also)):
        if rows.column(column).null_count:
            rows = rows.filter(pc.is_valid(rows.column(column)))
    return _with_time(rows, as_times(rows.column(contract.column)))


def _without_time(rows: pa.RecordBatch, contract: TimeContract) -> tuple[list[Aside], Times]:
    """The rows that lack a progressing column, by the first that they lack; and the positions of the others."""
    found, remaining = [], np.arange(rows.num_rows)
    for column in (contract.column, *(name for name, _ in contract.also)):
        missing = pc.is_null(rows.column(column)).to_numpy(zero_copy_only=False)[remaining]
        if missing.any():
            found.append(Aside(f'column "{column}" is null', remaining[missing]))
            remaining = remaining[~missing]
    return found, remaining


def _with_time(rows: pa.RecordBatch, times: pa.Array) -> pa.RecordBatch:
    """Rows with their own time; the reserved columns stand last, in their order."""
    rows = _with_column(rows, TIME, times)
    names = rows.schema.names
    if names[-1] == TIME and ARRIVED not in names:
        return rows
    return rows.select(
        [*(name for name in names if name not in RESERVED), *(name for name in RESERVED if name in names)]
    )


def _with_column(rows: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Rows with a column added, or in the place of the one of that name."""
    index = rows.schema.get_field_index(name)
    return rows.append_column(name, values) if index < 0 else rows.set_column(index, name, values)
