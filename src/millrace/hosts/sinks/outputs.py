"""Results of the hosts that run in this process: at once to memory and listeners, in epochs to files and writers.

Rules:
- Rows for files or for a writer are gathered until the epoch ends. Before it is committed, `stage` writes them as
  hidden files; afterwards `publish` gives files their names and writers their rows, and may be repeated.
- With a checkpoint, staged files and their folders are synced before the epoch is committed, and the folders again
  when the files have their names: what a record names survives a power cut.
- The name of a file depends on the epoch alone, so that publishing again changes nothing.
- Writers are opened with the first rows they are given, and closed when their query has left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pyarrow as pa

from millrace.connectors.files.file_options import extension
from millrace.connectors.files.file_writer import write_file
from millrace.connectors.native import PLAIN_SINKS
from millrace.connectors.sink_index import has_writer
from millrace.hosts.checkpoint.durable_files import make_folder, read_arrow, sync_all
from millrace.hosts.checkpoint.file_system import files
from millrace.hosts.report import Listeners
from millrace.hosts.sinks.sinks import Sinks, sink_folder
from millrace.hosts.sinks.writers import (
    OpenWriters,
    WriterSpec,
    reached_now,
    run_name,
    stage_rows,
    write_epoch,
    writer_of,
)
from millrace.kernel.elements import Batch, user_table
from millrace.plan.nodes.endpoints import Sink
from millrace.plan.nodes.query_network import Query

Staged = Mapping[str, str]
"""By the path of a staged file the name that it gets when it is published, or the writer that it is for."""

_FOR_WRITER = "writer of "
_STAGED = "staged"


@dataclass(frozen=True)
class _Files:
    """A query that writes files, and the rows gathered for it in this epoch."""

    sink: Sink
    gathered: list[pa.Table] = field(default_factory=list)

    def write(self, epoch: int, rows: pa.Table) -> tuple[Path, str, str]:
        connector = self.sink.connector
        end = extension(connector.format)
        final = sink_folder(self.sink) / f"part-{epoch:08d}{end if end.startswith('.') else f'.{end}'}"
        hidden = final.with_name(f".{final.name}")
        write_file(hidden, connector.format, rows, file_options(self.sink), files().create)
        return hidden, str(final), ""


@dataclass(frozen=True)
class _WriterRows:
    """A query whose sink is a writer, and the rows gathered for it in this epoch; they are staged in a folder."""

    spec: WriterSpec
    folder: Path
    gathered: list[pa.Table] = field(default_factory=list)

    def write(self, epoch: int, rows: pa.Table) -> tuple[Path, str, str]:
        spec = self.spec
        path = self.folder / f"{quote(spec.query, safe='')}-{epoch:08d}.arrow"
        return path, f"{_FOR_WRITER}{spec.query}", stage_rows(path, spec, rows)


class Outputs:
    """What a run in this process delivers, and where; rows for writers are staged in the checkpoint."""

    def __init__(
        self,
        queries: Sequence[Query],
        listeners: Listeners,
        *,
        fresh: bool,
        checkpoint: Path | None = None,
        epoch: int | None = None,
        kept: Mapping[str, str] | None = None,
    ) -> None:
        self._listeners = listeners
        self._checkpoint, self._fresh = checkpoint, fresh
        self._digests: dict[str, str] = dict(kept or {})
        """Those of rows that are staged for writers, by their path in the checkpoint."""
        self._temporary: TemporaryDirectory[str] | None = None
        self._staging: tuple[Path, str] | None = None
        self._writers = OpenWriters()
        self._reached: dict[str, WriterSpec] = {}
        """By the name that a query had in the run before: the writer by which it goes on."""
        self._gathering: dict[str, _Files | _WriterRows] = {}
        self._leaving: list[_Files | _WriterRows] = []
        self.sinks = Sinks(queries, fresh=fresh, checkpoint=checkpoint, epoch=epoch, kept=kept)
        self.sinks.clear()
        self._gathering = self._gatherers(queries, {})

    def prepare(self, queries: Sequence[Query], renamed: Mapping[str, str] | None = None) -> Callable[[], None]:
        """Check the sinks of a changed network; the call that it returns takes them into use.

        What a query that leaves has gathered is still written. A query that is `renamed` (see `Sinks.prepare`) goes on
        in its folder.
        """
        take_sinks = self.sinks.prepare(queries, renamed or {})
        gathering = self._gatherers(queries, renamed or {})

        def take_into_use() -> None:
            self._reached = {}
            kept = {id(each.gathered) for each in gathering.values()}
            self._leaving += [each for each in self._gathering.values() if id(each.gathered) not in kept]
            self._gathering = gathering
            take_sinks()

        return take_into_use

    def _gatherers(self, queries: Sequence[Query], renamed: Mapping[str, str]) -> dict[str, _Files | _WriterRows]:
        """Where the rows of each query are gathered; with what is gathered already where the query goes on."""
        found: dict[str, _Files | _WriterRows] = {}
        for query in queries:
            before = self._gathering.get(renamed.get(query.name, query.name))
            if has_writer(query.sink.connector):
                folder, run = self._opened_staging()
                spec = WriterSpec.of(query, run)
                same = isinstance(before, _WriterRows) and before.spec == spec
                found[query.name] = before if before is not None and same else _WriterRows(spec, folder)
            elif query.sink.connector.format not in PLAIN_SINKS:
                new = _Files(query.sink)
                same = isinstance(before, _Files) and _folder(before) == _folder(new)
                found[query.name] = replace(new, gathered=before.gathered) if before is not None and same else new
        return found

    def _opened_staging(self) -> tuple[Path, str]:
        """The folder for rows that wait for writers, and the name of the run; made when the first writer needs them."""
        if self._staging is None:
            if self._checkpoint is None:
                self._temporary = TemporaryDirectory(prefix="millrace-staged-")
            home = self._checkpoint or Path(self._temporary.name if self._temporary else "")
            folder = make_folder(home / _STAGED, "the folder of staged rows")
            self._staging = folder, run_name(home, fresh=self._fresh)
        return self._staging

    def reach(self, queries: Sequence[Query], renamed: Mapping[str, str]) -> None:
        """Reach the stores of a run that is resumed as its queries say now: their addresses and users may be others."""
        self._reached = reached_now(queries, renamed, lambda: self._opened_staging()[1])

    def deliver(self, results: Mapping[str, Sequence[Batch]]) -> None:
        """Take over results of the kernel."""
        for name, batches in results.items():
            rows = user_table(batches)
            if name in self._gathering:
                self._gathering[name].gathered.append(rows)
            elif name in self.sinks.memory:
                self.sinks.memory[name].append(rows)
            self.sinks.answers.put(name, batches)
            self._listeners.results(name, rows)

    def stage(self, epoch: int) -> dict[str, str]:
        """Write the gathered rows of an epoch as hidden files; with a checkpoint they are on disk when this returns."""
        staged: dict[str, str] = {}
        self._digests.clear()
        for each in (*self._leaving, *self._gathering.values()):
            if any(map(len, each.gathered)):
                path, final, told = each.write(epoch, pa.concat_tables(each.gathered))
                # A query that replaces another of its name has no rows before the next epoch.
                assert str(path) not in staged
                staged[str(path)] = final
                if told:
                    self._digests[f"{_STAGED}/{path.name}"] = told
            each.gathered.clear()
        self._leaving.clear()
        answers = self.sinks.answers.stage(epoch)
        if self._checkpoint is not None:
            sync_all(map(Path, staged), answers)
        return staged

    def kept(self) -> dict[str, str]:
        """The digests of the files in the checkpoint that the last staged epoch is made of, by path."""
        return {**self.sinks.answers.kept(), **self._digests}

    def publish(self, staged: Staged) -> None:
        """Give hidden files their names, and writers their rows; what has been published already stays."""
        for hidden, final in staged.items():
            if not final.startswith(_FOR_WRITER) and Path(hidden).exists():
                files().rename(Path(hidden), Path(final))
        if self._checkpoint is not None:
            # Also of what was published before: a power cut may have come before its names were safe.
            sync_all((), {Path(final).parent for final in staged.values() if not final.startswith(_FOR_WRITER)})
        for name in _for_writers(staged):
            # A checkpoint may have been moved since.
            path = self._opened_staging()[0] / name
            if path.exists():
                rows = read_arrow(path, self._digests.get(f"{_STAGED}/{name}"), mapped=True)
                spec = writer_of(rows)
                spec = spec.reached_as(self._reached.get(spec.query))
                write_epoch(spec, int(path.stem.rpartition("-")[2]), [path], self._writers)
                files().remove(path)
        self._writers.keep([each.spec for each in self._gathering.values() if isinstance(each, _WriterRows)])
        self.sinks.answers.sweep()

    def sweep(self, keep: Staged) -> None:
        """Remove hidden files that no committed epoch knows."""
        for each in self._gathering.values():
            for path in sink_folder(each.sink).glob(".part-*") if isinstance(each, _Files) else ():
                if str(path) not in keep:
                    files().remove(path)
        for path in (self._checkpoint / _STAGED).glob("*.arrow") if self._checkpoint is not None else ():
            if path.name not in _for_writers(keep):
                files().remove(path)

    def close(self) -> None:
        """Close the writers, and say that no answer will follow."""
        self._writers.keep(())
        if self._temporary is not None:
            self._temporary.cleanup()
        self.sinks.answers.close()


def file_options(sink: Sink) -> dict[str, str]:
    """The options of a file sink's format."""
    return {key: value for key, value in sink.connector.options.items() if key not in ("path", "mode")}


def _folder(files: _Files) -> Path:
    return sink_folder(files.sink).resolve()


def _for_writers(staged: Staged) -> list[str]:
    """The names of the staged files that are for writers."""
    return [Path(path).name for path, final in staged.items() if final.startswith(_FOR_WRITER)]
