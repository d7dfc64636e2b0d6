"""The pieces of files that a stream has read, in a file of the checkpoint: a line per piece, with its number.

Rules:
- Lines are added, never changed: a commit costs what was read since the last. The last line of a number counts.
- Numbers that the committed position does not reach are of pieces that will be read again; they do not count.
- A line begins with a digest of it and of its stream's name. One that is torn or damaged is left out; a run that goes
  on after its piece fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from millrace.connectors.files.pieces.file_piece import ReadPiece
from millrace.hosts.checkpoint.digests import damaged_file, digest
from millrace.hosts.checkpoint.durable_files import make_folder
from millrace.hosts.checkpoint.file_system import files


class ReadLog:
    """The pieces of one stream's files.

    >>> import tempfile
    >>> from millrace.connectors.files.file_stamp import FileStamp
    >>> from millrace.connectors.files.pieces.file_piece import FilePiece
    >>> log = ReadLog(Path(tempfile.mkdtemp()), "s")
    >>> log.add({0: ReadPiece(FilePiece("a.csv", 0, 3, 7), FileStamp(3, "ab", 3, 7, 7))})
    >>> log.load()[0].piece.path
    'a.csv'
    """

    def __init__(self, checkpoint: Path, stream: str) -> None:
        self.path = checkpoint / "read" / f"{quote(stream, safe='')}.jsonl"

    def load(self, count: int = 0) -> dict[int, ReadPiece]:
        """All pieces, by their number; refuses a log that lacks one of the first so many."""
        found: dict[int, ReadPiece] = {}
        for line in files().read(self.path).split(b"\n") if self.path.exists() else ():
            told, _, piece = line.partition(b" ")
            if piece and told == digest(piece, self.path.name).encode():
                number, *data = json.loads(piece)
                found[int(number)] = ReadPiece.of(data)
        if any(number not in found for number in range(count)):
            raise damaged_file(self.path)
        return found

    def add(self, pieces: Mapping[int, ReadPiece]) -> None:
        """Add pieces; they are to be synced before the commit that counts on them."""
        make_folder(self.path.parent, "the folder of what was read")
        lines = [json.dumps([number, *each.data()]).encode() for number, each in pieces.items()]
        # What a power cut has left of a line must not join the next.
        files().append(
            self.path, b"".join(b"\n%s %s" % (digest(line, self.path.name).encode(), line) for line in lines)
        )
