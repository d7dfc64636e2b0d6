"""Who may still send what: time contracts, admission, bounds and enabling timestamps.

Rules:
- A stream's bound is the greatest timestamp admitted so far less its declared disorder; it never goes back.
- A row below the bound is late: it is counted and handed back, never mixed in. A row without a time is quarantined.
- Whether a row is late depends on the rows before it alone, not on how they were cut into batches.
- An enabling timestamp (ETS) stands in for data of a silent stream: the clock for internal and latent time,
  t + elapsed - skew for external time (000 section 5), nothing without a declared skew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.kernel.elements import NO_BOUND, TIME, Batch, Mask, Microseconds, Times

TimeKind = Literal["external", "internal", "latent"]
EtsKind = Literal["none", "on_demand"]


@dataclass(frozen=True, slots=True)
class TimeContract:
    """What a stream promises about its timestamps.

    `column` names the time column (external: read from it; internal: written to it; latent: None).
    `disorder` is how far a row may trail the greatest timestamp before it (0: ordered).
    `ets` says whether a silent stream may be spoken for; `skew` is the delta of the external formula.
    """

    kind: TimeKind
    column: str | None = None
    disorder: Microseconds = 0
    ets: EtsKind = "none"
    skew: Microseconds | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of some rows at the edge: those let in, and those that came too late."""

    admitted: Batch
    late: Batch


class Ingress:
    """The edge of one stream: stamps rows, turns late ones away, and knows the stream's bound."""

    def __init__(self, contract: TimeContract) -> None:
        self.contract = contract
        self.greatest = NO_BOUND
        self.seen_at = NO_BOUND
        self.bound = NO_BOUND
        self.received = 0
        self.late = 0
        self.quarantined = 0
        self.enabled = 0

    def admit(self, rows: pa.RecordBatch, now: Microseconds) -> Admission:
        """Stamp raw rows, let in those at or above the bound, and advance the bound past them."""
        self.received += rows.num_rows
        stamped = self._stamp(rows, now)
        self.quarantined += rows.num_rows - stamped.num_rows
        batch = Batch(stamped)
        if not len(batch):
            return Admission(batch, batch)
        times = batch.times
        admission = self._admitted(batch, times >= self._floors(times))
        self.observe(int(times.max()), now)
        return admission

    def readmit(self, batch: Batch) -> Admission:
        """Check rows that carry their time already against the bound once more; the bound stays as it is."""
        return self._admitted(batch, batch.times >= self.bound)

    def _admitted(self, batch: Batch, on_time: Mask) -> Admission:
        if on_time.all():
            return Admission(batch, batch.slice(0, 0))
        late = batch.where(~on_time)
        self.late += len(late)
        return Admission(batch.where(on_time), late)

    def observe(self, greatest: Microseconds, now: Microseconds) -> None:
        """Learn that the stream has come as far as `greatest`."""
        if greatest > self.greatest:
            self.greatest, self.seen_at = greatest, now
        if greatest != NO_BOUND:
            self.raise_bound(max(self.greatest - self.contract.disorder, NO_BOUND))

    def raise_bound(self, until: Microseconds) -> None:
        """Promise that nothing below `until` will be let in any more."""
        self.bound = max(self.bound, until)

    def ets(self, now: Microseconds) -> Microseconds | None:
        """The enabling timestamp that silence up to `now` allows, if it is better than the bound."""
        until = self._silence(now)
        return until if until is not None and until > self.bound else None

    def reaches(self, until: Microseconds) -> Microseconds | None:
        """The clock at which an enabling timestamp of `until` becomes possible; None is never."""
        if self._silence(0) is None:
            return None
        if self.contract.kind != "external":
            return until
        assert self.contract.skew is not None
        return until - self.greatest + self.seen_at + self.contract.skew

    def _silence(self, now: Microseconds) -> Microseconds | None:
        if self.contract.ets == "none":
            return None
        if self.contract.kind != "external":
            return now
        if self.contract.skew is None or self.greatest == NO_BOUND:
            return None
        return self.greatest + (now - self.seen_at) - self.contract.skew

    def _floors(self, times: Times) -> Times:
        """For each row the bound that the rows before it had set."""
        disorder = self.contract.disorder
        before = np.empty_like(times)
        before[0] = self.greatest
        np.maximum.accumulate(times[:-1], out=before[1:])
        np.maximum(before, max(self.greatest, NO_BOUND + disorder), out=before)
        floors: Times = np.maximum(before - disorder, self.bound)
        return floors

    def _stamp(self, rows: pa.RecordBatch, now: Microseconds) -> pa.RecordBatch:
        contract = self.contract
        if contract.kind == "external":
            return _with_external_time(rows, contract.column)
        stamp = max(now, self.bound)
        times = pa.array(np.full(rows.num_rows, stamp, dtype=np.int64))
        if contract.column is not None:
            rows = _with_column(rows, contract.column, times.cast(pa.timestamp("us", tz="UTC")))
        return rows.append_column(TIME, times)

    def save(self) -> dict[str, Any]:
        """All it knows, as plain data."""
        return {name: getattr(self, name) for name in _SAVED}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        for name in _SAVED:
            setattr(self, name, saved[name])


_SAVED = ("greatest", "seen_at", "bound", "received", "late", "quarantined", "enabled")


def _with_external_time(rows: pa.RecordBatch, column: str | None) -> pa.RecordBatch:
    assert column is not None, "an external stream names its time column"
    times = rows.column(column)
    if times.null_count:
        rows = rows.filter(pc.is_valid(times))
        times = rows.column(column)
    return rows.append_column(TIME, times.cast(pa.int64()))


def _with_column(rows: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    index = rows.schema.get_field_index(name)
    return rows.append_column(name, values) if index < 0 else rows.set_column(index, name, values)
