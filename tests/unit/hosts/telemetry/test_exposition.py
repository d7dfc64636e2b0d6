from __future__ import annotations

from dataclasses import replace

import pytest

from millrace.hosts.report import Report
from millrace.hosts.telemetry.exposition import metrics_text
from millrace.kernel.elements import END_OF_TIME, NO_BOUND
from millrace.kernel.metrics import AggregateMetrics, JoinMetrics, OperatorMetrics, QueueMetrics, SourceMetrics
from tests.prometheus import parse, value

SECOND = 1_000_000
SOURCE = SourceMetrics(
    received=10,
    late=2,
    quarantined=1,
    buffered=3,
    bound=5 * SECOND,
    greatest=6 * SECOND,
    enabled=4,
    shed=1,
    superseded=2,
    moved_at=7 * SECOND,
)
REPORT = Report(
    {"a": SOURCE},
    {"q": 5},
    elapsed=1.5,
    steps=3,
    turned_away=6,
    queues={"q": QueueMetrics("auto", waiting=7, queue_now=2e6, application_now=3e6, mode="inplace", switches=2)},
    joins={"q#2": JoinMetrics("sync_filter", switches=1)},
    aggregates={"q": AggregateMetrics("panes")},
    malformed={"q": 8},
    operators={"join#1": OperatorMetrics(("p", "q"), 11, 12, idle=SECOND // 2, held=13, state_bytes=14, cost=SECOND)},
    parts={"read": 0.25},
    now=10 * SECOND,
)


def test_every_series_has_the_value_that_the_report_says() -> None:
    found = parse(metrics_text(REPORT))
    assert {
        name.removeprefix("millrace_") + "".join(f" {each}" for _, each in sorted(labels)): value
        for (name, labels), value in found.items()
    } == {
        "rows_in_total a": 10,
        "rows_out_total q": 5,
        "rows_late_total a": 2,
        "rows_quarantined_total a": 1,
        "rows_shed_total a": 1,
        "rows_superseded_total a": 2,
        "rows_buffered a": 3,
        "event_time_lag_seconds a": 4,
        "punctuation_age_seconds a": 3,
        "ets_generated_total a": 4,
        "queue_length 1 q": 7,
        "queue_oldest_seconds 1 q": 0,
        "staleness_seconds queue 1 q": 2,
        "staleness_seconds application 1 q": 3,
        "adaptive_mode queue inplace 1 q": 1,
        "adaptive_mode join sync_filter 2 q": 1,
        "adaptive_mode aggregate panes 1 q": 1,
        "adaptive_switches_total queue 1 q": 2,
        "adaptive_switches_total join 2 q": 1,
        "adaptive_switches_total aggregate 1 q": 0,
        "idle_wait_seconds_total join#1": 0.5,
        "state_bytes join#1": 14,
        "rows_held join#1": 13,
        "operator_rows_in_total join#1": 11,
        "operator_rows_out_total join#1": 12,
        "operator_busy_seconds_total join#1": 1,
        "operator_info join#1 p": 1,
        "operator_info join#1 q": 1,
        "rows_refused_total": 6,
        "malformed_total q": 8,
        "steps_total": 3,
        "micro_batch_task_seconds_total read": 0.25,
        "run_seconds": 1.5,
    }


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "straße", "a,b}", "q#x"])
def test_names_with_any_character_are_read_back(name: str) -> None:
    found = parse(metrics_text(Report({name: SOURCE}, {name: 1})))
    assert value(found, "millrace_rows_in_total", stream=name) == 10
    assert value(found, "millrace_rows_out_total", query=name) == 1


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        (replace(SOURCE, greatest=NO_BOUND), "event_time_lag_seconds"),
        (replace(SOURCE, unit="number"), "event_time_lag_seconds"),
        (replace(SOURCE, moved_at=NO_BOUND), "punctuation_age_seconds"),
        (replace(SOURCE, bound=END_OF_TIME), "punctuation_age_seconds"),
    ],
)
def test_what_cannot_be_known_is_left_out(source: SourceMetrics, missing: str) -> None:
    assert f"millrace_{missing}" not in metrics_text(replace(REPORT, sources={"a": source}))
    assert f"millrace_{missing}" in metrics_text(REPORT)
