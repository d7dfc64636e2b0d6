"""Grouped Q1 on the Spark host alone: how many files a micro-batch and how many buckets serve it best."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from bench import record
from bench.answers import check
from bench.engines import Measured, Task, spark_host
from bench.links import write_links

FILES = (2, 4, None)
BUCKETS = (2, 4)


def run(rows: int, rounds: int) -> None:
    """Measure every pair of settings, print a line each and append the results."""
    around, told = record.circumstances(), []
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as name:
        workload = write_links(Path(name) / "links", rows)
        task = Task(workload, Path(name), rounds)
        for buckets in BUCKETS:
            for files in FILES:
                engine = f"{buckets} buckets, {files or 'all'} files"
                settings = {"spark.default.parallelism": str(buckets)}
                measured = _in_a_process(replace(task, files_per_batch=files), engine, settings)
                check(workload, task.output(engine, rounds), engine)
                speeds = [round(workload.rows / seconds) for seconds in measured.seconds]
                print(f"{engine:<22} {median(speeds):>10,.0f} rows/s", flush=True)
                shared = {"rows": workload.rows, "files_per_batch": files, "buckets": buckets}
                told.append({**shared, "engine": "Spark host", "rows_per_second": speeds})
    print(f"appended to {record.append('spark_settings', around, told)}")


def _in_a_process(task: Task, engine: str, settings: Mapping[str, str]) -> Measured:
    """One pair of settings in a Java of its own: in a shared one, the later pairs would find it warmer."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(spark_host, task, engine, settings).result()
