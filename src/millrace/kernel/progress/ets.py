"""Where enabling timestamps (ETS) are made: the bound that the silence of a stream allows.

An ETS takes the place of data of a silent stream, so that what waits for the stream can go on (000 section 4). Which
source is asked for one, and when, is decided over the query graph: see graph/ets_demand.py.

Rules:
- For internal and latent time an ETS is the clock.
- For external time it is t + elapsed - skew (000 section 5), t being the stream's greatest time and elapsed how long
  ago it came, or clock - lull (004 A.1.1): of those that are declared the greater one.
- Where the order holds in each partition, silence is a matter of partitions. A partition is silent when nothing has
  come from it for the lull. One that is not silent is as far as its own rows, even if these are far behind the clock.
  The ETS is the least of all, so a stream may have one while it is busy: up to when it has been read
  (`Ingress.read_until`).
- The clock of a replayed stream is the replayed time; what is known of the stream is noted by the host's clock.
- An ETS that is not above the stream's bound is none.
- Periodic ETS are due at the multiples of their interval, the beats.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Microseconds, Times
from millrace.kernel.progress.ingress import Ingress
from millrace.kernel.progress.partition_progress import PartitionProgress


def ets_at(edge: Ingress, now: Microseconds) -> Microseconds | None:
    """The ETS that silence up to `now` allows; None if it would not advance the bound."""
    at, parts = _time(edge, now), edge.order.partitions
    if parts is None or edge.contract.ets == "none":
        until = max((at - lag for lag in _lags(edge)), default=NO_BOUND)
    else:
        until = int(_partition_bounds(edge, parts, at).min())
    return until if until > edge.bound else None


def clock_of_ets(edge: Ingress, until: Microseconds) -> Microseconds | None:
    """The clock at which an ETS of `until` is made: when it is possible, or at the next beat; None is never."""
    if until == END_OF_TIME:
        # What only the end of a stream releases, its silence never does.
        return None
    parts = edge.order.partitions
    if parts is None or edge.contract.ets == "none":
        possible = min((until + lag for lag in _lags(edge)), default=None)
    else:
        possible = _partitions_possible(edge, parts, until)
    if possible is None:
        return None
    every = edge.contract.every
    return _clock(edge, possible if every is None else -(-possible // every) * every)


def _time(edge: Ingress, now: Microseconds) -> Microseconds:
    """The stream's own clock at a time of the host's."""
    return now if edge.clock is None else edge.clock.at(now)


def _clock(edge: Ingress, time: Microseconds) -> Microseconds:
    """The host's clock at a time of the stream's own."""
    return time if edge.clock is None else edge.clock.when(time)


def _lags(edge: Ingress) -> Iterator[Microseconds]:
    """How far behind the clock a silent stream may be, by each rule that applies."""
    contract = edge.contract
    if contract.ets == "none":
        return
    if contract.kind != "external":
        yield 0
    if contract.lull is not None:
        yield contract.lull
    if contract.skew is not None and edge.greatest != NO_BOUND:
        yield contract.skew - (edge.greatest - _time(edge, edge.seen_at))


# Partitions


def _heard(edge: Ingress, parts: PartitionProgress) -> Times:
    """The stream's own clock when each partition was last heard."""
    return parts.seen_at if edge.clock is None else edge.clock.all_at(parts.seen_at)


def _partition_bounds(edge: Ingress, parts: PartitionProgress, at: Microseconds) -> Times:
    """The bound of each partition at a time of the stream's clock: by its rows, or by its silence if greater."""
    (lull, skew), heard = _lengths(edge), _heard(edge, parts)
    bounds: Times = np.full(len(parts), NO_BOUND, np.int64) if edge.order.starting else parts.allowed
    if lull is not None:
        bounds = np.where(heard <= at - lull, np.maximum(bounds, at - lull), bounds)
    if skew is not None:
        known = parts.greatest != NO_BOUND
        paced = np.where(known, parts.greatest, 0) - np.where(known, heard, 0)
        bounds = np.where(known, np.maximum(bounds, paced + (at - skew)), bounds)
    return bounds


def _lengths(edge: Ingress) -> tuple[Microseconds | None, Microseconds | None]:
    """The lull and the skew; at the start neither is less than the grace, in which partitions may turn up."""
    least = (edge.contract.grace or 0) if edge.order.starting else 0
    lull, skew = (each if each is None else max(each, least) for each in (edge.contract.lull, edge.contract.skew))
    return lull, skew


def _partitions_possible(edge: Ingress, parts: PartitionProgress, until: Microseconds) -> Microseconds | None:
    """The stream's clock at which silence has taken all partitions below `until` up to it."""
    (lull, skew), behind = _lengths(edge), (parts.allowed < until) | edge.order.starting
    heard, greatest = _heard(edge, parts)[behind], parts.greatest[behind]
    possible = np.full(len(heard), END_OF_TIME, np.int64)
    if lull is not None:
        possible = np.maximum(heard, until) + lull
    if skew is not None:
        known = greatest != NO_BOUND
        paced = np.where(known, heard, 0) - np.where(known, greatest, 0) + (until + skew)
        possible = np.where(known, np.minimum(possible, paced), possible)
    latest = int(possible.max(initial=NO_BOUND))
    return None if latest in (NO_BOUND, END_OF_TIME) else latest


def beats(edge: Ingress, now: Microseconds, every_one: bool = False) -> Iterator[Microseconds]:
    """The beats up to `now` since the last call, as clocks: the last one, or every one."""
    every = edge.contract.every
    if every is None:
        return
    following = (_time(edge, now) // every + 1) * every
    # A beat that was due later is of a longer interval, which is no longer declared.
    due = following if edge.next_beat is None else min(edge.next_beat, following)
    edge.next_beat = following
    for beat in range(due if every_one else max(due, following - every), following, every):
        yield _clock(edge, beat)


def next_beat(edge: Ingress) -> Microseconds | None:
    """The clock of the next beat; None until the clock has been seen."""
    return None if edge.next_beat is None else _clock(edge, edge.next_beat)
