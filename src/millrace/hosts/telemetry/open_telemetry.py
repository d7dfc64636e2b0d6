"""The metrics of a run for OpenTelemetry, where its library is installed (`millrace[telemetry]`).

Rules:
- The instruments are those of the table, all of them observed when they are collected. A counter is called without
  `_total` there, which exporters to Prometheus add.
- One collection looks at the run once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from millrace.errors import RequestError
from millrace.hosts.report import Report
from millrace.hosts.telemetry.metric_table import METRICS, Metric

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider, Observation

_ONE_LOOK = 0.05
"""Seconds that a report holds: the instruments of one collection are asked one after another."""


def observe(report: Callable[[], Report], provider: MeterProvider | None = None) -> None:
    """Let a meter provider, or the global one, collect the metrics of a run."""
    metrics = _library()
    meter = (provider or metrics.get_meter_provider()).get_meter("millrace")
    look = _Look(report)
    for each in METRICS:
        name, more = each.name.removesuffix("_total"), {"unit": each.unit, "description": each.help}
        create = meter.create_observable_counter if each.kind == "counter" else meter.create_observable_gauge
        create(name, callbacks=[_callback(each, look, metrics.Observation)], **more)


@contextmanager
def exported(report: Callable[[], Report]) -> Iterator[None]:
    """Send the metrics of a run by OTLP while the body runs, and once more at its end.

    The variables OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_METRIC_EXPORT_INTERVAL and the like say where to and how often.
    """
    _library()
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    provider = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())])
    observe(report, provider)
    try:
        yield
    finally:
        provider.shutdown()


class _Look:
    """A report that is taken anew for each collection."""

    def __init__(self, report: Callable[[], Report]) -> None:
        self._report = report
        self._taken = -1.0
        self._found: Report | None = None

    def __call__(self) -> Report:
        if self._found is None or time.monotonic() - self._taken > _ONE_LOOK:
            self._found, self._taken = self._report(), time.monotonic()
        return self._found


def _callback(metric: Metric, look: _Look, observation: type[Observation]) -> Callable[[Any], Iterator[Observation]]:
    def collect(_: Any) -> Iterator[Observation]:
        for values, value in metric.read(look()):
            yield observation(value, dict(zip(metric.labels, values, strict=True)))

    return collect


def _library() -> Any:
    try:
        from opentelemetry import metrics
        from opentelemetry.sdk import metrics as _  # noqa: F401
    except ImportError:
        raise RequestError(
            "OpenTelemetry is not installed", hint="Install it: pip install 'millrace[telemetry]'."
        ) from None
    return metrics
