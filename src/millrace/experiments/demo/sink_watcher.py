"""When results of stock Spark come out: the log of its file sink is read ten times per second."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

POLL = 0.1
"""Seconds between two looks at the log; Millrace's own host looks as often."""

OnRows = Callable[[pa.Table], None]


class FileSinkWatcher:
    """Passes on the rows of all files that the log of stock Spark's file sink names."""

    def __init__(self, output: Path, on_rows: OnRows) -> None:
        self._log = output / "_spark_metadata"
        self._on_rows = on_rows
        self._seen_batches: set[str] = set()
        self._seen_files: set[str] = set()
        self._stop = Event()
        self._thread = Thread(target=self._watch, name="file sink watcher", daemon=True)

    def begin(self) -> None:
        """Start the thread that looks."""
        self._thread.start()

    def stop(self) -> None:
        """Look a last time, and end the thread."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(POLL):
            self.look()
        self.look()

    def look(self) -> None:
        """Pass on the rows that have been committed since the last look."""
        for path in self._new_files():
            rows = pq.read_table(path, partitioning=None)
            if rows.num_rows:
                self._on_rows(rows)

    def _new_files(self) -> Iterator[Path]:
        for _, entry in log_entries(self._log):
            if entry.name not in self._seen_batches:
                self._seen_batches.add(entry.name)
                for path in committed_files(entry.read_text()):
                    if path not in self._seen_files:
                        self._seen_files.add(path)
                        yield Path(path)


def log_entries(folder: Path) -> list[tuple[int, Path]]:
    """The entries of one of Spark's logs by micro-batch, in order; a compacted one has a second name."""
    found = [path for path in folder.iterdir() if path.name[0].isdigit()] if folder.is_dir() else []
    return sorted((int(path.name.split(".")[0]), path) for path in found)


def committed_files(text: str) -> list[str]:
    """The files of one log entry: a line with its version, then one object per file."""
    found = (json.loads(line) for line in text.splitlines()[1:] if line)
    return [unquote(urlparse(each["path"]).path) for each in found if each["action"] == "add"]


def committed_batches(checkpoint: Path) -> int:
    """How many micro-batches a Spark query has committed."""
    return len(log_entries(checkpoint / "commits"))


def wait_until(condition: Callable[[], bool], patience: float) -> bool:
    """True if a condition comes true within so many seconds."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL)
    return True
