"""The metrics of a report in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterator

from millrace.hosts.report import Report
from millrace.hosts.telemetry.metric_table import Metric, Series, series_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def metrics_text(report: Report) -> str:
    """All metrics of a report, one line per series, under their help and type."""
    return "".join(f"{line}\n" for metric, series in series_of(report) for line in _lines(metric, series))


def _lines(metric: Metric, series: list[Series]) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for values, value in series:
        yield f"{metric.name}{_labels(metric.labels, values)} {value!r}"


def _labels(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    r"""Labels in braces, with their values escaped.

    >>> _labels(("query",), ('a "b"',))
    '{query="a \\"b\\""}'
    """
    pairs = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(names, values, strict=True))
    return f"{{{','.join(pairs)}}}" if names else ""
