"""A Spark source that reads a stream's files in name order and runs the low level while reading.

Rules:
- The producer moves files in whole, under names that sort after all earlier ones. What has been read is a prefix of
  the listing; a listing of which that no longer holds fails the run, for rows would be lost or read twice.
- An unchanged listing gives an unchanged offset: the clock is read only when files are added.
- A file is read the same way on a replay: with the clock of its offset and what was known before its batch.
"""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import PurePath
from typing import Any, Protocol

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from millrace.errors import RunError
from millrace.hosts.spark.commits import CommitLog
from millrace.hosts.spark.failures import carrying
from millrace.hosts.spark.rows import EXCHANGE

Offset = dict[str, Any]

START: Offset = {"files": 0, "last": "", "now": 0, "names": ""}


class LowLevel(Protocol):
    """What a stream does before the shuffle: list its files, and turn them into exchange rows."""

    def files(self) -> list[str]:
        """The paths that are there now, in name order, without names that begin with "." or "_"."""

    @property
    def in_sequence(self) -> bool:
        """Whether the files of a micro-batch must be read one after another, in one task."""

    def read(
        self, paths: Sequence[str], index: int, now: int, before: dict[str, Any], *, alone: bool
    ) -> Iterator[pa.RecordBatch]:
        """The exchange rows of files; `index` counts the stream's files, `before` is what the stages knew.

        `alone` says that they are all that the micro-batch has of the stream.
        """


@dataclass(frozen=True)
class FilePartition(InputPartition):
    """One file to read, or several in sequence, and all that their rows may depend on."""

    paths: tuple[str, ...]
    index: int
    now: int
    before: dict[str, Any]
    alone: bool


class FilesSource(DataSource):
    """The files of one stream as exchange rows.

    Options: `low_level` (see `encode`), `stream`, `commits` (a folder), `max_files` (a micro-batch; all if absent).
    """

    @classmethod
    def name(cls) -> str:
        return "millrace_files"

    def schema(self) -> str:
        return EXCHANGE

    def streamReader(self, schema: StructType) -> FilesReader:
        return FilesReader(self.options)


class FilesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets over a listing: how many files, the last one's name, and the clock when it was first seen."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.low_level = decode(options["low_level"])
        self.stream = options["stream"]
        self.commits = CommitLog(options["commits"])
        self.max_files = int(options["max_files"]) if "max_files" in options else None
        self.target: int | None = None
        self.seen: list[str] = []

    def initialOffset(self) -> Offset:
        return dict(START)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self.max_files) if self.max_files else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        with carrying():
            self.target = len(self.low_level.files())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        with carrying():
            names = self._names_after(start)
            end = len(names) if self.target is None else max(self.target, start["files"])
            if isinstance(limit, ReadMaxFiles):
                end = min(end, start["files"] + limit.max_files)
            if end <= start["files"]:
                return start
            now = max(time.time_ns() // 1000, start["now"])
            return {"files": end, "last": names[end - 1], "now": now, "names": _digest(names[:end])}

    def partitions(self, start: Offset, end: Offset) -> Sequence[FilePartition]:
        with carrying():
            paths = self.low_level.files()
            self._check([PurePath(path).name for path in paths], end)
            before = self.commits.source(self.stream, start["files"])
            first, last = start["files"], end["files"]
            paths = paths[:last]
            step = max(last - first, 1) if self.low_level.in_sequence else 1
            return [
                FilePartition(tuple(paths[index : index + step]), index, end["now"], before, step >= last - first)
                for index in range(first, last, step)
            ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilePartition)
        with carrying():
            yield from self.low_level.read(
                partition.paths, partition.index, partition.now, partition.before, alone=partition.alone
            )

    def _names_after(self, start: Offset) -> list[str]:
        names = [PurePath(path).name for path in self.low_level.files()]
        self._check(names, start)
        if self.target is not None and len(names) < self.target:
            raise self._gone(sorted(set(self.seen) - set(names)))
        self.seen = names
        return names

    def _check(self, names: list[str], offset: Offset) -> None:
        """Fail unless the files read so far are the first of the listing, and the same ones."""
        read = names[: offset["files"]]
        if len(read) == offset["files"] and _digest(read) == offset["names"]:
            return
        known = set(self.seen[: offset["files"]])
        below = [name for name in names if name <= offset["last"]]
        added = [name for name in below if name not in known] if known else []
        if added or len(below) > offset["files"]:
            raise self._out_of_order(added, offset)
        raise self._gone(sorted(known - set(below)))

    def _out_of_order(self, added: list[str], offset: Offset) -> RunError:
        what = f'file "{added[0]}"' if added else "a file"
        return RunError(
            f'{what} of stream "{self.stream}" appeared before "{offset["last"]}", which has been read',
            hint="Files are read in name order: give new files names that sort after all earlier ones.",
        )

    def _gone(self, names: list[str]) -> RunError:
        what = f'file "{names[0]}"' if names else "a file"
        return RunError(
            f'{what} of stream "{self.stream}" has been read and is gone',
            hint="Keep the files of a stream in place as long as its checkpoint is in use.",
        )


def encode(low_level: LowLevel) -> str:
    """The low level as text for the option of that name."""
    pickled: bytes = cloudpickle.dumps(low_level)  # type: ignore[no-untyped-call]
    return base64.b64encode(pickled).decode()


def decode(text: str) -> LowLevel:
    """The low level that `encode` was given."""
    low_level: LowLevel = pickle.loads(base64.b64decode(text))
    return low_level


def _digest(names: Sequence[str]) -> str:
    """A short text that differs for different lists of names; empty for none."""
    return blake2b("\n".join(names).encode(), digest_size=8).hexdigest() if names else ""
