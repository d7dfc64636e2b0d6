"""Sliding windows that keep rows or partials by what is measured: the same answers as either, on every host."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from millrace.kernel.aggregates.window_aggregate import WindowAggregate
from millrace.kernel.metrics import AggregateMetrics
from millrace.testing import Bench, Host

SPARSE, DENSE = 150, 30
"""Seconds with one row each, and seconds with forty."""
QUERY = (
    "SELECT window, count(*) AS n, max(v) AS most, approx_percentile(v, 0.5) AS middle "
    "FROM s [RANGE 8 SECONDS SLIDE 1 SECOND]"
)
STREAM = "CREATE STREAM s (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;"
SQL = f"""{STREAM}
CREATE QUERY measured AS {QUERY};
CREATE QUERY partials AS {QUERY} WITH (panes = 'on');
CREATE QUERY buffered AS {QUERY} WITH (panes = 'off');
"""


def seconds() -> list[int]:
    """Sparse, dense and sparse again."""
    dense = [second for second in range(SPARSE, SPARSE + DENSE) for _ in range(40)]
    return [*range(SPARSE), *dense, *range(SPARSE + DENSE, 2 * SPARSE + DENSE)]


def table(times: list[int]) -> pa.Table:
    stamps = pa.array([time * 1_000_000 for time in times]).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"v": pa.array([time % 7 for time in times], pa.int32()), "ts": stamps})


def windows(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((int(row["window_start"].timestamp()), row["n"], row["most"], row["middle"]) for row in rows)


@pytest.mark.slow
def test_the_answer_is_that_of_panes_and_that_of_rows(host: Host) -> None:
    times = seconds()
    run = host.open(SQL, {"s": [table(times[start : start + 400]) for start in range(0, len(times), 400)]})
    told = run.run().aggregates
    found = {name: [row for each in tables for row in each.to_pylist()] for name, tables in run.memory.items()}
    counts = Counter(start for time in times for start in range(time - 7, time + 1))
    assert [(start, n) for start, n, *_ in windows(found["measured"])] == sorted(counts.items())
    assert windows(found["measured"]) == windows(found["partials"]) == windows(found["buffered"])
    assert (told["partials"], told["buffered"]) == (AggregateMetrics("panes"), AggregateMetrics("rows"))
    # On Spark the partials of a lower level come together: there is nothing to choose.
    assert (told["measured"].switches > 0) is (host.name != "spark")


@pytest.mark.slow
def test_an_aggregate_changes_over_while_it_runs() -> None:
    bench = Bench(f"{STREAM} CREATE QUERY q AS {QUERY};")
    kept, rows = [], []
    for second, count in sorted(Counter(seconds()).items()):
        bench.push("s", table([second] * count))
        if second % 50 == 49:
            bench.restart()
        operators = (node.operator for node in bench.executor.graph.nodes.values())
        kept += [each.buffered for each in operators if isinstance(each, WindowAggregate)]
        assert bench.metrics().aggregates["q"].mode == ("rows" if kept[-1] else "panes")
        rows += bench.results("q")
    bench.end("s")
    rows += bench.results("q")
    assert bench.metrics().aggregates["q"].switches == sum(a != b for a, b in pairwise(kept)) == 3
    assert [kept[10], kept[SPARSE - 1], kept[SPARSE + DENSE - 1], kept[-1]] == [False, True, False, True]
    counts = Counter(start for time in seconds() for start in range(time - 7, time + 1))
    assert [(start, n) for start, n, *_ in windows(rows)] == sorted(counts.items())
