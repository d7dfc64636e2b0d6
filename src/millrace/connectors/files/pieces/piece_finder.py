"""What of a stream's files has not been read: new files in their order, and what files have gained since.

Rules:
- Files that have been read must stay as they are: one that was rewritten, replaced, cut off or removed is an error.
- What a csv or json file has gained is read after all that was found before. If its last line was read before its end
  was written, and goes on now, or if another file has grown, the run fails: nothing is passed over.
- New files are read by name, by the time of their change, or as they come. A file that would come before one that was
  read is an error, or is read as well: then its rows may be late.
- A new file that cannot be read yet holds back those after it, until it rests (see piece_end.py).
- A run that goes on holds a last line without an end back, however long its writer pauses. It takes such a line of a
  file that rests and was never seen to grow, once another file has come: then its writer has gone on to that one. It
  never takes a line of column names so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from millrace.connectors.files.file_options import read_options
from millrace.connectors.files.file_stamp import FileStamp, check_stamp
from millrace.connectors.files.input_files import sort_key
from millrace.connectors.files.pieces.file_piece import FilePiece, ReadPiece
from millrace.connectors.files.pieces.piece_end import can_grow, end_of_rows, rests
from millrace.errors import RunError
from millrace.plan.nodes.endpoints import Stream

_CHECKED = 16
"""Files that have been read which are looked at again at each look, in turn."""

Key = tuple[int, str]


class PieceFinder:
    """Finds what to read of a stream's files, after the pieces that were read.

    With `ends` files are read to their ends though they may still be written. A `bounded` run checks every file at
    each look, and takes the last line of a file that rests, with an end or without.
    """

    def __init__(
        self, stream: Stream, paths: Callable[[], list[str]], read: Iterable[ReadPiece], *, ends: bool, bounded: bool
    ) -> None:
        options = read_options(stream.connector.format, stream.connector.options)
        self.waiting = False
        """True if something was left because its file does not rest."""
        self.ends, self.bounded = ends, bounded
        self._stream, self._paths = stream, paths
        self._order, self._takes_earlier = options.order_by, options.takes_earlier
        self._has_head = stream.connector.format == "csv" and options.header
        self._known: dict[str, FileStamp] = {}
        """Files that were read, in the order in which they were first read."""
        self._grew: set[str] = set()
        """Those of them that were seen to grow."""
        self._newest: str | None = None
        self._last: Key | None = None
        self._next_checked: int | None = None
        for each in read:
            self.took(each)

    def took(self, read: ReadPiece) -> None:
        """Know a piece as read."""
        piece = read.piece
        self._known[piece.path] = read.stamp
        if piece.start == 0:
            key = self._key(piece)
            self._last = key if self._last is None else max(self._last, key)
        else:
            self._grew.add(piece.path)

    def look(self) -> list[FilePiece]:
        """What there is to read now, in order."""
        self.waiting = False
        paths = self._paths()
        if len(self._known) > len(paths) or not self._known.keys() <= set(paths):
            raise self._gone(min(self._known.keys() - set(paths)))
        new = sorted((self._unread(path) for path in paths if path not in self._known), key=self._key)
        self._newest = new[-1].path if new else next(reversed(self._known), None)
        return [*self._grown(), *self._new(new)]

    def end(self, path: str, start: int, modified: int) -> int:
        """Up to where a file can be read now."""
        whole = self.ends or (self._is_left(path, modified) and not self._has_half_a_head(path, start))
        return end_of_rows(path, start, self._stream.connector, whole=whole)

    def _has_half_a_head(self, path: str, start: int) -> bool:
        """True if the line of column names has no end yet, and may get one: nothing is lost by a wait for it."""
        if start or self.bounded or not self._has_head or not can_grow(path, self._stream.connector):
            return False
        return not end_of_rows(path, 0, self._stream.connector, whole=False)

    def _is_left(self, path: str, modified: int) -> bool:
        """True if nothing speaks for it that a file is still written."""
        if self.bounded or not can_grow(path, self._stream.connector):
            return rests(modified)
        has_next = self._newest is not None and path != self._newest
        return has_next and path not in self._grew and rests(modified)

    def _grown(self) -> Iterator[FilePiece]:
        """What files have gained, of some that are looked at in turn; all of them at first."""
        first, count = self._next_checked or 0, len(self._known)
        whole = self.bounded or self._next_checked is None
        checked = list(self._known) if whole else list(islice(self._known, first, first + _CHECKED))
        self._next_checked = 0 if whole or first + _CHECKED >= count else first + _CHECKED
        for path in checked:
            before = self._known[path]
            known = self._known[path] = check_stamp(path, before, self._stream.name)
            if known.size > before.size:
                self._grew.add(path)
            if known.size > known.read:
                yield from self._gained(path, known)

    def _gained(self, path: str, known: FileStamp) -> Iterator[FilePiece]:
        if not can_grow(path, self._stream.connector):
            raise self._cannot_grow(path, known)
        start = self._next_line(path, known)
        if start >= known.size:
            return
        stop = self.end(path, start, known.modified)
        if stop > start:
            yield FilePiece(path, start, stop, known.modified)
        self.waiting |= stop < known.size and not rests(known.modified)

    def _next_line(self, path: str, known: FileStamp) -> int:
        """Where the next line begins after what was read, which may lack the end of its last line."""
        if not known.read:
            return 0
        with Path(path).open("rb") as file:
            file.seek(known.read - 1)
            last, following = file.read(1), file.read(2)
        if last == b"\n":
            return known.read
        if following.startswith(b"\n"):
            return known.read + 1
        if following == b"\r\n"[: len(following)] or last == b"\r":
            return known.read + len(following) * (last != b"\r")
        raise self._went_on(path, known)

    def _new(self, found: list[FilePiece]) -> Iterator[FilePiece]:
        """What can be read of files that have not been read, in their order."""
        if found and self._last is not None and self._order != "arrival" and not self._takes_earlier:
            first = self._key(found[0])
            if first < self._last:
                raise self._out_of_order(found[0].path)
        for piece in found:
            stop = self.end(piece.path, 0, piece.modified)
            if not stop and not self.ends and not rests(piece.modified):
                self.waiting = True
                return
            self.waiting |= stop < Path(piece.path).stat().st_size and not rests(piece.modified)
            yield FilePiece(piece.path, 0, stop, piece.modified)

    def _unread(self, path: str) -> FilePiece:
        """A file that was not read, as its order needs it."""
        found = Path(path).stat()
        return FilePiece(path, 0, 0, found.st_ctime_ns if self._order == "arrival" else found.st_mtime_ns)

    def _key(self, piece: FilePiece) -> Key:
        """What files are ordered by."""
        return (0 if self._order == "name" else piece.modified), sort_key(piece.path)

    # Refusals

    def _out_of_order(self, path: str) -> RunError:
        assert self._last is not None
        last = Path(self._last[1].replace("\0", "/"))
        words = {"name": "sorts before", "modified": "was modified before"}
        return RunError(
            f'file "{path}" of stream "{self._stream.name}" {words[self._order]} "{last.name}", which has been read',
            hint="Give new files names that sort after all earlier ones, or read such files too, though their rows may "
            "be late, with OPTIONS (earlier_files 'read'); order_by 'arrival' takes files as they come.",
        )

    def _gone(self, path: str) -> RunError:
        return RunError(
            f'file "{path}" of stream "{self._stream.name}" was read, and no longer exists',
            hint="Keep the files of a stream in place as long as its checkpoint is in use.",
        )

    def _cannot_grow(self, path: str, known: FileStamp) -> RunError:
        return RunError(
            f'file "{path}" of stream "{self._stream.name}" has grown since it was read: {known.read} bytes of it were '
            f"read, and it has {known.size}",
            hint="Move such files in whole: only csv and json that is not compressed can be read while it grows.",
        )

    def _went_on(self, path: str, known: FileStamp) -> RunError:
        return RunError(
            f'file "{path}" of stream "{self._stream.name}" was extended in its last line, which had been read: its '
            f"first {known.read} bytes end in the middle of a line",
            hint="Write a last line whole before a run with an end starts, and before the next file begins. Now "
            "start anew with another checkpoint and sink.",
        )
