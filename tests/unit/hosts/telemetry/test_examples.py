"""The dashboard and the alerts of examples/monitoring use metrics and labels that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from millrace.hosts.telemetry.metric_table import METRICS

EXAMPLES = Path(__file__).parents[4] / "examples" / "monitoring"
TABLE = {metric.name: metric for metric in METRICS}
OF_PROMETHEUS = {"instance", "job", "severity"}


def dashboard() -> list[tuple[str, str]]:
    """Each expression, with the text that its labels are shown in."""
    panels = json.loads((EXAMPLES / "grafana.json").read_text())["panels"]
    return [(target["expr"], target["legendFormat"]) for panel in panels for target in panel["targets"]]


def alerts() -> list[tuple[str, str]]:
    text = (EXAMPLES / "alerts.yml").read_text()
    return re.findall(r'expr: (.*?)\n(?:.*\n)*?\s+summary: "(.*)"\n', text)


@pytest.mark.parametrize(("expression", "shown"), [*dashboard(), *alerts()])
def test_an_expression_uses_what_there_is(expression: str, shown: str) -> None:
    names = re.findall(r"millrace_\w+", expression)
    assert names and set(names) <= set(TABLE)
    known = set().union(*(TABLE[name].labels for name in names)) | OF_PROMETHEUS
    used = re.findall(r"\{\{\s*(?:\$labels\.)?([a-z]+)\s*\}\}", shown)
    used += [each.strip() for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression) for each in group.split(",")]
    used += re.findall(r"[{,](\w+)=", expression)
    assert set(used) <= known
    counted = re.findall(r"(?:rate|increase)\((millrace_\w+)", expression)
    assert all((TABLE[name].kind == "counter") == (name in counted) for name in names)


def test_the_dashboard_and_the_alerts_have_what_was_asked_of_them() -> None:
    assert len(dashboard()) >= 12 and len(alerts()) == (EXAMPLES / "alerts.yml").read_text().count("- alert:")
    panels = json.loads((EXAMPLES / "grafana.json").read_text())["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len({panel["id"] for panel in panels}) == len(panels)
