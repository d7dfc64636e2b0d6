"""The latest answers of a query as files in a checkpoint: a later run goes on from them, other processes read them.

Rules:
- A file `A-B.arrow` holds the answers at the end of epoch B of the keys that changed in the epochs A to B. It is
  valid when epoch B has been committed. Files whose epochs a later file covers are removed after the commit.
- A save writes what has changed since the last one, merged with files of similar size: an answer is written as often
  as the logarithm of the number of keys, and there are about as many files.
- The first file of a query begins with epoch 0, even if it is empty: files that an earlier query of its name has left
  are not valid.
- On Spark each task adds a file `part-<epoch>-<partition>.arrow` with the answers of a micro-batch, named so that a
  replay replaces it. It is valid like a file of that one epoch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from millrace.hosts.answers.answer_table import AnswerTable
from millrace.hosts.checkpoint.durable_files import make_folder, note_of, read_arrow, write_arrow
from millrace.hosts.checkpoint.file_system import files
from millrace.kernel.elements import RESERVED

_FILE = re.compile(r"(\d{8,})-(\d{8,})\.arrow")
_PART = re.compile(r"part-(\d{8,})-(\d{4,})\.arrow")


@dataclass(frozen=True)
class _AnswerFile:
    """A file of the epochs `first` to `last`; its rows were put from `version` on."""

    path: Path
    first: int
    last: int
    rows: int = 0
    version: int = 0


class AnswerFiles:
    """The files of one query's answers, in a folder of their own."""

    def __init__(self, folder: Path, latest: AnswerTable) -> None:
        self.folder = folder
        self.latest = latest
        self._files: list[_AnswerFile] = []
        self._saved = 0
        """The version of the answers that the files hold."""

    def load(self, epoch: int) -> None:
        """Read what was committed up to an epoch, and remove the rest."""
        valid = valid_files(self.folder, epoch)
        for each in valid:
            rows, version = read_arrow(each.path), self.latest.version
            self.latest.put(rows)
            if not is_part(each.path):
                self._files.append(_AnswerFile(each.path, each.first, each.last, rows.num_rows, version))
                self._saved = self.latest.version
        for path in set(self.folder.glob("*.arrow")) - {each.path for each in valid}:
            files().remove(path)

    def stage(self, epoch: int) -> bool:
        """Write what has changed since the last time, as of an epoch that is about to be committed; False if nothing.

        The folder is to be synced before the commit.
        """
        if self._files and self.latest.version == self._saved:
            return False
        version, first = self._saved, epoch if self._files else 0
        size = self.latest.timed_since(version)[0].num_rows
        while self._files and self._files[-1].rows <= 2 * size:
            absorbed = self._files.pop()
            version, first, size = absorbed.version, absorbed.first, size + absorbed.rows
        rows, self._saved = self.latest.timed_since(version)
        make_folder(self.folder, "the folder of latest answers")
        path = self.folder / f"{first:08d}-{epoch:08d}.arrow"
        draft = path.with_name(f".{path.name}")
        write(draft, rows, self.latest.query, self.latest.key)
        files().rename(draft, path)
        self._files.append(_AnswerFile(path, first, epoch, rows.num_rows, version))
        return True

    def sweep(self) -> None:
        """Remove the files that those of a committed epoch cover."""
        keep, last = {each.path for each in self._files}, max((each.last for each in self._files), default=-1)
        for each in _found(self.folder):
            if each.path not in keep and each.last <= last:
                files().remove(each.path)

    def remove(self) -> None:
        """Remove all: the query has left."""
        files().remove_folder(self.folder)


def folder_of(checkpoint: Path, query: str) -> Path:
    """Where the answers of a query are kept."""
    return checkpoint / "latest" / quote(query, safe="")


def part_name(epoch: int, partition: int) -> str:
    """The name of what a task adds."""
    return f"part-{epoch:08d}-{partition:04d}.arrow"


def is_part(path: Path) -> bool:
    """True if a task has added the file."""
    return path.name.startswith("part-")


def parts_of(folder: Path, epoch: int) -> list[Path]:
    """What the tasks of an epoch have added, in order."""
    return sorted(folder.glob(f"part-{epoch:08d}-*.arrow"))


def valid_files(folder: Path, epoch: int) -> list[_AnswerFile]:
    """The valid files when an epoch is the last that was committed, in the order in which they are read."""
    found = [each for each in _found(folder) if each.last <= epoch]
    kept: list[_AnswerFile] = []
    for each in sorted(found, key=lambda file: (is_part(file.path), file.first, -file.last, file.path)):
        # What was merged, and not removed yet, lies within what it was merged into.
        until = max((other.last for other in kept if not is_part(other.path)), default=-1)
        if each.last > until:
            kept.append(each)
    return kept


def stored(folder: Path, epoch: int) -> AnswerTable | None:
    """The answers in a folder as of a committed epoch, read without a run; None if there are none."""
    latest: AnswerTable | None = None
    for each in valid_files(folder, epoch):
        rows = read_arrow(each.path)
        note = json.loads(note_of(rows))
        if latest is None:
            latest = AnswerTable(note["query"], user_schema(rows.schema), note["key"])
        latest.put(rows)
    return latest


def write(path: Path, rows: pa.Table, query: str, key: Sequence[str]) -> None:
    """One file; its content is on disk when this returns, its name is not."""
    write_arrow(path, rows, json.dumps({"query": query, "key": list(key)}))
    files().sync_file(path)


def user_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a file without the reserved ones."""
    return pa.schema([field for field in schema if field.name not in RESERVED])


def _found(folder: Path) -> list[_AnswerFile]:
    files = []
    for path in folder.glob("*.arrow"):
        if (found := _FILE.fullmatch(path.name)) is not None:
            files.append(_AnswerFile(path, int(found[1]), int(found[2])))
        elif (found := _PART.fullmatch(path.name)) is not None:
            files.append(_AnswerFile(path, int(found[1]), int(found[1])))
    return files
