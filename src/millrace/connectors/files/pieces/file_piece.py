"""A range of a file's bytes that is read at once, and what the file was then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

from millrace.connectors.files.file_stamp import FileStamp

Data = list[int | str]


@dataclass(frozen=True, slots=True)
class FilePiece:
    """The bytes from `start` to `stop` of a file, and when it had been modified when they were found."""

    path: str
    start: int
    stop: int
    modified: int

    def data(self) -> Data:
        """As JSON has it."""
        return list(astuple(self))

    @staticmethod
    def of(data: Sequence[int | str]) -> FilePiece:
        """The piece that `data` gave."""
        path, start, stop, modified = data
        return FilePiece(str(path), int(start), int(stop), int(modified))

    def within(self, base: str) -> FilePiece:
        """The piece as a checkpoint keeps it: by its path in the folder of the stream, which may be moved."""
        return replace(self, path=self.path.removeprefix(base))

    def below(self, base: str) -> FilePiece:
        """The piece of a path in a folder, by its whole path."""
        return replace(self, path=base + self.path)

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.stop - self.start

    @property
    def span(self) -> tuple[int, int]:
        """Where it begins and ends."""
        return self.start, self.stop


@dataclass(frozen=True, slots=True)
class ReadPiece:
    """A piece that was read, and the stamp of its file up to its end.

    >>> read = ReadPiece(FilePiece("a.csv", 0, 3, 7), FileStamp(3, "ab", 3, 7, 7))
    >>> ReadPiece.of(read.data()) == read
    True
    """

    piece: FilePiece
    stamp: FileStamp

    def within(self, base: str) -> ReadPiece:
        """See `FilePiece.within`."""
        return replace(self, piece=self.piece.within(base))

    def below(self, base: str) -> ReadPiece:
        """See `FilePiece.below`."""
        return replace(self, piece=self.piece.below(base))

    def data(self) -> Data:
        """As JSON has it."""
        return [*self.piece.data(), *self.stamp.data()]

    @staticmethod
    def of(data: Sequence[int | str]) -> ReadPiece:
        """The piece that `data` gave."""
        return ReadPiece(FilePiece.of(data[:4]), FileStamp.of(data[4:]))
