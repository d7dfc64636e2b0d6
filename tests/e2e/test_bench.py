"""The benchmarks' workloads at a small size: right answers, and what is read from the checkpoints they leave."""

from __future__ import annotations

import doctest
import os
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bench.measures import spark_outcome
from bench.measures.answers import WrongAnswers, answered, check
from bench.measures.memory import Peak
from bench.measures.spark_outcome import leaving
from bench.queries.chained import write_chained
from bench.queries.silent_source import live, silent_source
from bench.queries.workload import Work
from bench.systems.engines import PeerFailed, Task, duck, local, spark_rounds
from bench.systems.isolated_process import measured_alone
from bench.systems.stock_settings import COUNTS, JOINS, Variant
from bench.systems.stock_sweep import fastest
from bench.workloads import functions, spark_table
from bench.workloads.cases import CASES, OURS
from bench.workloads.growth import KINDS

ROWS = 64_000
BOUNDED = [name for name, case in CASES.items() if not case.live]


def task_of(work: Work, folder: Path) -> Task:
    return Task(work, folder / "runs", rounds=1, files_per_batch=1, warm=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDED)
def test_every_workload_of_the_table_has_true_answers_on_the_local_host(name: str, tmp_path: Path) -> None:
    task = task_of(CASES[name].make(tmp_path / "in", ROWS), tmp_path)
    local(task, "local host")
    assert check(task.workload, task.output("local host", 1), "local host") > 0


def test_functions_are_measured_by_what_they_give_here_and_in_duckdb() -> None:
    for system in ("millrace", "duckdb"):
        times = functions.measured(system, 20, 0)
        failed = {text: why for text, why in times.items() if isinstance(why, str) and why != "it has no such function"}
        assert failed == {}, system


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_the_growing_workloads_have_true_answers(kind: str, times: int, tmp_path: Path) -> None:
    task = task_of(KINDS[kind](tmp_path / "in", ROWS // 10, times).work, tmp_path)
    local(task, "local host")
    assert check(task.workload, task.output("local host", 1), "local host") > 0


@pytest.mark.long
@pytest.mark.spark
def test_a_count_behind_a_join_leaves_spark_in_the_micro_batch_that_completes_it(
    tmp_path: Path, spark_session: Any
) -> None:
    task = task_of(write_chained(tmp_path / "in", files=3, rows=400), tmp_path)
    measured = spark_rounds(task, OURS, spark_session)
    left = spark_outcome.outcome(task, OURS)
    assert check(task.workload, task.output(OURS, 1), OURS) > 0
    assert (left.waited, len(measured.batch_seconds)) == ((0.0, 0), 2)
    assert left.state_bytes > 0
    assert left.latency is not None and 0 < left.latency[0] <= left.latency[1]


@pytest.mark.long
@pytest.mark.spark
def test_all_windows_of_a_union_leave_spark_though_one_stream_has_stopped(tmp_path: Path, spark_session: Any) -> None:
    task = Task(silent_source(tmp_path / "in", seconds=6.0, busy=100.0), tmp_path / "runs", 1, files_per_batch=None)
    live(task, OURS, spark_session)
    answers = answered(task.workload, task.output(OURS, 1), OURS)
    assert answers.found == answers.true
    left = spark_outcome.outcome(task, OURS)
    assert left.waited is not None
    assert left.latency is not None and left.latency[0] > 0, "a window ends before its results are there"


def test_a_result_waits_from_the_micro_batch_that_completes_it(tmp_path: Path) -> None:
    task = task_of(write_chained(tmp_path / "in", files=3, rows=400), tmp_path)
    duck(task, "DuckDB")
    (file,) = map(str, task.output("DuckDB", 1).glob("*.parquet"))
    read = [{"a": files, "b": files} for files in (1, 2, 3)]
    # 4.5 seconds a file: windows that end after 2 and 6, 8 and 10, 12 seconds, and the streams a second more.
    left = leaving(task.workload, {file: 3}, read)
    assert sorted(set((left.published - left.complete).tolist())) == [1, 2, 3]
    left = leaving(task.workload, {file: 2}, read[-1:] * 3)
    assert set((left.published - left.complete).tolist()) == {2}


def test_a_result_that_is_not_true_is_refused_and_one_that_is_missing_counted(tmp_path: Path) -> None:
    task = task_of(write_chained(tmp_path / "in", files=3, rows=400), tmp_path)
    nothing = tmp_path / "nothing"
    assert answered(task.workload, nothing, "none").found == 0
    with pytest.raises(WrongAnswers, match="results are missing"):
        check(task.workload, nothing, "none")
    duck(task, "DuckDB")
    (file,) = task.output("DuckDB", 1).glob("*.parquet")
    (file.parent / "part-1.parquet").hardlink_to(file)
    with pytest.raises(WrongAnswers, match="results are not true"):
        check(task.workload, task.output("DuckDB", 1), "DuckDB")


# A process of its own is told what to do by names that it can import: here a system is a function of the library.


@pytest.mark.slow
def test_a_system_that_takes_too_long_is_ended_with_all_that_it_started() -> None:
    with pytest.raises(PeerFailed, match="did not end within 3 s"):
        measured_alone(subprocess.call, ["sleep", "77.25"], -1, limit=3.0)  # type: ignore[arg-type]
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # Others come and go all the while.
        with suppress(OSError):
            processes.append(path.read_bytes())
    assert b"sleep\x0077.25\x00" not in processes


@pytest.mark.slow
def test_a_system_that_dies_is_said_to_have() -> None:
    with pytest.raises(PeerFailed, match="died"):
        measured_alone(os.execv, "/bin/false", ["false"])  # type: ignore[arg-type]


def test_a_peak_counts_what_a_process_has_started() -> None:
    peak, apart = Peak(os.getpid(), itself=True), Peak(os.getpid(), itself=False)
    with subprocess.Popen(["sleep", "60"]) as child:
        peak.look()
        apart.look()
        child.kill()
    assert peak.bytes > apart.bytes > 0


def test_the_table_is_that_of_the_last_run_of_each_workload() -> None:
    line = {"workload": "sliding", "system": OURS, "run": "1"}
    other = {"workload": "chained", "system": OURS, "run": "1"}
    again = {**line, "run": "2", "failed": "died"}
    assert spark_table.newest([line, other, again]) == [other, again]
    assert not doctest.testmod(spark_table).failed
    assert not doctest.testmod(spark_outcome).failed


def test_stock_spark_is_measured_with_the_settings_that_were_fastest_in_the_trial() -> None:
    lines = [{"variant": each.data(), "seconds": 9 - place} for place, each in enumerate(JOINS)]
    assert fastest(lines, "HDFS-backed") == Variant("HDFS-backed", 4)
    assert fastest(lines, "RocksDB") == Variant("RocksDB", 4, changelog=False, join_format=4)
    stores = Counter((each.store, each.changelog, each.join_format) for each in (*COUNTS, *JOINS))
    assert {("RocksDB", True, 2), ("RocksDB", True, 3), ("RocksDB", True, 4), ("RocksDB", False, 4)} <= set(stores)


def test_figures_of_a_system_that_was_measured_twice_are_put_together() -> None:
    line = {"workload": "sliding", "system": OURS, "rows": 100, "seconds": [1.0], "latency_ms": [2.0, 4.0]}
    trial = {"workload": "sliding", "system": spark_table.TRIAL}
    (both,) = spark_table.merged([trial, line, {**line, "seconds": [3.0], "latency_ms": [4.0, 8.0]}])
    assert (spark_table.whole(both), both["latency_ms"]) == (50.0, [3.0, 6.0])
