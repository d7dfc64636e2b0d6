from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from millrace.hosts.telemetry.metric_table import METRICS

DOCUMENT = Path(__file__).parents[4] / "docs" / "monitoring.md"


def test_names_are_those_of_the_trade() -> None:
    assert [each for each, count in Counter(metric.name for metric in METRICS).items() if count > 1] == []
    for metric in METRICS:
        assert re.fullmatch(r"millrace(_[a-z]+)+", metric.name), metric.name
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert not re.search(r"_(ms|us|micros|kb|mib|count|sum|bucket)(_|$)", metric.name), metric.name
        assert metric.help.endswith(".") and "\n" not in metric.help and "\\" not in metric.help, metric.name
        assert all(re.fullmatch(r"[a-z]+", label) for label in metric.labels), metric.name


def test_the_documentation_has_the_table() -> None:
    lines = ["| metric | type | labels | what it is |", "|---|---|---|---|"]
    for each in METRICS:
        labels = ", ".join(f"`{label}`" for label in each.labels) or "–"
        lines.append(f"| `{each.name}` | {each.kind} | {labels} | {each.help} |")
    assert "\n".join(lines) in DOCUMENT.read_text()
