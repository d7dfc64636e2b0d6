"""Seconds per micro-batch when ten times as much state is held and as many rows come as before, on both hosts.

A first batch fills the state; then batches of one size come, and what each of them touches is the same. The aggregate
counts by key over a day that no batch ends; the join keeps the rows of a band. Aim: at most 1.3 times the seconds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

from bench.measures import result_log
from bench.measures.answers import check
from bench.queries.links import ORIGIN
from bench.queries.pairs import APART, write_pairs
from bench.queries.workload import Work, Workload, write_file
from bench.systems.engines import Measured, Task, spark_host
from bench.systems.isolated_process import measured_alone
from millrace.hosts.local.host import LocalRun
from millrace.hosts.report import Listeners, Report
from millrace.hosts.run_options import RunOptions

TIMES = 10
BATCHES = 12
"""Those that are measured."""
AIM = 1.3
_DAY = 86_400
_SECOND = 1_000_000


@dataclass(frozen=True)
class Growing:
    """A workload whose first file of each stream fills the state; `closes` if its last one ends the window."""

    work: Work
    first: int
    """Rows of the first files together."""
    size: int
    """Rows of a batch."""
    closes: bool


def run(rows: int, rounds: int) -> None:
    """Measure both hosts, with little state and with ten times as much; print a line each and append the results."""
    around, entries = result_log.circumstances(), []
    for what, make in KINDS.items():
        with tempfile.TemporaryDirectory(prefix="millrace-bench-") as name:
            folder = Path(name)
            sizes = {times: make(folder / f"{times}-times", rows, times) for times in (1, TIMES)}
            for engine, measure in (("local host", _local), ("Spark host", _spark)):
                seconds = {times: _seconds(measure, grown, folder, engine, rounds) for times, grown in sizes.items()}
                ratio = median(seconds[TIMES]) / median(seconds[1])
                few, many = (f"{median(each):.3f}" for each in seconds.values())
                print(f"{what}, {engine}: {few} s, with {TIMES} x the state {many} s: x {ratio:.2f} (aim: {AIM})")
                entries += [
                    {
                        "what": what,
                        "engine": engine,
                        "times": times,
                        "state_rows": sizes[times].first,
                        "batch_rows": sizes[times].size,
                        "batch_seconds": [round(each, 4) for each in found],
                    }
                    for times, found in seconds.items()
                ]
    print(f"appended to {result_log.append('growth', around, entries)}", flush=True)


def _aggregate(folder: Path, rows: int, times: int) -> Growing:
    """So many groups in the first file; then batches of rows of any of them; then a row of the next day."""
    groups, size = rows // 32 * times, rows // 128
    random = np.random.default_rng(7)
    keys = [random.permutation(groups), *(random.integers(0, groups, size) for _ in range(BATCHES)), np.zeros(1, int)]
    folder.mkdir(parents=True)
    for number, mine in enumerate(keys):
        seconds = _DAY if number > BATCHES else number
        stamps = pa.array(np.full(len(mine), ORIGIN + seconds * _SECOND)).cast(pa.timestamp("us", tz="UTC"))
        write_file(folder, number, pa.table({"key": mine, "ts": stamps}))
    columns = "key BIGINT, ts TIMESTAMP"
    total = sum(map(len, keys))
    return Growing(Workload({"s": folder}, columns, "ts", ("key",), total, _DAY, _DAY), groups, size, closes=True)


def _join(folder: Path, rows: int, times: int) -> Growing:
    """As many rows in the first files as lie in the band, and as many partners per row, however wide the band."""
    band, size = 2 * times, rows // 256
    first = band * _SECOND // APART
    return Growing(write_pairs(folder, [first, *[size] * BATCHES], band), 2 * first, 2 * size, closes=False)


KINDS: Mapping[str, Callable[[Path, int, int], Growing]] = {
    "a count of a day": _aggregate,
    "a join with a wide band": _join,
}


def _spark(task: Task, engine: str, grown: Growing) -> Measured:
    """The Spark host, from commit to commit; the last one of a window that closes is not like the others."""
    found = spark_host(task, engine)
    each = task.batches - 1
    kept = [
        seconds for number, seconds in enumerate(found.batch_seconds) if not grown.closes or number % each < each - 1
    ]
    return Measured(found.seconds, kept)


def _local(task: Task, engine: str, grown: Growing) -> Measured:
    """The local host with a checkpoint after each batch."""
    seconds: list[float] = []
    for number in range(task.rounds + 1):
        steps = _Steps()
        LocalRun(
            task.network(engine, number),
            RunOptions("local", "available", checkpoint=task.checkpoint(engine, number), commit_interval=0),
            listeners=Listeners(progress=steps.look),
        ).run()
        if number:
            seconds += steps.between(grown.first, grown.first + BATCHES * grown.size)
    return Measured([], seconds)


@dataclass
class _Steps:
    """When each number of rows had been received and all of it been saved."""

    moments: dict[int, float] = field(default_factory=dict)

    def look(self, report: Report) -> None:
        """Called after each checkpoint; several in a row without new rows are one."""
        self.moments.setdefault(report.received, time.perf_counter())

    def between(self, first: int, last: int) -> list[float]:
        """Seconds of the steps from the one number to the other."""
        moments = [moment for received, moment in self.moments.items() if first <= received <= last]
        return [after - before for before, after in pairwise(moments)]


def _seconds(measure: Callable[..., Measured], grown: Growing, folder: Path, engine: str, rounds: int) -> list[float]:
    """Seconds of each measured micro-batch; all answers are checked."""
    task = Task(grown.work, folder / f"{engine}-{grown.first}", rounds, files_per_batch=1, warm=2)
    found = measured_alone(partial(measure, grown=grown), task, engine).measured
    check(grown.work, task.output(engine, rounds), engine)
    return found.batch_seconds
