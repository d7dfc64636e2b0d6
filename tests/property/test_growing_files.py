"""Files that are written in pieces, in any order, while a stream is read, killed and read on: each row counts once.

The oracle is plain Python: the rows of the finished files, each once, and those of a file in their order.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.connectors.files import csv_reader, json_reader
from millrace.connectors.files.file_input import FileInput
from millrace.connectors.files.file_reader import read_file
from millrace.connectors.files.input_files import list_files
from millrace.connectors.files.pieces import piece_end
from millrace.connectors.files.pieces.file_piece import ReadPiece
from millrace.hosts.local.cut_input import CutInput
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.source.followed_files import FollowedFiles
from millrace.hosts.spark.source.stream_files import START, FileLimit, Listing
from millrace.language import parse_network
from millrace.plan.nodes.endpoints import Stream
from tests.unit.hosts.spark.toys import IntegerFiles

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string())])
TEXTS = ("a", "", "b,c", 'd"e', "f\ng", "h\r\ni", "ä")


@dataclass
class Written:
    """The finished text of a file, and how much of it has been written."""

    path: Path
    text: bytes
    rows: list[tuple[int, str]]
    done: int = 0

    def write(self, size: int) -> None:
        with self.path.open("ab") as file:
            file.write(self.text[self.done : self.done + size])
        self.done = min(self.done + size, len(self.text))


def as_csv(rows: list[tuple[int, str]], end: str, header: bool) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_MINIMAL)
    writer.writerows([("n", "s"), *rows] if header else rows)
    return text.getvalue().encode()


def as_json(rows: list[tuple[int, str]]) -> bytes:
    return "".join(json.dumps({"n": number, "s": text}, ensure_ascii=False) + "\n" for number, text in rows).encode()


@dataclass(frozen=True)
class Case:
    """Files, how they are ordered, and what happens."""

    format: str
    header: bool
    end: str
    order: str
    files: list[tuple[str, list[str]]]
    pauses: bool
    """True if its one file seems to rest all the time: its writer pauses wherever it is."""
    actions: list[tuple[str, int]] = field(default_factory=list)

    def written(self, folder: Path) -> list[Written]:
        found = []
        for number, (name, texts) in enumerate(self.files[:1] if self.pauses else self.files):
            rows = [(number * 100 + place, text) for place, text in enumerate(texts)]
            text = as_json(rows) if self.format == "json" else as_csv(rows, self.end, self.header)
            found.append(Written(folder / f"{name}{number}.{self.format}", text, rows))
        return found

    def stream(self, folder: Path) -> Stream:
        earlier = "" if self.order == "arrival" else ", earlier_files 'read'"
        header = "" if self.format == "json" else f", header '{str(self.header).lower()}'"
        return parse_network(
            "CREATE STREAM s (n BIGINT, s STRING) LATENT TIMESTAMP FROM "
            f"{self.format} OPTIONS (path '{folder}', order_by '{self.order}'{earlier}{header}); SELECT n, s FROM s"
        ).streams()[0]


actions = st.tuples(st.sampled_from(["write", "write", "write", "read", "read", "commit", "kill"]), st.integers(0, 40))
cases = st.builds(
    Case,
    st.sampled_from(["csv", "json"]),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["name", "modified", "arrival"]),
    st.lists(st.tuples(st.sampled_from("zma"), st.lists(st.sampled_from(TEXTS), max_size=6)), min_size=1, max_size=3),
    st.booleans(),
    st.lists(actions, max_size=40),
)


@contextmanager
def resting(pauses: bool) -> Iterator[None]:
    """Every file rests, or none; and blocks are small."""
    with (
        patch.object(piece_end, "REST", 0 if pauses else 1 << 62),
        patch.object(csv_reader, "_BLOCK_BYTES", 16),
        patch.object(json_reader, "_BLOCK_BYTES", 16),
    ):
        yield


def check(found: list[tuple[int, str]], files: list[Written]) -> None:
    # An empty text is null in csv.
    found = [(number, text or "") for number, text in found]
    assert sorted(found) == sorted(row for file in files for row in file.rows)
    for file in files:
        own = {number for number, _ in file.rows}
        assert [row for row in found if row[0] in own] == file.rows


def rows_of(batch: pa.RecordBatch) -> list[tuple[int, str]]:
    return list(zip(batch.column("n").to_pylist(), batch.column("s").to_pylist(), strict=True))


class LocalReader:
    """A stream as the local host reads it: what was delivered since the last commit is lost in a kill."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.rows: list[tuple[int, str]] = []
        self.committed: list[tuple[int, str]] = []
        self.saved: tuple[Any, dict[int, ReadPiece]] = (None, {})
        self.open(ends=False)

    def open(self, *, ends: bool) -> None:
        position, read = self.saved
        at, skip = (position["at"], position["cut"]) if position and "cut" in position else (position, 0)
        # As a checkpoint keeps it.
        at = json.loads(json.dumps(at))
        self.files = FileInput(self.stream, SCHEMA, at, read, ends=ends, follows=True)
        self.input = CutInput(self.files, skip)

    def read(self, limit: int) -> bool:
        chunk = self.input.read(limit % 5 + 1)
        if chunk is not None:
            assert not chunk.malformed
            self.rows += rows_of(chunk.rows)
        return chunk is not None

    def commit(self) -> None:
        position = self.input.position()
        self.saved = (position, self.saved[1] | {number: self.files.pieces[number] for number in self.files.unsaved})
        self.files.unsaved.clear()
        self.committed = list(self.rows)

    def kill(self, *, ends: bool = False) -> None:
        self.rows = list(self.committed)
        self.open(ends=ends)


@settings(max_examples=60)
@given(cases)
def test_every_row_counts_once_on_local(case: Case) -> None:
    with tempfile.TemporaryDirectory() as name, resting(case.pauses):
        folder = Path(name)
        files = case.written(folder)
        reader = LocalReader(case.stream(folder))
        for action, number in case.actions:
            match action:
                case "write":
                    files[number % len(files)].write(number)
                case "read":
                    reader.read(number)
                case "commit":
                    reader.commit()
                case "kill":
                    reader.kill()
        for file in files:
            file.write(len(file.text))
        reader.commit()
        reader.kill(ends=True)
        while reader.read(4):
            pass
        check(reader.rows, files)


class SparkReader:
    """A stream as micro-batches read it: a batch that is not committed is planned, or read, again after a kill."""

    def __init__(self, stream: Stream, folder: Path, limit: int) -> None:
        self.stream, self.folder, self.limit = stream, folder, FileLimit(files=limit)
        self.commits = CommitLog(folder / ".state" / "commits")
        self.offset, self.batch = START, 0
        self.rows: list[tuple[int, str]] = []
        self.open()

    def open(self, *, ends: bool = False) -> None:
        low_level = Listed(str(self.folder), stream=self.stream)
        self.files = FollowedFiles(low_level, self.stream, self.commits, self.limit, ends=ends)

    def run(self, kill: int) -> bool:
        """One micro-batch; with a kill after it was planned, read, or committed by the sink."""
        end = self.files.next_offset(self.offset, 1)
        if end is self.offset:
            return False
        end = json.loads(json.dumps(end))
        if kill == 1:
            self.open()
        read = self.read(end)
        if kill == 2:
            self.open()
            assert self.read(end) == read
        self.commits.write(self.batch, {"sources": {"s": {"files": end["files"]}}})
        if kill == 3:
            self.open()
            assert self.read(end) == read
        self.rows += read
        self.offset, self.batch = end, self.batch + 1
        return True

    def read(self, end: Any) -> list[tuple[int, str]]:
        found = []
        for part in self.files.partitions(self.offset, end):
            for path, span in zip(part.paths, part.spans, strict=True):
                for batch in read_file(Path(path), self.stream.connector, SCHEMA, span=span):
                    found += rows_of(batch.rows)
        return found


@dataclass(frozen=True)
class Listed(IntegerFiles):
    """The files of a stream."""

    stream: Stream | None = None

    def files(self) -> Listing:
        assert self.stream is not None
        return Listing(list_files(self.stream.connector, "s"))


@settings(max_examples=60)
@given(cases, st.integers(1, 3))
def test_every_row_counts_once_on_spark(case: Case, limit: int) -> None:
    with tempfile.TemporaryDirectory() as name, resting(case.pauses):
        folder = Path(name)
        files = case.written(folder)
        reader = SparkReader(case.stream(folder), folder, limit)
        for action, number in case.actions:
            match action:
                case "write":
                    files[number % len(files)].write(number)
                case "read":
                    reader.run(number % 4)
                case "commit" | "kill":
                    reader.open()
        for file in files:
            file.write(len(file.text))
        reader.open(ends=True)
        while reader.run(0):
            pass
        check(reader.rows, files)
