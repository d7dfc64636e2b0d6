"""The files of a user as part of the network's source: pieces of them, as they come and grow.

Rules:
- What a micro-batch reads is a run of pieces (see connectors/files/pieces). They are numbered, and put down in the log
  of what was read before Spark is told of them: a replay reads the same bytes, whatever has come since.
- An unchanged folder gives an unchanged offset.
- Files of a micro-batch that was planned and not committed may be mended: its replay reads, and puts down, what they
  are then.
- A run that processes what is there takes the files as they are at its beginning, and waits for those that are being
  written to rest. A run to the end also takes what these files gain before it ends.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path

from millrace.connectors.files.file_stamp import check_stamp, stamp
from millrace.connectors.files.input_files import base_of
from millrace.connectors.files.pieces.file_piece import FilePiece, ReadPiece
from millrace.connectors.files.pieces.piece_end import REST
from millrace.connectors.files.pieces.piece_finder import PieceFinder
from millrace.errors import RunError
from millrace.hosts.checkpoint.digests import damaged_file
from millrace.hosts.checkpoint.durable_files import sync_all
from millrace.hosts.checkpoint.read_log import ReadLog
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.source.stream_files import (
    FileLimit,
    FilePartition,
    FileScan,
    LowLevel,
    Offset,
    StreamFiles,
    names_digest,
)
from millrace.plan.nodes.endpoints import Stream

_LOOK = 0.1
"""Seconds between two looks at files that do not rest."""


class FollowedFiles(StreamFiles):
    """Offsets over the pieces of a stream's files: how many have been planned, and a digest of which those are."""

    def __init__(
        self,
        low_level: LowLevel,
        stream: Stream,
        commits: CommitLog,
        limit: FileLimit | None = None,
        *,
        ends: bool = False,
    ) -> None:
        super().__init__(low_level, stream.name, commits, limit)
        self._declared = stream
        self._ends = ends
        self._log = ReadLog(commits.folder.parent, stream.name)
        self._finder: PieceFinder | None = None
        self._planned = 0
        """How many pieces the finder takes as read."""
        self._listed: frozenset[str] | None = None
        """The files of a run that ends, and up to where it reads each."""
        self._target: Mapping[str, int] | None = None

    @property
    def _base(self) -> str:
        base = base_of(self._declared.connector)
        return base if base.startswith("/") else f"{Path.cwd()}/{base}"

    @cached_property
    def _pieces(self) -> dict[int, ReadPiece]:
        """All pieces that were ever planned, by number."""
        return self._log.load()

    def prepare(self) -> None:
        """Take the files that are there now as all that there will be."""
        self._listed = frozenset(self._paths())

    def next_offset(self, start: Offset, clock: int) -> Offset:
        """Where a micro-batch that goes on from `start` ends; `start` itself if there is nothing new."""
        pieces = self._found(start["files"])
        now = max(clock, start["now"])
        looked, self.looked = self.looked, now
        self.began = now if self.began is None else self.began
        taken = self.limit.fitting(each.size for each in pieces)
        if not taken:
            return start
        self._plan(start["files"], pieces[:taken])
        seen = max(now, time.time_ns() // 1000)
        came = self._came(pieces[taken - 1].path, looked, seen)
        return {
            "files": start["files"] + taken,
            "last": pieces[taken - 1].path.rpartition("/")[2],
            "now": now,
            "first": min(came, now, self._came(pieces[0].path, self.began, seen)),
            "came": came,
            "unread": len(pieces) - taken,
            "removed": 0,
            "names": self._digest(start, pieces[:taken]),
        }

    def partitions(self, start: Offset, end: Offset) -> list[FilePartition]:
        """The pieces between two offsets, a task's each."""
        if start == end:
            return []
        first, last = start["files"], end["files"]
        read = self._known(last)[first:]
        if self._digest(start, [each.piece for each in read]) != end["names"]:
            raise damaged_file(self._log.path)
        pieces = self._mended(first, read)
        before = self.commits.source(self.stream, first)
        counts = self.low_level.tasks([each.path for each in pieces], [each.size for each in pieces])
        now, alone = int(end["now"]), len(counts) == 1
        scan = FileScan(now, end["first"], end["came"], end["unread"] == 0)
        return [
            FilePartition(
                self.stream,
                tuple(each.path for each in pieces[at:to]),
                first + at,
                scan,
                before,
                alone,
                tuple(each.span for each in pieces[at:to]),
            )
            for at, to in pairwise(accumulate(counts, initial=0))
        ]

    def _found(self, planned: int) -> list[FilePiece]:
        """What there is to read after so many pieces, as far as the run takes it."""
        finder = self._finder_after(planned)
        pieces, listed = finder.look(), self._listed
        if listed is None:
            return pieces
        if self._ends:
            return [each for each in pieces if each.path in listed]
        if self._target is None:
            pieces = self._rested(finder, pieces)
            self._target = {each.path: each.stop for each in pieces if each.path in listed}
        target = self._target
        wanted = [replace(each, stop=min(each.stop, target[each.path])) for each in pieces if each.path in target]
        return [each for each in wanted if each.size > 0 or each.start == 0]

    def _rested(self, finder: PieceFinder, pieces: list[FilePiece]) -> list[FilePiece]:
        """The pieces when all files rest, or do not after the time that one needs for it."""
        until = time.monotonic() + 2 * REST / 1e9
        while finder.waiting and time.monotonic() < until:
            time.sleep(_LOOK)
            pieces = finder.look()
        return pieces

    def _finder_after(self, planned: int) -> PieceFinder:
        """What finds pieces after so many."""
        if self._finder is None or self._planned != planned:
            read = self._known(planned)
            bounded = self._listed is not None
            self._finder = PieceFinder(self._declared, self._paths, read, ends=self._ends, bounded=bounded)
            self._planned = planned
        return self._finder

    def _paths(self) -> list[str]:
        return self.low_level.files().paths

    def _known(self, count: int) -> list[ReadPiece]:
        """So many pieces, as the log has them."""
        if any(number not in self._pieces for number in range(count)):
            raise damaged_file(self._log.path)
        return [self._pieces[number].below(self._base) for number in range(count)]

    def _plan(self, first: int, pieces: Sequence[FilePiece]) -> None:
        """Put pieces down, safely, before Spark hears of them."""
        read = {number: ReadPiece(each, stamp(each.path, each.stop)) for number, each in enumerate(pieces, first)}
        self._put_down(read)
        assert self._finder is not None
        for each in read.values():
            self._finder.took(each)
        self._planned = first + len(pieces)

    def _put_down(self, read: Mapping[int, ReadPiece]) -> None:
        kept = {number: each.within(self._base) for number, each in read.items()}
        self._pieces.update(kept)
        self._log.add(kept)
        sync_all([self._log.path])

    def _mended(self, first: int, read: Sequence[ReadPiece]) -> list[FilePiece]:
        """The pieces of a micro-batch, as they are now if it is not committed and they have changed."""
        sources = (self.commits.newest() or {}).get("sources", {})
        committed = sources.get(self.stream, {}).get("files", 0)
        changed: dict[int, ReadPiece] = {}
        for number, each in enumerate(read, first):
            if number >= committed:
                try:
                    check_stamp(each.piece.path, each.stamp, self.stream)
                except RunError:
                    changed[number] = self._renewed(each.piece)
        if changed:
            self._put_down(changed)
            self._finder = None
        return [changed.get(number, each).piece for number, each in enumerate(read, first)]

    def _renewed(self, piece: FilePiece) -> ReadPiece:
        """A piece of a file that was mended, with all that the file has now."""
        whole = stamp(piece.path)
        return ReadPiece(replace(piece, stop=whole.read), whole)

    def _digest(self, start: Offset, pieces: Sequence[FilePiece]) -> str:
        """A short text that differs where other pieces have been planned."""
        kept = [each.within(self._base) for each in pieces]
        return names_digest([start["names"], *(f"{each.start} {each.path}" for each in kept)])
