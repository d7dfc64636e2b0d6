"""What operators say of themselves on Spark, below the exchanges and above."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.hosts.spark.operator_reports import metrics_of
from millrace.kernel.metrics import OperatorMetrics
from millrace.language import parse_network
from tests.unit.hosts.spark.staged import Staged

STREAM = "CREATE STREAM s (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM parquet OPTIONS (path 'x');"
KEPT = "CREATE QUERY kept AS SELECT k, n + 1 AS m FROM s WHERE n > 1;"
COUNTS = "CREATE QUERY counts AS SELECT k, count(*) AS c FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] WHERE n > 1 GROUP BY k;"
SECOND = 1_000_000


def rows(*numbers: int, at: int) -> pa.Table:
    schema = pa.schema({"k": pa.string(), "n": pa.int32(), "ts": pa.timestamp("us", tz="UTC")})
    return pa.table({"k": ["a"] * len(numbers), "n": numbers, "ts": [at * SECOND] * len(numbers)}, schema=schema)


def told(staged: Staged) -> dict[str, OperatorMetrics]:
    record: Any = staged.record
    found = metrics_of([record["low"], record["metrics"]["operators"]], record["bounds"])
    return {name.split("#")[0].split("_")[0]: each for name, each in found.items()}


def test_operators_below_an_exchange_count_the_rows_of_all_tasks_and_micro_batches_once(tmp_path: Path) -> None:
    staged = Staged(parse_network(STREAM + COUNTS), tmp_path)
    staged.batch({"s": [rows(1, 2, 3, at=0), rows(4, 0, at=1)]}, 10 * SECOND)
    staged.batch({"s": [rows(5, 1, at=2)]}, 11 * SECOND)
    found = told(staged)
    assert (found["filter"].rows_in, found["filter"].rows_out) == (7, 4), "not once per bucket"
    assert found["filter"].queries == ("counts",)
    assert found["filter"].bound == 2 * SECOND
    assert found["pre"].rows_in == 4
    assert all(each.cost > 0 for each in found.values() if each.rows_in), (
        "though the clock of a micro-batch stands still"
    )


def test_they_stay_when_nothing_is_read_and_after_a_restart_and_leave_with_their_query(tmp_path: Path) -> None:
    staged = Staged(parse_network(STREAM + KEPT + COUNTS.replace("n > 1", "n > 2")), tmp_path)
    staged.batch({"s": [rows(1, 2, 3, at=0)]}, 10 * SECOND)
    before = {name: each.rows_in for name, each in told(staged).items()}
    staged.restart()
    staged.batch({}, 11 * SECOND, control=True)
    assert {name: each.rows_in for name, each in told(staged).items()} == before
    staged.change(parse_network(STREAM + KEPT))
    staged.batch({"s": [rows(7, at=1)]}, 12 * SECOND)
    assert {name.split("#")[0] for name in staged.record["low"]} == {"filter", "project"}
    assert told(staged)["filter"].rows_in == 4
