"""A thousand keys at five times what is served, a tenth of the rows out of order, on the hosts where work is real.

Time is counted in rows: a turn reads one file, and each queue lets go of a fifth as many rows. On virtual time it is
the figure `overload`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.hosts.local import LocalRun
from millrace.hosts.report import Listeners, Report
from millrace.language import parse_network

KEYS, FILES, ROWS, SERVED = 1000, 12, 2000, 400
LOAD = ROWS // SERVED
POLICIES = ("inplace", "linecutting", "update_fifo", "append")
SCRIPT = """
CREATE STREAM s (k BIGINT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 3 HOURS UPDATE KEY (k)
  FROM parquet OPTIONS (path '{folder}', max_files_per_trigger '1');
""" + "".join(
    f"CREATE QUERY {policy} WITH (queue = '{policy}', budget = '{SERVED} rows') AS SELECT k, v, ts FROM s;"
    for policy in POLICIES
)


def written(folder: Path) -> pa.Table:
    """Updates of keys at random in files; `v` counts them. One in ten is as old as one up to 5,000 rows before it."""
    random = np.random.default_rng(11)
    values = np.arange(FILES * ROWS)
    late = (random.random(len(values)) < 0.1) * random.integers(1, 5000, len(values))
    # No two rows are of the same time.
    times = pa.array(np.maximum(values - late, 0) * 2_000_000 + values).cast(pa.timestamp("us", tz="UTC"))
    rows = pa.table({"k": random.integers(0, KEYS, len(values)), "v": values, "ts": times})
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(rows.slice(number * ROWS, ROWS), folder / f"{number:04d}.parquet")
    return rows


class Watched:
    """What each query was given, and how many rows had been read by then; the most rows that waited."""

    def __init__(self) -> None:
        self.given: dict[str, list[tuple[int, int, int]]] = {policy: [] for policy in POLICIES}
        """Key, value, and the rows that had been read."""
        self.most = dict.fromkeys(POLICIES, 0)
        self._new: list[tuple[str, pa.Table]] = []

    def results(self, query: str, rows: pa.Table) -> None:
        self._new.append((query, rows))

    def progress(self, report: Report) -> None:
        for query, rows in self._new:
            self.given[query] += [(row["k"], row["v"], report.received) for row in rows.to_pylist()]
        self._new.clear()
        for query, queue in report.queues.items():
            self.most[query] = max(self.most[query], queue.waiting)


def on_local(script: str, folder: Path, watched: Watched) -> None:
    listeners = Listeners(results=watched.results, progress=watched.progress)
    LocalRun(
        parse_network(script), ending="available", checkpoint=folder / "state", listeners=listeners, interval=0.0
    ).run()


def on_spark(script: str, folder: Path, watched: Watched) -> None:
    from millrace.hosts.spark.host import SparkRun

    listeners = Listeners(results=watched.results, progress=watched.progress)
    run = SparkRun(parse_network(script), ending="available", checkpoint=folder / "state", listeners=listeners)
    try:
        run.run()
    finally:
        run.close()


HOSTS: list[Any] = [on_local, pytest.param(on_spark, marks=[pytest.mark.spark, pytest.mark.slow])]


@pytest.mark.parametrize("run", HOSTS, ids=["local", "spark"])
def test_what_waits_and_how_long_stays_bounded_and_the_last_values_are_exact(
    run: Callable[[str, Path, Watched], None], tmp_path: Path
) -> None:
    rows, watched = written(tmp_path / "s"), Watched()
    run(SCRIPT.format(folder=tmp_path / "s"), tmp_path, watched)
    times = rows.column("ts").cast(pa.int64()).to_numpy()
    newest: dict[int, int] = {}
    for key, value in zip(rows.column("k").to_pylist(), rows.column("v").to_pylist(), strict=True):
        if key not in newest or times[value] > times[newest[key]]:
            newest[key] = value
    for policy in ("inplace", "linecutting", "update_fifo"):
        last: dict[int, int] = {}
        for key, value, _ in watched.given[policy]:
            assert key not in last or times[value] > times[last[key]], "a key never goes back"
            last[key] = value
        assert last == newest
        assert watched.most[policy] <= KEYS
    assert sorted(value for _, value, _ in watched.given["append"]) == list(range(FILES * ROWS)), "each row once"
    stale = {policy: p99(watched.given[policy], rows.column("k").to_numpy(), times) for policy in POLICIES}
    # A thousand keys by the rows served, and the file in which a row comes.
    assert stale["inplace"] <= KEYS * LOAD + ROWS
    assert stale["append"] > 2 * stale["inplace"]


def p99(given: list[tuple[int, int, int]], keys: Any, times: Any) -> float:
    """How many rows had come since the first one newer than what a key was given last; of one in a hundred, more."""
    own = {key: np.flatnonzero(keys == key) for key in range(KEYS)}
    waits, before = [], dict.fromkeys(range(KEYS), -1)
    for key, value, read in given:
        newer = own[key][times[own[key]] > before[key]]
        if read < FILES * ROWS:
            waits.append(read - int(newer[0]))
        before[key] = max(before[key], int(times[value]))
    return float(np.quantile(waits, 0.99))
