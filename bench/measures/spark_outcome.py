"""What a finished run on Spark shows: which micro-batch published each result, and how much state was written.

Rules:
- A result is certain from the micro-batch on that brings the row that completes it. How many micro-batches later its
  file is committed is what a system makes its readers wait: 0 is the same one.
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
from bench.queries.workload import Work
from bench.systems.engines import Task
from millrace.experiments.demo.sink_watcher import committed_batches, log_entries
from millrace.hosts.spark.commit_log.commit_log import CommitLog

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """Micro-batches of the run, those that results waited (median and most), and bytes of state a micro-batch."""

    batches: int
    waited: tuple[float, int] | None
    state_bytes: int


def outcome(task: Task, engine: str) -> Outcome:
    """What the last round of a system on Spark has left behind."""
    output, checkpoint = task.output(engine, task.rounds), task.checkpoint(engine, task.rounds)
    spark = checkpoint / "spark" if (checkpoint / "spark").is_dir() else checkpoint
    batches = committed_batches(spark)
    read = _read_by_us(checkpoint) if spark != checkpoint else _read_by_stock(spark, list(task.workload.folders))
    waits = waited(task.workload, published(output), read)
    told = (float(median(waits.tolist())), int(waits.max())) if len(waits) else None
    return Outcome(batches, told, size(spark / "state") // max(1, batches))


def waited(workload: Work, files: Mapping[str, int], read: Sequence[Mapping[str, int]]) -> Numbers:
    """For each result the micro-batches from the one that completes it to the one that publishes it.

    `files` has the micro-batch of each file of results, `read` the files of each stream that each one had read.
    """
    if not files:
        return np.zeros(0, np.int64)
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
    waits: Numbers = appeared - complete
    return waits


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
