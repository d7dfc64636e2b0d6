"""The papers' experiments: each figure writes its data and its picture, and checks its claims against what it measured.

A figure is declared: the cases it runs, the columns of its table, its panels, and the function that returns its claims.
Cases run in virtual time or count the bytes of real operators: both are exact, and every run can be repeated. Processor
time, where a paper has it, is compared only within a run.

- `command`: `millrace figures`
- `experiment`, `curves`, `claims`: what a figure is; its results read as curves and drawn; a value and its range
- `generated_networks`: query graphs over generated streams, run in virtual time
- `enabling_timestamps`, `query_graph`: the figures of 000 and 001
- `updates/`: those of 002, and beyond it
- `join_equations`, `ordered_joins`: those of 003
- `out_of_order`, `flush_smoothing`, `joint_punctuation`: those of 004

Comes in: the name of a figure. Goes out: NAME.csv, NAME.txt and, with matplotlib, NAME.svg. Only the command line
imports this package.
"""

from __future__ import annotations

from millrace.experiments.figures import (
    enabling_timestamps,
    flush_smoothing,
    join_equations,
    joint_punctuation,
    ordered_joins,
    out_of_order,
    query_graph,
)
from millrace.experiments.figures.experiment import Figure
from millrace.experiments.figures.updates import overload, queue_staleness, slow_updaters, update_windows

_FIGURES = (
    (enabling_timestamps.ets_latency, enabling_timestamps.ets_idle, enabling_timestamps.ets_memory),
    (query_graph.strategy_burst, query_graph.eqg_overhead, query_graph.slide_burstiness),
    (queue_staleness.staleness_app_queue, queue_staleness.staleness_queues, slow_updaters.key_activity),
    (queue_staleness.linecutting, slow_updaters.slow_bursts),
    (update_windows.window_semantics, update_windows.window_arrivals, queue_staleness.paging),
    (overload.overload, overload.queries_together, overload.auto_switch),
    (join_equations.wjoin_analytic, ordered_joins.wjoin_cost, ordered_joins.wjoin_rate, ordered_joins.wjoin_memory),
    (out_of_order.oop_skew, flush_smoothing.oop_smoothing, out_of_order.oop_tumbling_join),
    (out_of_order.oop_band, out_of_order.oop_late_join, out_of_order.oop_sliding),
    (joint_punctuation.joint_punctuation,),
)
FIGURES: dict[str, Figure] = {figure.name: figure for figures in _FIGURES for figure in figures}
"""All figures by name, in the order of the papers."""
