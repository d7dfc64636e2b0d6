"""Rows handed over to a writer of the user's own, an epoch at a time (see millrace.hosts.sinks.writer).

Rules:
- Rows are staged as files before their epoch is committed, and the files removed when the writer has taken them: what
  is there is to be handed over, again if need be.
- Whatever a writer raises is a `RunError` that names the query, the writer and the epoch. A writer that has failed is
  not used again.
- A checkpoint has a name, its run, so that the epochs of another checkpoint are not taken for repeated ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from millrace.connectors.native import HANDED
from millrace.errors import RequestError, RunError
from millrace.hosts.checkpoint.durable_files import replace_file, sync
from millrace.hosts.sinks.writer import Writer
from millrace.kernel.columns.user_functions import class_at
from millrace.plan.nodes.endpoints import Sink
from millrace.plan.nodes.query_network import Query

_METHODS = ("write", "close")
_RUN = "run"


@dataclass(frozen=True)
class WriterSpec:
    """What a writer is made of."""

    query: str
    place: str
    options: tuple[tuple[str, str], ...]
    schema: pa.Schema

    @classmethod
    def of(cls, query: Query, run: str) -> WriterSpec:
        """The writer of a query whose sink is one, in the run of that name."""
        given = query.sink.connector.options
        options = {**{name: value for name, value in given.items() if name != "writer"}, _RUN: run}
        return cls(query.name, given["writer"], tuple(sorted(options.items())), query.root.schema)

    def open(self) -> Writer:
        """The writer, made."""
        writer: Writer = class_at(self.place, f'the writer of query "{self.query}"')(
            dict(self.options), self.schema, self.query
        )
        return writer


def writer_queries(queries: Sequence[Query]) -> list[Query]:
    """The queries whose results go to a writer; refuses writers that cannot be used."""
    found = [query for query in queries if query.sink.connector.format == HANDED]
    for query in found:
        check_writer(query.sink)
    return found


def check_writer(sink: Sink) -> None:
    """Refuse a sink whose class is not named, not found, or no writer."""
    options = sink.connector.options
    if not options.get("writer"):
        raise RequestError(
            f'sink "{sink.name}" has no writer', hint="Write OPTIONS (writer 'package.module:Class') after its format."
        )
    if _RUN in options:
        raise RequestError(
            f'sink "{sink.name}" has an option "{_RUN}", which every writer is given',
            hint="Choose another name: this one is the name of the checkpoint.",
        )
    found = class_at(options["writer"], f'the writer of sink "{sink.name}"')
    lacks = [method for method in _METHODS if not callable(getattr(found, method, None))]
    if lacks or not isinstance(found, type):
        missing = f'has no method "{lacks[0]}"' if lacks else "is no class"
        raise RequestError(
            f'the writer of sink "{sink.name}", {options["writer"]}, {missing}',
            hint="Give a class with the methods of millrace.Writer: write and close.",
        )


def run_name(folder: Path, *, fresh: bool) -> str:
    """The name of the checkpoint in a folder; a fresh one is given its name."""
    path = folder / _RUN
    if fresh or not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, uuid4().hex)
    return path.read_text()


class Writers:
    """Writers that stay open from epoch to epoch."""

    def __init__(self) -> None:
        self._open: dict[WriterSpec, Writer] = {}

    def write(self, spec: WriterSpec, epoch: int, batches: Iterator[pa.RecordBatch]) -> None:
        """Give an epoch to a writer, made if need be."""
        # A user's code may raise anything.
        try:
            if spec not in self._open:
                self._open[spec] = spec.open()
            self._open[spec].write(epoch, batches)
        except Exception as error:
            self._close(spec)
            raise RunError(
                f'the writer "{spec.place}" of query "{spec.query}" failed in epoch {epoch}: '
                f"{type(error).__name__}: {error}",
                hint="Start again on the same checkpoint, and the epoch is given to it again.",
            ) from error

    def keep(self, specs: Collection[WriterSpec]) -> None:
        """Close all others."""
        for spec in [each for each in self._open if each not in specs]:
            self._close(spec)

    def _close(self, spec: WriterSpec) -> None:
        # All that counts has been written, or will be written again.
        with suppress(Exception):
            if (writer := self._open.pop(spec, None)) is not None:
                writer.close()


def write_staged(path: Path, rows: pa.Table, note: bytes = b"") -> None:
    """Stage rows as a file that is on disk, with a note of what it is."""
    schema = rows.schema.with_metadata({"millrace": note})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write(rows.replace_schema_metadata(schema.metadata))
    sync(path)


def staged_as(path: Path) -> tuple[pa.Schema, bytes]:
    """The columns of a staged file, and its note."""
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.schema.remove_metadata(), bytes(reader.schema.metadata[b"millrace"])


def hand_over(spec: WriterSpec, epoch: int, staged: Sequence[Path], writers: Writers | None = None) -> int:
    """Give the staged rows of an epoch to a writer, remove their files, and say how many rows they were.

    Without `writers` the writer is opened for this epoch alone.
    """
    rows = sum(map(_count, staged))
    if rows:
        using = writers or Writers()
        using.write(spec, epoch, _batches(staged, spec.schema))
        if writers is None:
            using.keep(())
    for path in staged:
        path.unlink(missing_ok=True)
    return rows


def _count(path: Path) -> int:
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        return sum(reader.get_batch(number).num_rows for number in range(reader.num_record_batches))


def _batches(staged: Sequence[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of staged files in the columns of their query."""
    for path in staged:
        # Read, not mapped: a writer may keep what it is given, and the file goes.
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                if batch.num_rows:
                    yield batch.replace_schema_metadata(None).cast(schema)
