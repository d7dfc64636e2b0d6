"""The files that Millrace wrote itself, or rows that it generates, as part of the network's source.

Rules:
- Files have names that sort after all earlier ones. What has been read is a prefix of the listing; if that no longer
  holds the run fails, for rows would be lost or read twice. Files of a user are followed: see followed_files.py.
- Files may have been removed when no replay can read them (see feed_files.py). Offsets still
  count them; a stream that is read from its beginning starts with the first file that is there.
- An unchanged listing gives an unchanged offset: the clock is part of the offset only when files are added.
- A replay reads a file the same way: with the clock of its offset and the progress before its batch.
- A row of external time arrived when its file did, not when it was read, which may be a whole trigger later. The bound
  of an ETS counts from the newest of a micro-batch's files, the staleness of answers from the first, so that they
  never seem fresher than they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, islice, pairwise, takewhile
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from millrace.connectors.files.input_files import Span
from millrace.errors import RunError
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.source.feed_files import file_name

Offset = dict[str, Any]

START: Offset = {"files": 0, "last": "", "now": 0, "first": 0, "came": 0, "unread": 0, "removed": 0, "names": ""}


@dataclass(frozen=True)
class Listing:
    """The files of a stream that are there, in name order, and how many before them have been removed.

    >>> listing = Listing(["/in/00000002.parquet", "/in/00000003.parquet"], removed=2)
    >>> listing.count, listing.paths_of(0, 3), listing.names_of(1, 3)
    (4, ['/in/00000002.parquet'], ['00000001.parquet', '00000002.parquet'])
    """

    paths: list[str]
    removed: int = 0

    @property
    def count(self) -> int:
        """How many files there are and have been."""
        return self.removed + len(self.paths)

    def paths_of(self, start: int, end: int) -> list[str]:
        """The files from one number to another, of those that are there."""
        return self.paths[max(start - self.removed, 0) : max(end - self.removed, 0)]

    def names_of(self, start: int, end: int) -> list[str]:
        """The names of the files from one number to another, removed ones included."""
        removed = [file_name(number) for number in range(start, min(self.removed, end))]
        return removed + [path.rpartition("/")[2] for path in self.paths_of(start, end)]


class LowLevel(Protocol):
    """What a stream does before the shuffle: list its files, and turn them into exchange rows."""

    def files(self) -> Listing:
        """What is there now, without names that begin with "." or "_"."""

    def tasks(self, paths: Sequence[str], sizes: Sequence[int] | None = None) -> list[int]:
        """How many of a micro-batch's files each task reads, one after another; of so many bytes, if not of all."""

    def arrived(self, path: str) -> int | None:
        """The clock at which a file was put in its place, or later; None if it is not known."""

    def size(self, path: str) -> int:
        """How many bytes a file has."""

    def read(
        self,
        paths: Sequence[str],
        index: int,
        scan: FileScan,
        before: dict[str, Any],
        *,
        alone: bool,
        spans: Sequence[Span] = (),
    ) -> Iterator[pa.RecordBatch]:
        """The exchange rows of files; `index` counts the stream's files, `before` is what the stages knew.

        `alone` says that they are all that the micro-batch has of the stream, `spans` which bytes of each are read.
        """


@dataclass(frozen=True)
class FileScan:
    """A scan of a stream's files by a micro-batch: its clock, when the first and the newest file that it took had come,
    and if it took all."""

    now: int
    first: int
    came: int
    all: bool


@dataclass(frozen=True)
class FileLimit:
    """How much of a stream a micro-batch takes at most; one file in any case."""

    files: int | None = None
    bytes: int = 512 << 20

    @staticmethod
    def of(options: Mapping[str, str]) -> FileLimit:
        """What the options of a stream's connector say."""
        files = options.get("max_files_per_trigger")
        return FileLimit(int(files) if files else None, int(options.get("max_bytes_per_trigger", FileLimit.bytes)))

    def allowed(self, low_level: LowLevel, paths: Sequence[str]) -> int:
        """How many of these files fit; those after the first that does not are not opened."""
        return self.fitting(map(low_level.size, paths))

    def fitting(self, sizes: Iterable[int]) -> int:
        """How many of files of these sizes fit."""
        few = iter(sizes) if self.files is None else islice(sizes, self.files)
        first = next(few, None)
        if first is None:
            return 0
        return 1 + sum(
            1 for _ in takewhile(lambda size: size <= self.bytes, islice(accumulate(few, initial=first), 1, None))
        )


@dataclass(frozen=True)
class FilePartition(InputPartition):
    """One file to read, or several in sequence, and all that their rows may depend on."""

    stream: str
    paths: tuple[str, ...]
    index: int
    scan: FileScan
    before: dict[str, Any]
    alone: bool
    spans: tuple[Span, ...] = ()


class StreamFiles:
    """Offsets over a listing: how many files, the last one's name, the clock, when the first and the last file came of
    those that a micro-batch takes, how many are left; how many had been removed, and a digest of the others' names."""

    def __init__(self, low_level: LowLevel, stream: str, commits: CommitLog, limit: FileLimit | None = None) -> None:
        self.low_level = low_level
        self.stream = stream
        self.commits = commits
        self.limit = limit or FileLimit()
        self.target: int | None = None
        self.seen = Listing([])
        self.looked: int | None = None
        self.began: int | None = None
        """The clock of the last look, and that of the first."""

    def prepare(self) -> None:
        """Take the files that are there now as all that there will be."""
        self.target = self.low_level.files().count

    def next_offset(self, start: Offset, clock: int) -> Offset:
        """Where a micro-batch that goes on from `start` ends; `start` itself if there is nothing new.

        `clock` is a time before this look: files that come after it may be seen or not.
        """
        listing = self._listed_after(start)
        now = max(clock, start["now"])
        looked, self.looked = self.looked, now
        self.began = now if self.began is None else self.began
        first = self._first(listing, start, listing.removed)
        paths = listing.paths_of(first, listing.count if self.target is None else self.target)
        taken = self.limit.allowed(self.low_level, paths)
        if not taken:
            return start
        end = first + taken
        names = listing.names_of(listing.removed, end)
        seen = max(now, time.time_ns() // 1000)
        came = self._came(paths[taken - 1], looked, seen)
        return {
            "files": end,
            "last": names[-1],
            "now": now,
            "first": min(came, now, self._came(paths[0], self.began, seen)),
            "came": came,
            "unread": listing.count - end,
            "removed": listing.removed,
            "names": names_digest(names),
        }

    def partitions(self, start: Offset, end: Offset) -> list[FilePartition]:
        """The files between two offsets, a task's each."""
        if start == end:
            return []
        listing = self.low_level.files()
        self._check(listing, end)
        before = self.commits.source(self.stream, start["files"])
        first = self._first(listing, start, end.get("removed", 0))
        counts = self.low_level.tasks(listing.paths_of(first, end["files"]))
        places = pairwise(accumulate(counts, initial=first))
        now, alone = int(end["now"]), len(counts) == 1
        scan = FileScan(now, end.get("first", now), end.get("came", now), end.get("unread") == 0)
        return [
            FilePartition(self.stream, tuple(listing.paths_of(at, to)), at, scan, before, alone) for at, to in places
        ]

    def _first(self, listing: Listing, start: Offset, removed: int) -> int:
        """The number of the first file to read, when so many had been removed; a replay begins with the same one."""
        first: int = start["files"] or removed
        if first < listing.removed:
            raise self._gone([file_name(first)])
        return first

    def _came(self, path: str, looked: int | None, seen: int) -> int:
        """The clock at which a file came: not before the last scan, nor after it was seen."""
        arrived = self.low_level.arrived(path)
        return seen if arrived is None or looked is None else min(max(arrived, looked), seen)

    def _listed_after(self, start: Offset) -> Listing:
        listing = self.low_level.files()
        self._check(listing, start)
        if self.target is not None and listing.count < self.target:
            raise self._gone(sorted(set(self.seen.names_of(0, self.target)) - set(listing.names_of(0, self.target))))
        self.seen = listing
        return listing

    def _check(self, listing: Listing, offset: Offset) -> None:
        """Fail unless the files read so far are the first of the listing, and the same ones."""
        count = offset["files"]
        if (
            count <= listing.count
            and names_digest(listing.names_of(offset.get("removed", 0), count)) == offset["names"]
        ):
            return
        known = set(self.seen.names_of(listing.removed, count))
        below = [name for name in listing.names_of(listing.removed, listing.count) if name <= offset["last"]]
        added = [name for name in below if name not in known] if known else []
        if added or listing.removed + len(below) > count:
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
            f'{what} of stream "{self.stream}" was read, and no longer exists',
            hint="Keep the files of a stream in place as long as its checkpoint is in use.",
        )


def names_digest(names: Sequence[str]) -> str:
    """A short text that differs for different lists of names; empty for none."""
    return blake2b("\n".join(names).encode(), digest_size=8).hexdigest() if names else ""
