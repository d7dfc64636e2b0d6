"""A Spark source that reads a stream's files in name order and runs the low level while reading.

Rules:
- The producer moves files in whole, under names that sort after all earlier ones. What has been read is a prefix of
  the listing; a listing of which that no longer holds fails the run, for rows would be lost or read twice.
- An unchanged listing gives an unchanged offset: the clock is put down only when files are added.
- A file is read the same way on a replay: with the clock of its offset and what was known before its batch.
- A row of external time came when its file did, not when it was read: that may be a whole trigger later, by which its
  stream would seem to lag when it is spoken for.
"""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, pairwise
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

START: Offset = {"files": 0, "last": "", "now": 0, "came": 0, "unread": 0, "names": ""}


class LowLevel(Protocol):
    """What a stream does before the shuffle: list its files, and turn them into exchange rows."""

    def files(self) -> list[str]:
        """The paths that are there now, in name order, without names that begin with "." or "_"."""

    def tasks(self, paths: Sequence[str]) -> list[int]:
        """How many of a micro-batch's files each task reads, one after another."""

    def arrived(self, path: str) -> int | None:
        """The clock at which a file was put in its place, or later; None if nobody knows."""

    def read(
        self, paths: Sequence[str], index: int, look: Look, before: dict[str, Any], *, alone: bool
    ) -> Iterator[pa.RecordBatch]:
        """The exchange rows of files; `index` counts the stream's files, `before` is what the stages knew.

        `alone` says that they are all that the micro-batch has of the stream.
        """


@dataclass(frozen=True)
class Look:
    """When a micro-batch looked for a stream's files, when the newest it took had come, and whether it took all."""

    now: int
    came: int
    all: bool


@dataclass(frozen=True)
class FilePartition(InputPartition):
    """One file to read, or several in sequence, and all that their rows may depend on."""

    paths: tuple[str, ...]
    index: int
    look: Look
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
    """Offsets over a listing: how many files, the last one's name, the clock, when it came, how many are left."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.low_level = decode(options["low_level"])
        self.stream = options["stream"]
        self.commits = CommitLog(options["commits"])
        self.max_files = int(options["max_files"]) if "max_files" in options else None
        self.target: int | None = None
        self.seen: list[str] = []
        self.looked: int | None = None

    def initialOffset(self) -> Offset:
        return dict(START)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self.max_files) if self.max_files else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        with carrying():
            self.target = len(self.low_level.files())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        with carrying():
            paths = self._paths_after(start)
            now = max(time.time_ns() // 1000, start["now"])
            looked, self.looked = self.looked, now
            end = len(paths) if self.target is None else max(self.target, start["files"])
            if isinstance(limit, ReadMaxFiles):
                end = min(end, start["files"] + limit.max_files)
            if end <= start["files"]:
                return start
            came = self._came(paths[end - 1], looked, now)
            names = self.seen[:end]
            unread = len(paths) - end
            return {
                "files": end,
                "last": names[-1],
                "now": now,
                "came": came,
                "unread": unread,
                "names": _digest(names),
            }

    def partitions(self, start: Offset, end: Offset) -> Sequence[FilePartition]:
        with carrying():
            paths = self.low_level.files()
            self._check([PurePath(path).name for path in paths], end)
            before = self.commits.source(self.stream, start["files"])
            counts = self.low_level.tasks(paths[start["files"] : end["files"]])
            places = pairwise(accumulate(counts, initial=start["files"]))
            now, alone = int(end["now"]), len(counts) == 1
            look = Look(now, end.get("came", now), end.get("unread") == 0)
            return [FilePartition(tuple(paths[at:to]), at, look, before, alone) for at, to in places]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilePartition)
        with carrying():
            yield from self.low_level.read(
                partition.paths, partition.index, partition.look, partition.before, alone=partition.alone
            )

    def _came(self, path: str, looked: int | None, now: int) -> int:
        """The clock at which a file came: since the last look, or nobody knows when."""
        arrived = self.low_level.arrived(path)
        return now if arrived is None or looked is None else min(max(arrived, looked), now)

    def _paths_after(self, start: Offset) -> list[str]:
        paths = self.low_level.files()
        names = [PurePath(path).name for path in paths]
        self._check(names, start)
        if self.target is not None and len(names) < self.target:
            raise self._gone(sorted(set(self.seen) - set(names)))
        self.seen = names
        return paths

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
