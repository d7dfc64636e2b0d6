"""The latest answers of a query as files in a checkpoint: a later run goes on from them, other processes read them.

Rules:
- A file `A-B.arrow` holds the answers at the end of epoch B of the keys that changed in the epochs A to B. It is
  valid if what is committed names it, with its digest (see `kept`). Others are removed after the commit.
- A save writes what has changed since the last one, merged with files of similar size: an answer is written as often
  as the logarithm of the number of keys, and there are about as many files.
- On Spark each task adds a file `part-<epoch>-<partition>.arrow` with the answers of a micro-batch, named so that a
  replay replaces it, and the record of the micro-batch names it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from millrace.hosts.answers.answer_table import AnswerTable
from millrace.hosts.checkpoint.durable_files import make_folder, note_of, read_arrow, write_arrow
from millrace.hosts.checkpoint.file_system import files
from millrace.kernel.elements import RESERVED

_FILE = re.compile(r"(\d{8,})-(\d{8,})\.arrow")
_HOME = "latest"


@dataclass(frozen=True)
class _AnswerFile:
    """A file of the epochs `first` to `last`; its rows were put from `version` on."""

    path: Path
    first: int
    last: int
    digest: str
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

    def load(self, kept: Mapping[str, str]) -> None:
        """Read the committed files, given their digests by path in the checkpoint, and remove the rest."""
        valid = valid_files(self.folder, kept)
        for each in valid:
            rows, version = read_arrow(each.path, each.digest), self.latest.version
            self.latest.put(rows)
            if not is_part(each.path):
                self._files.append(replace(each, rows=rows.num_rows, version=version))
                self._saved = self.latest.version
        for path in set(self.folder.glob("*.arrow")) - {each.path for each in valid}:
            files().remove(path)

    def kept(self) -> dict[str, str]:
        """The digests of the files that hold all answers, by path in the checkpoint."""
        return {kept_name(each.path): each.digest for each in self._files}

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
        told = write(draft, rows, self.latest.query, self.latest.key)
        files().rename(draft, path)
        self._files.append(_AnswerFile(path, first, epoch, told, rows.num_rows, version))
        return True

    def sweep(self) -> None:
        """Remove the files that those of a committed epoch cover."""
        keep, last = {each.path for each in self._files}, max((each.last for each in self._files), default=-1)
        for each in _found(self.folder):
            if each.path not in keep and each.last <= last:
                files().remove(each.path)


def folder_of(checkpoint: Path, query: str) -> Path:
    """Where the answers of a query are kept."""
    return checkpoint / _HOME / quote(query, safe="")


def part_name(epoch: int, partition: int) -> str:
    """The name of what a task adds."""
    return f"part-{epoch:08d}-{partition:04d}.arrow"


def is_part(path: Path) -> bool:
    """True if a task has added the file."""
    return path.name.startswith("part-")


def kept_name(path: Path) -> str:
    """The path of a file in its checkpoint."""
    return "/".join(path.parts[-3:])


def valid_files(folder: Path, kept: Mapping[str, str]) -> list[_AnswerFile]:
    """The committed files of a folder, in the order in which they are read, given the digests of all committed ones."""
    found = [_file_of(folder / Path(name).name, told) for name, told in kept.items() if _home_of(name) == folder.name]
    return sorted(found, key=lambda file: (is_part(file.path), file.first, file.path))


def _home_of(name: str) -> str:
    home, folder, _ = (*name.split("/"), "", "")[:3]
    return folder if home == _HOME else ""


def stored_answers(folder: Path, kept: Mapping[str, str]) -> AnswerTable | None:
    """The answers in a folder, given the digests of committed files, read without a run; None if there are none."""
    latest: AnswerTable | None = None
    for each in valid_files(folder, kept):
        rows = read_arrow(each.path, each.digest)
        note = json.loads(note_of(rows))
        if latest is None:
            latest = AnswerTable(note["query"], user_schema(rows.schema), note["key"])
        latest.put(rows)
    return latest


def write(path: Path, rows: pa.Table, query: str, key: Sequence[str]) -> str:
    """One file, and its digest; its content is on disk when this returns, its name is not."""
    told = write_arrow(path, rows, json.dumps({"query": query, "key": list(key)}))
    files().sync_file(path)
    return told


def user_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a file without the reserved ones."""
    return pa.schema([field for field in schema if field.name not in RESERVED])


def _found(folder: Path) -> list[_AnswerFile]:
    return [_file_of(path) for path in folder.glob("*.arrow") if _FILE.fullmatch(path.name) or is_part(path)]


def _file_of(path: Path, told: str = "") -> _AnswerFile:
    """A file, with the epochs that its name tells."""
    first, last = path.stem.removeprefix("part-").split("-")
    return _AnswerFile(path, int(first), int(first if is_part(path) else last), told)
