"""Where enabling timestamps (ETS) are made: the bound that the silence of a stream allows.

An ETS takes the place of data of a silent stream, so that what waits for the stream can go on (000 section 4). Which
source is asked for one, and when, is decided over the query graph: see graph/ets_demand.py.

Rules:
- For internal and latent time an ETS is the clock.
- For external time it is t + elapsed - skew (000 section 5), t being the stream's greatest time and elapsed how long
  ago it came, or clock - lull (004 A.1.1): of those that are declared the greater one.
- The clock of a replayed stream is the replayed time; what is known of the stream is noted by the host's clock.
- An ETS that is not above the stream's bound is none.
- Periodic ETS are due at the multiples of their interval, the beats.
"""

from __future__ import annotations

from collections.abc import Iterator

from millrace.kernel.elements import NO_BOUND, Microseconds
from millrace.kernel.progress.ingress import Ingress


def ets_at(edge: Ingress, now: Microseconds) -> Microseconds | None:
    """The ETS that silence up to `now` allows; None if it would not advance the bound."""
    at = _time(edge, now)
    until = max((at - lag for lag in _lags(edge)), default=NO_BOUND)
    return until if until > edge.bound else None


def clock_of_ets(edge: Ingress, until: Microseconds) -> Microseconds | None:
    """The clock at which an ETS of `until` is made: when it is possible, or at the next beat; None is never."""
    possible = min((until + lag for lag in _lags(edge)), default=None)
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
        lead = edge.order.lead(edge.clock)
        yield contract.skew - (edge.greatest - _time(edge, edge.seen_at) if lead is None else lead)


def beats(edge: Ingress, now: Microseconds, every_one: bool = False) -> Iterator[Microseconds]:
    """The beats up to `now` since the last call, as clocks: the last one, or every one."""
    every = edge.contract.every
    if every is None:
        return
    following = (_time(edge, now) // every + 1) * every
    due = following if edge.next_beat is None else edge.next_beat
    edge.next_beat = max(following, due)
    for beat in range(due if every_one else max(due, following - every), following, every):
        yield _clock(edge, beat)


def next_beat(edge: Ingress) -> Microseconds | None:
    """The clock of the next beat; None until the clock has been seen."""
    return None if edge.next_beat is None else _clock(edge, edge.next_beat)
