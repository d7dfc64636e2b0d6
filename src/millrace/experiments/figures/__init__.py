"""The papers' experiments, made again: each writes its data and its picture, and holds its claims to what is measured.

An experiment is a file named after it. It runs in virtual time or counts the bytes of real operators: both are exact,
and every run can be repeated. Processor time, where a paper has it, is compared within a run alone.
"""

from __future__ import annotations

from millrace.experiments.figures import (
    auto_switch,
    eqg_overhead,
    ets_idle,
    ets_latency,
    ets_memory,
    joint_punctuation,
    linecutting,
    oop_band,
    oop_late_join,
    oop_skew,
    oop_sliding,
    oop_smoothing,
    oop_tumbling_join,
    overload,
    paging,
    queries_together,
    slide_burstiness,
    staleness_app_queue,
    staleness_queues,
    strategy_burst,
    window_arrivals,
    window_semantics,
    wjoin_analytic,
    wjoin_cost,
    wjoin_rate,
)
from millrace.experiments.figures.experiment import Figure

FIGURES: dict[str, Figure] = {
    each.FIGURE.name: each.FIGURE
    for each in (
        ets_latency,
        ets_idle,
        ets_memory,
        strategy_burst,
        eqg_overhead,
        slide_burstiness,
        staleness_app_queue,
        staleness_queues,
        linecutting,
        window_semantics,
        window_arrivals,
        paging,
        overload,
        queries_together,
        auto_switch,
        wjoin_analytic,
        wjoin_cost,
        wjoin_rate,
        oop_skew,
        oop_smoothing,
        oop_tumbling_join,
        oop_band,
        oop_late_join,
        oop_sliding,
        joint_punctuation,
    )
}
"""All figures by name, in the order of the papers."""
