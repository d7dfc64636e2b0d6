"""A run at a moment as the live page shows it: plain data, with rates over the last seconds.

Rules:
- All of it comes from a `Report` and a `Lag`, which every host gives. What a host does not know is None.
- A frame is of a moment, `as_of`: now, or on Spark the last commit. Rates and lengths of time are counted to it, as
  the sentences are: a stream may have sent rows since then, which no micro-batch has committed yet.
- A rate is the difference to a frame of an earlier moment.
- A query is held back if the stream that it waits for, or the partition of it, has stood still for `HELD_AFTER`; one
  that waits for rows as they come only waits.
- Lengths of time are seconds. Times are text, by the clock of the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millrace.hosts.report import Report
from millrace.hosts.why.lag import Lag
from millrace.hosts.why.verdicts import length_text
from millrace.hosts.why.waits import StreamLag, Wait
from millrace.kernel.elements import END_OF_TIME, NO_BOUND, Microseconds
from millrace.kernel.latency import Latency
from millrace.kernel.metrics import OperatorMetrics, QueueMetrics, SourceMetrics
from millrace.plan.explain.time_text import clock_text, interval_text

Frame = dict[str, Any]

HELD_AFTER = 2_000_000
"""Microseconds that a bound stands still until what waits for it is held back."""
_BARS = 24
"""The most bars of a histogram."""


@dataclass(frozen=True)
class Observation:
    """What a run said of itself at a moment."""

    report: Report
    lag: Lag


def frame_of(seen: Observation, names: Mapping[str, str], before: Frame | None) -> Frame:
    """One frame; `names` are those of the picture, by the names that operators have on this host."""
    report, lag = seen.report, seen.lag
    now = report.now or lag.now
    as_of = lag.now or now
    gone = 0.0 if before is None else (as_of - before["as_of"]) / 1e6
    rates = _Rates(before, gone)
    return {
        "now": now,
        "as_of": as_of,
        "age": _seconds(max(0, now - as_of)),
        "clock": clock_text(now),
        "elapsed": report.elapsed,
        "steps": report.steps,
        "held": report.held,
        "state_bytes": report.state_bytes,
        "streams": {
            name: _stream(name, source, lag.streams.get(name), as_of, rates) for name, source in report.sources.items()
        },
        "operators": _operators(report.operators, names, rates),
        "arcs": [
            [names.get(start, start), names.get(end, end), port, rows, _point(bound)]
            for (start, end, port), (rows, bound) in report.arcs.items()
        ],
        "queries": {name: _query(name, rows, report, lag, rates) for name, rows in report.results.items()},
        "verdict": str(lag).splitlines(),
        "batches": list(report.batches),
    }


class _Rates:
    """Rows per second since an earlier frame."""

    def __init__(self, before: Frame | None, seconds: float) -> None:
        self._before, self._seconds = before, seconds

    def of(self, kind: str, name: str, field: str, count: float) -> float | None:
        """How fast a count grew; None without an earlier frame that has it."""
        known = None if self._before is None else self._before[kind].get(name)
        if known is None or self._seconds <= 0:
            return None
        return round(max(0.0, count - known[field]) / self._seconds, 3)


# Streams


def _stream(name: str, source: SourceMetrics, lag: StreamLag | None, now: Microseconds, rates: _Rates) -> Frame:
    ended = source.bound == END_OF_TIME
    timed = source.unit == "time" and source.greatest not in (NO_BOUND, END_OF_TIME)
    return {
        "received": source.received,
        "rate": rates.of("streams", name, "received", source.received),
        "processed": source.processed,
        "late": source.late,
        "quarantined": source.quarantined,
        "buffered": source.buffered,
        "shed": source.shed,
        "superseded": source.superseded,
        "ets": source.enabled,
        "bound": _point(source.bound, source.unit),
        "greatest": _point(source.greatest, source.unit),
        "lag": _seconds(now - source.greatest) if timed else None,
        "bound_age": None if ended or source.moved_at == NO_BOUND else _seconds(now - source.moved_at),
        "heard": None if source.seen_at == NO_BOUND else _seconds(now - source.seen_at),
        "ended": ended,
        "silent": bool(lag is not None and lag.silent) and not ended,
        "contract": "" if lag is None else lag.contract,
        "disorder": _disorder(source.disorder, lag),
        "parts": _parts(lag, now),
    }


def _disorder(seen: Latency | None, lag: StreamLag | None) -> Frame | None:
    """How far behind the greatest time rows came, as bars and in words."""
    if seen is None or not seen.count:
        return None
    declared = lag.disorder if lag is not None and lag.kind == "external" and lag.unit == "time" else None
    most = seen.quantile(0.999)
    within = f"within {length_text(most)}" if most else "in order"
    words = f"99.9 % came {within}" if seen.max else "all rows came in order"
    if lag is not None and lag.rows is not None:
        words += f"; you declared {lag.rows:,} rows"
    elif declared is not None:
        words += f"; you declared {length_text(declared)}" if declared else "; you declared ORDERED"
    return {
        "rows": seen.count,
        "p50": _seconds(seen.quantile(0.5)),
        "p99": _seconds(seen.quantile(0.99)),
        "p999": _seconds(most),
        "max": _seconds(seen.max),
        "declared": None if declared is None else _seconds(declared),
        "sentence": words,
        "bars": [[_seconds(least), count] for least, count in seen.bars(_BARS)],
        "advice": _advice(most, seen.max, declared),
    }


def _advice(most: Microseconds, greatest: Microseconds, declared: Microseconds | None) -> str:
    """What another declaration would change; nothing where it fits."""
    if declared is None:
        return ""
    if greatest > declared:
        return f"rows came up to {length_text(greatest)} behind: those beyond the declaration are late"
    if declared > 1_000_000 and most * 4 < declared:
        rounded = max(1, -(-most * 2 // 1_000_000)) * 1_000_000
        return f"DISORDER INTERVAL {interval_text(rounded)} would be enough so far, and results would leave earlier"
    return ""


def _parts(lag: StreamLag | None, now: Microseconds) -> list[Frame]:
    """The partitions or groups that are furthest behind."""
    if lag is None or not lag.parts:
        return []
    columns = lag.per or lag.partitions
    return [
        {
            "name": ", ".join(f"{column} = {value}" for column, value in zip(columns, each.values, strict=True)),
            "bound": _point(each.bound, lag.unit),
            "heard": None if NO_BOUND in (each.greatest, each.seen_at) else _seconds(now - each.seen_at),
        }
        for each in lag.slowest
    ]


# Operators


def _operators(told: Mapping[str, OperatorMetrics], names: Mapping[str, str], rates: _Rates) -> dict[str, Frame]:
    found: dict[str, Frame] = {}
    for known, each in told.items():
        name = names.get(known, known)
        before = found.get(name)
        # On Spark one operator of the picture may be several, in buckets of several levels.
        found[name] = _added(before, _operator(each)) if before else _operator(each)
    for name, frame in found.items():
        frame["in_rate"] = rates.of("operators", name, "rows_in", frame["rows_in"])
        frame["out_rate"] = rates.of("operators", name, "rows_out", frame["rows_out"])
        busy = rates.of("operators", name, "cost", frame["cost"])
        idle = rates.of("operators", name, "idle", frame["idle"])
        frame["busy"] = None if busy is None else min(1.0, busy)
        frame["idle_share"] = None if idle is None else min(1.0, idle)
    return found


def _operator(each: OperatorMetrics) -> Frame:
    return {
        "rows_in": each.rows_in,
        "rows_out": each.rows_out,
        "punctuations": each.punctuations_in,
        "cost": _seconds(each.cost),
        "idle": _seconds(each.idle),
        "waiting": each.waiting,
        "held": each.held,
        "state_bytes": each.state_bytes,
        "bound": _point(each.bound),
    }


def _added(one: Frame, other: Frame) -> Frame:
    counts = {name: one[name] + other[name] for name in one if name != "bound"}
    return {**counts, "bound": min(one["bound"] or "", other["bound"] or "") or None}


# Queries


def _query(name: str, rows: int, report: Report, lag: Lag, rates: _Rates) -> Frame:
    latency = report.latency.get(name)
    queues = {title: each for title, each in report.queues.items() if title.partition("#")[0] == name}
    modes = [each for told in (report.joins, report.aggregates) for title, each in told.items() if _is_of(title, name)]
    return {
        "rows": rows,
        "rate": rates.of("queries", name, "rows", rows),
        "latency": None if latency is None or not latency.count else _latency(latency),
        "queue": _queue(list(queues.values())),
        "modes": [{"mode": each.mode, "switches": each.switches} for each in modes],
        "wait": _wait(name, lag),
    }


def _is_of(title: str, query: str) -> bool:
    return title.partition("#")[0] == query


def _latency(latency: Latency) -> Frame:
    return {
        "rows": latency.count,
        "p50": _seconds(latency.quantile(0.5)),
        "p99": _seconds(latency.quantile(0.99)),
        "max": _seconds(latency.max),
    }


def _queue(queues: Sequence[QueueMetrics]) -> Frame | None:
    """The queues of a query as one."""
    if not queues:
        return None
    keys = sum(each.keys for each in queues)
    return {
        "policy": ", ".join(dict.fromkeys(each.mode or each.policy for each in queues)),
        "keys": keys,
        "waiting": sum(each.waiting for each in queues),
        "superseded": sum(each.superseded for each in queues),
        "shed": sum(each.shed for each in queues),
        "staleness": _seconds(sum(each.application_now * each.keys for each in queues) / keys) if keys else 0.0,
        "oldest": _seconds(max(each.oldest for each in queues)),
    }


def _wait(query: str, lag: Lag) -> Frame | None:
    """What holds a query back, in words and by name; None if it does not wait."""
    wait = lag.waits.get(query)
    if wait is None or not wait.awaited:
        return None
    first = wait.awaited[0]
    stream = lag.streams[first.stream]
    lines = lag.sentences(query)
    parts = stream.parts_behind(first)
    # Rows of other partitions release nothing.
    moved = max(first.moved_at, parts[0].seen_at if parts else stream.seen_at)
    since = None if moved == NO_BOUND else lag.now - moved
    return {
        "stream": first.stream,
        "streams": list(dict.fromkeys(each.stream for each in wait.awaited)),
        "held": wait.held,
        "since": None if since is None else _seconds(since),
        "stuck": _is_stuck(wait, since),
        "sentence": lines[0],
        "lines": lines[1:],
        "ets_in": None if first.ets_at is None else _seconds(first.ets_at - lag.now),
    }


def _is_stuck(wait: Wait, since: Microseconds | None) -> bool:
    """True if rows are held by a stream that stands still, and not only until its next row."""
    if not wait.held:
        return False
    return since is None or since >= HELD_AFTER


def _point(time: Microseconds, unit: str = "time") -> str | None:
    text = clock_text(time, exact=True, unit="number" if unit == "number" else "time")
    return None if text == "-" else text


def _seconds(micros: float) -> float:
    return round(micros / 1e6, 6)
