"""The files with results that readers are to see, and the micro-batch of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from millrace.experiments.demo.sink_watcher import committed_files


def published(output: Path) -> dict[str, int]:
    """The micro-batch of each file with results: by its name, or by the log of Spark's file sink.

    Spark leaves files of micro-batches that were broken off; its log does not name them.
    """
    log = output / "_spark_metadata"
    if not log.is_dir():
        return {str(path): int(path.stem.split("-")[1]) for path in sorted(output.glob("part-*.parquet"))}
    found: dict[str, int] = {}
    for batch, entry in numbered(log):
        for path in committed_files(entry.read_text()):
            found.setdefault(path, batch)
    return found


def numbered(folder: Path) -> Iterator[tuple[int, Path]]:
    """The entries of one of Spark's logs, in order; a compacted one has a second name."""
    found = [path for path in folder.iterdir() if path.name[0].isdigit()] if folder.is_dir() else []
    yield from sorted((int(path.name.split(".")[0]), path) for path in found)
