"""The stamps of the files that a stream has read whole, in a file of the checkpoint: a line per file, with its number.

Rules:
- Lines are added, never changed: a commit costs what was read since the last. The last line of a number counts.
- Numbers that the committed position does not reach are of files that will be read again; they do not count.
- A line begins with a digest of it and of its stream's name. One that is torn or damaged is left out: then that file
  is not checked, and nothing else depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from millrace.connectors.files.file_stamp import FileStamp
from millrace.hosts.checkpoint.digests import digest
from millrace.hosts.checkpoint.durable_files import make_folder
from millrace.hosts.checkpoint.file_system import files


class ReadLog:
    """The stamps of one stream's files.

    >>> import tempfile
    >>> log = ReadLog(Path(tempfile.mkdtemp()), "s")
    >>> log.add({0: FileStamp(3, "ab", 3, 7, 7)})
    >>> log.load()[0].digest
    'ab'
    """

    def __init__(self, checkpoint: Path, stream: str) -> None:
        self.path = checkpoint / "read" / f"{quote(stream, safe='')}.jsonl"

    def load(self) -> dict[int, FileStamp]:
        """All stamps, by the number of the file."""
        found: dict[int, FileStamp] = {}
        for line in files().read(self.path).split(b"\n") if self.path.exists() else ():
            told, _, stamp = line.partition(b" ")
            if stamp and told == digest(stamp, self.path.name).encode():
                number, *data = json.loads(stamp)
                found[int(number)] = FileStamp.of(data)
        return found

    def add(self, stamps: Mapping[int, FileStamp]) -> None:
        """Add stamps; they are to be synced before the commit that counts on them."""
        make_folder(self.path.parent, "the folder of what was read")
        lines = [json.dumps([number, *each.data()]).encode() for number, each in stamps.items()]
        # What a power cut has left of a line must not join the next.
        files().append(
            self.path, b"".join(b"\n%s %s" % (digest(line, self.path.name).encode(), line) for line in lines)
        )
