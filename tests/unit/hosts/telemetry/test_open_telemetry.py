from __future__ import annotations

import sys
from typing import Any

import pytest

from millrace.errors import RequestError
from millrace.hosts.report import Report
from millrace.hosts.telemetry.exposition import metrics_text
from millrace.hosts.telemetry.metric_table import METRICS
from millrace.hosts.telemetry.open_telemetry import observe
from tests.prometheus import parse
from tests.unit.hosts.telemetry.test_exposition import REPORT


def collected(report: Any) -> list[Any]:
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    reader = export.InMemoryMetricReader()
    provider = sdk.MeterProvider([reader])
    observe(report, provider)
    data = reader.get_metrics_data()
    provider.shutdown()
    return [
        metric for resource in data.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics
    ]


def test_opentelemetry_collects_the_series_of_prometheus() -> None:
    kinds = {metric.name: metric.kind for metric in METRICS}
    suffix = {name.removesuffix("_total"): name for name in kinds}
    found = {
        (suffix[metric.name], frozenset(point.attributes.items())): point.value
        for metric in collected(lambda: REPORT)
        for point in metric.data.data_points
    }
    assert found == parse(metrics_text(REPORT))


def test_instruments_have_the_kind_unit_and_help_of_the_table() -> None:
    found = {metric.name: metric for metric in collected(lambda: REPORT)}
    counter, gauge = found["millrace_idle_wait_seconds"], found["millrace_state_bytes"]
    assert (counter.unit, counter.data.is_monotonic) == ("s", True)
    assert (gauge.unit, hasattr(gauge.data, "is_monotonic")) == ("By", False)
    assert {metric.description for metric in found.values()} <= {metric.help for metric in METRICS}


def test_a_collection_looks_at_the_run_once() -> None:
    looks = []

    def report() -> Report:
        looks.append(1)
        return REPORT

    collected(report)
    assert len(looks) < len(METRICS) / 2


def test_without_the_library_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(RequestError, match="not installed") as refused:
        observe(lambda: REPORT)
    assert "millrace[telemetry]" in refused.value.hint
