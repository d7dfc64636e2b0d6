"""What a finished run on Spark shows: which micro-batch published each result and when, and how much state was written.

Rules:
- A result is certain from the micro-batch on that brings the row that completes it. How many micro-batches later its
  file is committed is what a system makes its readers wait: 0 is the same one.
- Its latency is the time from the start of the micro-batch that completes it, when Spark writes down which rows that
  has, to the commit of the one that publishes it: at full load, when rows always wait. In a live run it is the time
  from the end of its window, by the clock.
- How far each stream was read by each micro-batch is taken from the checkpoint, not guessed.
- State is what stands in the checkpoint's state folder at the end: in runs this short, nothing of it is removed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import duckdb
import numpy as np
import numpy.typing as npt

from bench.measures.answers import opened, published
from bench.queries.silent_source import SilentSource
from bench.queries.workload import Work
from bench.systems.engines import Task
from millrace.experiments.demo.sink_watcher import committed_batches, log_entries
from millrace.hosts.spark.commit_log.commit_log import CommitLog

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """Micro-batches of the run, those that results waited (median and most), and bytes of state a micro-batch.

    Latency is in milliseconds, of half of the results and of 99 in 100.
    """

    batches: int
    waited: tuple[float, int] | None
    latency: tuple[float, float] | None
    state_bytes: int


@dataclass(frozen=True)
class Leaving:
    """By result: the micro-batch that completes it, the one that publishes it, and what it needs of each stream."""

    complete: Numbers
    published: Numbers
    needs: Mapping[str, Numbers]


def outcome(task: Task, engine: str) -> Outcome:
    """What the last round of a system on Spark has left behind."""
    output, checkpoint = task.output(engine, task.rounds), task.checkpoint(engine, task.rounds)
    spark = checkpoint / "spark" if (checkpoint / "spark").is_dir() else checkpoint
    batches = committed_batches(spark)
    read = _read_by_us(checkpoint) if spark != checkpoint else _read_by_stock(spark, list(task.workload.folders))
    left = leaving(task.workload, published(output), read)
    waits = left.published - left.complete
    told = (float(median(waits.tolist())), int(waits.max())) if len(waits) else None
    return Outcome(batches, told, _latency(task.workload, left, spark), size(spark / "state") // max(1, batches))


def _latency(workload: Work, left: Leaving, spark: Path) -> tuple[float, float] | None:
    """Milliseconds, of half of the results and of 99 in 100."""
    since = workload.live_since() if isinstance(workload, SilentSource) else None
    if since is None:
        waits = _moments(spark / "commits")[left.published] - _moments(spark / "offsets")[left.complete]
    else:
        ends = next(iter(left.needs.values()))
        waits = (_moments(spark / "commits")[left.published] - ends)[ends > since]
    middle, most = np.percentile(waits, [50, 99]) / 1e3 if len(waits) else (None, None)
    return None if middle is None else (round(float(middle), 1), round(float(most), 1))


def _moments(log: Path) -> Numbers:
    """When the entry of each micro-batch was written, in microseconds; none may have been removed."""
    entries = log_entries(log)
    assert [number for number, _ in entries] == list(range(len(entries))), f"{log} has no entry of some micro-batch"
    return np.array([path.stat().st_mtime_ns // 1_000 for _, path in entries], np.int64)


def leaving(workload: Work, files: Mapping[str, int], read: Sequence[Mapping[str, int]]) -> Leaving:
    """Which micro-batch completes each result, and which publishes it.

    `files` has the micro-batch of each file of results, `read` the files of each stream that each one had read.
    """
    if not files:
        return Leaving(np.zeros(0, np.int64), np.zeros(0, np.int64), {})
    with opened(workload) as database:
        needs = ", ".join(f"epoch_us({need}) AS {stream}" for stream, need in workload.needs.items())
        listed = ", ".join(f"'{path}'" for path in files)
        query = f"SELECT filename, {needs} FROM read_parquet([{listed}], filename = true)"
        found = database.execute(query).fetchnumpy()
        complete = np.zeros(len(found["filename"]), np.int64)
        for stream in workload.needs:
            bounds = _bounds(_greatest(database, workload.folders[stream]), [each.get(stream, 0) for each in read])
            complete = np.maximum(complete, np.searchsorted(bounds, found[stream], "left"))
    appeared = np.array([files[name] for name in found["filename"].tolist()], np.int64)
    return Leaving(complete, appeared, {stream: found[stream] for stream in workload.needs})


def size(folder: Path) -> int:
    """Bytes of all files in a folder, without their checksums."""
    total = 0
    for path in folder.rglob("*"):
        # Spark drops files while they are counted.
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() and path.suffix != ".crc" else 0
    return total


def _greatest(database: duckdb.DuckDBPyConnection, folder: Path) -> Numbers:
    """The greatest time of the first file of a stream, of the first two, and so on."""
    query = f"""SELECT max(max(epoch_us(ts))) OVER (ORDER BY filename)
        FROM read_parquet('{folder}/*.parquet', filename = true) GROUP BY filename ORDER BY filename"""
    return np.array([greatest for (greatest,) in database.execute(query).fetchall()], np.int64)


def _bounds(greatest: Numbers, read: Sequence[int]) -> Numbers:
    """How far each micro-batch brought a stream, given the files that had been read by then.

    >>> _bounds(np.array([10, 20, 30]), [0, 2, 2, 3]).tolist()[1:]
    [20, 20, 30]
    """
    nothing = np.iinfo(np.int64).min
    return np.array([greatest[files - 1] if files else nothing for files in read], np.int64)


def _read_by_us(checkpoint: Path) -> list[dict[str, int]]:
    """By micro-batch, how many files of each stream have been read, as the commit records say."""
    records = dict(CommitLog(checkpoint / "commits").records())
    sources = [records.get(batch, {}).get("sources", {}) for batch in range(max(records, default=-1) + 1)]
    return [{name: int(known["files"]) for name, known in each.items()} for each in sources]


def _read_by_stock(checkpoint: Path, streams: Sequence[str]) -> list[dict[str, int]]:
    """The same of stock Spark, whose offsets count entries in a log of each source."""
    logs = [_entries(checkpoint / "sources" / str(number)) for number in range(len(streams))]
    found = []
    for _, path in log_entries(checkpoint / "offsets"):
        offsets = [json.loads(line) if line.startswith("{") else None for line in path.read_text().splitlines()[2:]]
        ends = [-1 if offset is None else int(offset["logOffset"]) for offset in offsets]
        found.append(
            {
                name: sum(entry <= end for entry in entries)
                for name, entries, end in zip(streams, logs, ends, strict=True)
            }
        )
    return found


def _entries(log: Path) -> list[int]:
    """The entry in which each file of a source was noted."""
    noted: dict[str, int] = {}
    for _, path in log_entries(log):
        for line in path.read_text().splitlines()[1:]:
            entry = json.loads(line)
            noted[entry["path"]] = int(entry["batchId"])
    return list(noted.values())
