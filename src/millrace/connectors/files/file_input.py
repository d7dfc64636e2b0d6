"""A stream's files as an input.

Rules:
- Files that have been read must stay as they are: one that was rewritten, replaced or cut off is an error, when an
  input is opened and while it is read. What a file has gained at its end is not looked at again.
- Folders are read in name order. A file that sorts before one already read is an error: it would be missed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from millrace.connectors.files.file_options import reading
from millrace.connectors.files.file_reader import read_file
from millrace.connectors.files.file_stamp import FileStamp, check_stamp, stamp
from millrace.connectors.files.input_files import list_files, sort_key
from millrace.connectors.stream_input import CHUNK_ROWS, Chunk, Position
from millrace.errors import RunError
from millrace.plan.nodes.endpoints import Stream

_CHECKED = 16
"""Files that have been read which are looked at again, in turn, whenever new ones are looked for."""


class FileInput:
    """Files of a folder in name order, followed as new ones come; a read gives as much of a file as is worth a turn."""

    pending = False
    more = False

    def __init__(
        self,
        stream: Stream,
        schema: pa.Schema,
        position: Position | None,
        read: Mapping[int, FileStamp] | None = None,
    ) -> None:
        self.stream = stream
        self.schema = schema
        self.finished = False
        self._position = dict(position or {"files": 0, "last": "", "rows": 0})
        self._paths = list_files(stream.connector, stream.name)
        self._batches: Iterator[Any] = iter(())
        self.read_files = {number: each for number, each in (read or {}).items() if number < self._position["files"]}
        """The stamps of the files that were read whole, by their number."""
        self.unsaved: set[int] = set()
        """The numbers of those that are in no checkpoint yet."""
        self._next_checked = 0
        stamped = self._position.pop("stamp", None)
        self._stamp = FileStamp.of(stamped) if stamped else None
        self._read = self._stamp.read if self._stamp else 0
        self._open()
        for number in self.read_files:
            self._check(number)
        self._check_open()

    def read(self) -> Chunk | None:
        """The next rows of the open file, or of the one after it."""
        while True:
            batch = next(self._batches, None)
            if batch is not None:
                self._position["rows"] += batch.rows.num_rows + batch.malformed
                self._read = batch.read or self._read
                return Chunk(batch.rows, batch.unread, locate=batch.locate)
            if not self._advance():
                return None

    def position(self) -> dict[str, Any]:
        """The number of files read whole, the name of the last, the rows read of the next, and what was read of it."""
        if self._read and self._position["files"] < len(self._paths):
            self._check_open()
            if self._stamp is None or self._stamp.read != self._read:
                self._stamp = stamp(self._paths[self._position["files"]], self._read)
        return {**self._position, **({"stamp": self._stamp.data()} if self._stamp else {})}

    def _check(self, number: int) -> None:
        """Fail if a file that was read whole has changed."""
        self.read_files[number] = check_stamp(self._paths[number], self.read_files[number], self.stream.name)

    def _check_open(self) -> None:
        """Fail if what was read of the open file has changed."""
        if self._stamp is not None:
            self._stamp = check_stamp(self._paths[self._position["files"]], self._stamp, self.stream.name)

    def _open(self) -> None:
        """Open the file after those read whole, if there is one."""
        read, last = self._position["files"], self._position["last"]
        known = bisect_right(self._paths, sort_key(last), key=sort_key) if last else 0
        if known != read:
            raise RunError(
                f'stream "{self.stream.name}" has {known} files up to "{last}", but {read} were read',
                hint="Give new files names that sort after the old ones, and leave the old ones in place.",
            )
        self._batches = iter(())
        if read < len(self._paths):
            rows = self._position["rows"]
            self._batches = read_file(
                Path(self._paths[read]), reading(self.stream), self.schema, batch_rows=CHUNK_ROWS, skip_rows=rows
            )

    def _advance(self) -> bool:
        """Open the next file; False if there is none."""
        read = self._position["files"]
        if read < len(self._paths):
            self._check_open()
            known = self._stamp
            self.read_files[read] = known if known and known.read == known.size else stamp(self._paths[read])
            self.unsaved.add(read)
            self._stamp, self._read = None, 0
            self._position = {"files": read + 1, "last": self._paths[read], "rows": 0}
        if read + 1 >= len(self._paths):
            self._paths = list_files(self.stream.connector, self.stream.name)
            self._open()
            self._check_some()
        else:
            self._open()
        return self._position["files"] < len(self._paths)

    def _check_some(self) -> None:
        """Look at some of the files that were read, after those of the last time."""
        count = len(self.read_files)
        for number in range(self._next_checked, min(self._next_checked + _CHECKED, count)):
            if number in self.read_files:
                self._check(number)
        self._next_checked = 0 if self._next_checked + _CHECKED >= count else self._next_checked + _CHECKED
