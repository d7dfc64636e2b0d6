"""A stream's files as an input, piece by piece (see pieces/).

Rules:
- A position names the piece that the next chunk begins in, so that an input that is opened there gives the same chunk,
  whatever files have come since, and however they have grown.
- What was read of a file must stay; the rest of one that was read in part may be mended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.connectors.files.file_options import reading
from millrace.connectors.files.file_reader import FileBatch, read_file
from millrace.connectors.files.file_stamp import FileStamp, check_stamp, stamp
from millrace.connectors.files.input_files import base_of, list_files
from millrace.connectors.files.pieces.file_piece import FilePiece, ReadPiece
from millrace.connectors.files.pieces.piece_finder import PieceFinder
from millrace.connectors.stream_input import CHUNK_ROWS, Chunk, Position
from millrace.errors import MillraceError, RunError
from millrace.plan.nodes.endpoints import Stream


class FileInput:
    """The pieces of a stream's files, followed as more come; a read gives as much of a piece as is worth a turn.

    `read` are the pieces before the position. An input that `follows` its files looks at some of those that were read
    in turn, any other at all of them; with `ends` it takes their ends as they are.
    """

    finished = False
    more = False

    def __init__(
        self,
        stream: Stream,
        schema: pa.Schema,
        position: Position | None,
        read: Mapping[int, ReadPiece] | None = None,
        *,
        ends: bool = True,
        follows: bool = False,
    ) -> None:
        self.stream, self.schema = stream, schema
        self._files: int = position["files"] if position else 0
        """How many pieces were read whole."""
        self.pieces = {number: each for number, each in (read or {}).items() if number < self._files}
        """Those pieces, by their number, with paths in the folder of the stream."""
        self._base = base_of(stream.connector) if stream.connector.options.get("path") else ""
        self.unsaved: set[int] = set()
        """The numbers of those that are in no checkpoint yet."""
        if len(self.pieces) < self._files:
            raise _forgotten(stream.name, self._files - len(self.pieces))
        self._finder = PieceFinder(
            stream,
            lambda: list_files(stream.connector, stream.name),
            (self.pieces[number].below(self._base) for number in sorted(self.pieces)),
            ends=ends,
            bounded=not follows,
        )
        self._follows = follows
        self._piece: FilePiece | None
        self._batches: Iterator[FileBatch] = iter(())
        self._next: FileBatch | MillraceError | None = None
        """What the next read gives, if that is known."""
        self._is_dry = False
        """True if nothing was found when the position was asked for."""
        self._rows = self._read = 0
        self._whole: FileStamp | None = None
        self._opened: dict[str, Any] = {}
        """What a position says of the open piece however much of it was read: a run asks for one at every chunk."""
        self._part: FileStamp | None = None
        self._queue: list[FilePiece] = []
        if position and "piece" in position:
            self._resume(position)
        else:
            self._piece = None
        self._queue = self._found()

    @property
    def pending(self) -> bool:
        """True if a file that does not rest has more, and the run would end without it."""
        return self._finder.waiting and not self._follows

    def reopened(self, stream: Stream, schema: pa.Schema, position: Position) -> FileInput:
        """The same files with other columns, from one of its positions."""
        ends = self._finder.ends
        after = FileInput(stream, schema, position, self.pieces, ends=ends, follows=self._follows)
        after.unsaved |= self.unsaved & after.pieces.keys()
        return after

    def read(self) -> Chunk | None:
        """The next rows of the open piece, or of the one after it."""
        if self._is_dry:
            self._is_dry = False
            return None
        self._peek()
        batch = self._next
        if batch is None:
            return None
        if isinstance(batch, MillraceError):
            raise batch
        self._next = None
        self._rows += batch.rows.num_rows + batch.malformed
        self._read = batch.read or self._read
        return Chunk(batch.rows, batch.unread, locate=batch.locate)

    def position(self) -> dict[str, Any]:
        """How many pieces were read whole, the rows read of the next, and what that is and what was read of it."""
        self._peek()
        self._is_dry = self._next is None
        if self._piece is None:
            return {"files": self._files, "rows": 0}
        found = {"files": self._files, "rows": self._rows, **self._opened}
        if self._read:
            self._part = self._part_stamp(self._piece)
            found["stamp"] = self._part.data()
        return found

    def _found(self) -> list[FilePiece]:
        """What there is to read besides the open piece."""
        opened = None if self._piece is None else self._piece.path
        return [each for each in self._finder.look() if each.path != opened]

    def _part_stamp(self, piece: FilePiece) -> FileStamp:
        """The stamp of what was read of the open file."""
        if self._part is not None:
            self._part = check_stamp(piece.path, self._part, self.stream.name)
        if self._part is not None and self._part.read == self._read:
            return self._part
        whole = self._whole
        return whole if whole is not None and whole.read == self._read else stamp(piece.path, self._read)

    def _peek(self) -> None:
        """Know what the next read gives: then the position is that of these rows."""
        while self._next is None:
            try:
                self._next = next(self._batches, None)
            except MillraceError as error:
                self._next = error
            if self._next is None and not self._advance():
                return

    def _advance(self) -> bool:
        """Open the next piece; False if there is none."""
        if self._piece is not None:
            self._finish(self._piece)
        if not self._queue:
            self._queue = self._finder.look()
        if not self._queue:
            return False
        piece = self._queue.pop(0)
        # It may have grown since it was found.
        stop = max(piece.stop, self._finder.end(piece.path, piece.start, piece.modified))
        self._open(replace(piece, stop=stop), stamp(piece.path, stop), 0)
        return True

    def _open(self, piece: FilePiece, whole: FileStamp, rows: int) -> None:
        self._piece, self._whole, self._part = piece, whole, None
        self._opened = {"piece": piece.within(self._base).data(), "whole": whole.data()}
        self._rows, self._read = rows, 0
        self._batches = read_file(
            Path(piece.path),
            reading(self.stream),
            self.schema,
            batch_rows=CHUNK_ROWS,
            skip_rows=rows,
            span=piece.span,
        )

    def _resume(self, position: Position) -> None:
        """Open the piece of a position, as it was; or as it is now, if only what was not read of it has changed."""
        piece, whole = FilePiece.of(position["piece"]).below(self._base), FileStamp.of(position["whole"])
        part = FileStamp.of(position["stamp"]) if "stamp" in position else None
        try:
            whole = check_stamp(piece.path, whole, self.stream.name)
        except RunError:
            if part is not None:
                part = check_stamp(piece.path, part, self.stream.name)
            piece = replace(piece, stop=self._finder.end(piece.path, piece.start, piece.modified))
            whole = stamp(piece.path, piece.stop)
        self._open(piece, whole, position["rows"])
        self._part, self._read = part, part.read if part else 0

    def _finish(self, piece: FilePiece) -> None:
        """Keep the open piece as read; what a file gains before a commit makes one piece with what was read of it."""
        assert self._whole is not None
        read = ReadPiece(piece, check_stamp(piece.path, self._whole, self.stream.name))
        self._finder.took(read)
        number, kept = self._files, read.within(self._base)
        if number - 1 in self.unsaved and (before := self.pieces[number - 1].piece).path == kept.piece.path:
            number -= 1
            kept = replace(kept, piece=replace(kept.piece, start=before.start, modified=before.modified))
        self.pieces[number] = kept
        self.unsaved.add(number)
        self._files = number + 1
        self._piece, self._batches = None, iter(())


def _forgotten(stream: str, count: int) -> RunError:
    return RunError(
        f'the checkpoint does not record what was read of {count} files of stream "{stream}"',
        hint="Start anew with another checkpoint and sink.",
    )
