"""Seconds per micro-batch of grouped Q1 on the Spark host with 2, 4, 8 and 16 buckets; the answers are the same.

More buckets than cores bring nothing but more tasks: what a micro-batch costs more than with two is their overhead.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from bench.measures import result_log
from bench.measures.answers import check
from bench.measures.comparison import Speed
from bench.queries.links import write_links
from bench.systems.engines import Task, spark_host
from bench.systems.isolated_process import measured_alone

BUCKETS = (2, 4, 8, 16)


def run(rows: int, rounds: int) -> None:
    """Measure each number of buckets, check the answers, print a line each and append the results; half of the rows."""
    around, entries = result_log.circumstances(), []
    least = 0.0
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as name:
        workload = write_links(Path(name) / "links", rows // 2)
        task = Task(workload, Path(name), rounds, files_per_batch=1, warm=2)
        for buckets in BUCKETS:
            engine = f"{buckets} buckets"
            measure = partial(spark_host, settings={"spark.default.parallelism": str(buckets)})
            found = measured_alone(measure, task, engine)
            check(workload, task.output(engine, rounds), engine)
            speed = Speed([workload.rows / seconds for seconds in found.measured.seconds], found.measured.batch_seconds)
            batch = median(speed.batches)
            least = least or batch
            print(
                f"{engine:<11} {speed.rate:>10,.0f} rows/s, {batch:.2f} s a micro-batch, {batch - least:+.2f} s beside "
                f"{BUCKETS[0]} buckets, {found.peak / 1e9:.1f} GB; all answers true",
                flush=True,
            )
            entries.append(
                {
                    "rows": workload.rows,
                    "buckets": buckets,
                    "rows_per_second": [round(each) for each in speed.rounds],
                    "batch_seconds": [round(each, 3) for each in speed.batches],
                    "peak_bytes": found.peak,
                }
            )
    print(f"appended to {result_log.append('buckets', around, entries)}", flush=True)
