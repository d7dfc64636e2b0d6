"""Every metric of a run: what Prometheus, OpenTelemetry, the dashboard, the alerts and the documentation are made of.

Rules:
- Names are those of the trade: a prefix, base units, and `_total` at the end of a counter, and only there.
- A metric is read from a `Report` alone, so that all hosts have the same ones.
- A series that cannot be known is left out: the lag of a stream without a row, say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from millrace.hosts.report import Report
from millrace.kernel.elements import END_OF_TIME, NO_BOUND
from millrace.kernel.metrics import OperatorMetrics, QueueMetrics, SourceMetrics

Series = tuple[tuple[str, ...], float]
"""The values of the labels, and the value."""


@dataclass(frozen=True)
class Metric:
    """One metric: how it is called, what it means, and how it is read."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: tuple[str, ...]
    read: Callable[[Report], Iterable[Series]]

    @property
    def unit(self) -> str:
        """Its unit, as OpenTelemetry writes it; "1" for counts."""
        return "s" if "_seconds" in self.name else "By" if self.name.endswith("_bytes") else "1"


def series_of(report: Report) -> Iterator[tuple[Metric, list[Series]]]:
    """Each metric that has a value in a report, with its series."""
    for metric in METRICS:
        if found := list(metric.read(report)):
            yield metric, found


# How they are read


def _streams(read: Callable[[SourceMetrics], float]) -> Callable[[Report], Iterator[Series]]:
    return lambda report: (((name,), read(source)) for name, source in report.sources.items())


def _operators(read: Callable[[OperatorMetrics], float]) -> Callable[[Report], Iterator[Series]]:
    return lambda report: (((name,), read(each)) for name, each in report.operators.items())


def _queues(read: Callable[[QueueMetrics], float]) -> Callable[[Report], Iterator[Series]]:
    return lambda report: ((_numbered(title), read(queue)) for title, queue in report.queues.items())


def _by_name(found: Mapping[str, float]) -> Iterator[Series]:
    return (((name,), value) for name, value in found.items())


def _one(read: Callable[[Report], float]) -> Callable[[Report], Iterator[Series]]:
    return lambda report: iter([((), read(report))])


def _numbered(title: str) -> tuple[str, str]:
    """A query, and the number of its queue, join or aggregate.

    >>> _numbered("totals"), _numbered("totals#2")
    (('totals', '1'), ('totals', '2'))
    """
    query, _, number = title.rpartition("#")
    return (query, number) if query and number.isdigit() else (title, "1")


def _lags(report: Report) -> Iterator[Series]:
    for name, source in report.sources.items():
        if source.unit == "time" and source.greatest != NO_BOUND:
            yield (name,), (report.now - source.greatest) / 1e6


def _ages(report: Report) -> Iterator[Series]:
    for name, source in report.sources.items():
        if source.moved_at != NO_BOUND and source.bound != END_OF_TIME:
            yield (name,), max(0, report.now - source.moved_at) / 1e6


def _staleness(report: Report) -> Iterator[Series]:
    for title, queue in report.queues.items():
        yield (*_numbered(title), "queue"), queue.queue_now / 1e6
        yield (*_numbered(title), "application"), queue.application_now / 1e6


def _modal(report: Report) -> Iterator[tuple[str, str, str, int]]:
    """What chooses its way of working: its kind, the title in its query, the present mode, and the switches so far."""
    kinds: dict[str, Mapping[str, Any]] = {"join": report.joins, "aggregate": report.aggregates, "queue": report.queues}
    for kind, found in kinds.items():
        for title, each in found.items():
            yield kind, title, each.mode, each.switches


def _modes(report: Report) -> Iterator[Series]:
    return (((*_numbered(title), kind, mode), 1) for kind, title, mode, _ in _modal(report) if mode)


def _switches(report: Report) -> Iterator[Series]:
    return (((*_numbered(title), kind), count) for kind, title, _, count in _modal(report))


def _users(report: Report) -> Iterator[Series]:
    return (((name, query), 1) for name, each in report.operators.items() for query in each.queries)


_STREAM, _QUERY, _OPERATOR, _QUEUE = ("stream",), ("query",), ("operator",), ("query", "number")
_MODAL = (*_QUEUE, "kind")

METRICS = (
    Metric("millrace_rows_in_total", "counter", "Rows received.", _STREAM, _streams(lambda s: s.received)),
    Metric(
        "millrace_rows_out_total",
        "counter",
        "Result rows.",
        _QUERY,
        lambda r: _by_name(r.results),
    ),
    Metric("millrace_rows_late_total", "counter", "Rows below their bound.", _STREAM, _streams(lambda s: s.late)),
    Metric(
        "millrace_rows_quarantined_total",
        "counter",
        "Rows that could not be read, had no time, or came from the future.",
        _STREAM,
        _streams(lambda s: s.quarantined),
    ),
    Metric("millrace_rows_shed_total", "counter", "Rows that a queue shed.", _STREAM, _streams(lambda s: s.shed)),
    Metric(
        "millrace_rows_superseded_total",
        "counter",
        "Rows that a newer row of their key replaced in a queue.",
        _STREAM,
        _streams(lambda s: s.superseded),
    ),
    Metric(
        "millrace_rows_buffered",
        "gauge",
        "Rows that wait for an operator, or in a queue.",
        _STREAM,
        _streams(lambda s: s.buffered),
    ),
    Metric(
        "millrace_event_time_lag_seconds",
        "gauge",
        "The clock minus the greatest time of a stream.",
        _STREAM,
        _lags,
    ),
    Metric(
        "millrace_punctuation_age_seconds", "gauge", "Time since the bound of a stream last advanced.", _STREAM, _ages
    ),
    Metric(
        "millrace_ets_generated_total",
        "counter",
        "Enabling timestamps made for a silent stream.",
        _STREAM,
        _streams(lambda s: s.enabled),
    ),
    Metric(
        "millrace_queue_length", "gauge", "Rows that wait in an update queue.", _QUEUE, _queues(lambda q: q.waiting)
    ),
    Metric(
        "millrace_queue_oldest_seconds",
        "gauge",
        "For how long the key that waits longest has waited.",
        _QUEUE,
        _queues(lambda q: q.oldest / 1e6),
    ),
    Metric(
        "millrace_staleness_seconds",
        "gauge",
        "Staleness of a queue at present, as the mean over its keys.",
        (*_QUEUE, "kind"),
        _staleness,
    ),
    Metric(
        "millrace_adaptive_mode",
        "gauge",
        "1 for the present mode of a join, aggregate or queue.",
        (*_MODAL, "mode"),
        _modes,
    ),
    Metric(
        "millrace_adaptive_switches_total",
        "counter",
        "How often a join, aggregate or queue changed its mode by itself.",
        _MODAL,
        _switches,
    ),
    Metric(
        "millrace_idle_wait_seconds_total",
        "counter",
        "Time that an operator waited for a bound that was due.",
        _OPERATOR,
        _operators(lambda o: o.idle / 1e6),
    ),
    Metric("millrace_state_bytes", "gauge", "State of an operator.", _OPERATOR, _operators(lambda o: o.state_bytes)),
    Metric(
        "millrace_rows_held",
        "gauge",
        "Rows and partials that an operator holds.",
        _OPERATOR,
        _operators(lambda o: o.held),
    ),
    Metric(
        "millrace_operator_rows_in_total",
        "counter",
        "Rows that an operator took.",
        _OPERATOR,
        _operators(lambda o: o.rows_in),
    ),
    Metric(
        "millrace_operator_rows_out_total",
        "counter",
        "Rows that an operator gave.",
        _OPERATOR,
        _operators(lambda o: o.rows_out),
    ),
    Metric(
        "millrace_operator_busy_seconds_total",
        "counter",
        "Time that an operator worked.",
        _OPERATOR,
        _operators(lambda o: o.cost / 1e6),
    ),
    Metric(
        "millrace_operator_info", "gauge", "1 for each query that an operator works for.", ("operator", "query"), _users
    ),
    Metric(
        "millrace_rows_refused_total",
        "counter",
        "Rows on time for their stream, but late for a query with a roll-up or slack.",
        (),
        _one(lambda r: r.turned_away),
    ),
    Metric(
        "millrace_malformed_total",
        "counter",
        "Texts that from_json could not read.",
        _QUERY,
        lambda r: _by_name(r.malformed),
    ),
    Metric(
        "millrace_steps_total",
        "counter",
        "Commits on local, micro-batches on Spark, events in virtual time.",
        (),
        _one(lambda r: r.steps),
    ),
    Metric(
        "millrace_micro_batch_task_seconds_total",
        "counter",
        "Time of all tasks of micro-batches in a part of the work; only on Spark.",
        ("part",),
        lambda r: _by_name(r.parts),
    ),
    Metric("millrace_run_seconds", "gauge", "How long the run has lasted.", (), _one(lambda r: r.elapsed)),
)
"""In the order of the documentation: streams, queries, queues, operators, the run."""
