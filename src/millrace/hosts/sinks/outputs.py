"""Where results go on the hosts that run in this process: memory, console, files or writers in epochs.

Rules:
- Rows for a file sink gather until the epoch ends, then become one hidden file each; `publish` gives it its name.
- The name depends on the epoch alone, so that publishing again changes nothing.
- Rows for a writer of the user's own gather and are staged likewise; `publish` hands them over (see handing.py).
- A folder that holds results of another run is refused, or cleared when the sink says mode 'overwrite'.
- The latest answers of update queries stand beside all this, wherever their results go (see standing.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from millrace.connectors.files.file_options import extension
from millrace.connectors.files.file_writer import write_file
from millrace.connectors.native import HANDED, SHOWN, is_native_sink, refuse_sink
from millrace.errors import RequestError
from millrace.hosts.answers.run_answers import RunAnswers
from millrace.hosts.checkpoint.durable_files import make_folder
from millrace.hosts.report import Listeners
from millrace.hosts.sinks.writer_protocol import check_writer
from millrace.hosts.sinks.writer_sinks import WriterSinks, is_for_writer
from millrace.kernel.elements import Batch, user_table
from millrace.plan.nodes.endpoints import Connector, Sink, Stream
from millrace.plan.nodes.query_network import Network, Query

PLAIN = SHOWN
_RESULTS = re.compile(r"part-\d{8}(-\d{4})?\.\w+")


def sink_folder(sink: Sink) -> Path:
    """The folder of a file sink."""
    path = sink.connector.options.get("path")
    if not path:
        raise RequestError(f'sink "{sink.name}" has no path', hint="Write OPTIONS (path 'folder') after its format.")
    return Path(path)


def file_sinks(queries: Sequence[Query], *, relayed: bool = False) -> dict[str, Sink]:
    """The queries that write files, with their sinks; refuses sinks that cannot be written.

    `relayed` says that the host also has ways to the sinks that Spark writes; they are checked, but not among these.
    """
    found: dict[str, Sink] = {}
    for query in queries:
        if query.sink.connector.format in PLAIN:
            continue
        if query.sink.connector.format == HANDED:
            check_writer(query.sink)
            continue
        if is_native_sink(query.sink):
            if not relayed:
                raise refuse_sink(query.sink)
            if "path" not in query.sink.connector.options:
                continue
        for name, sink in found.items():
            if sink_folder(sink).resolve() == sink_folder(query.sink).resolve():
                raise _one_folder(name, query.name)
        _keep_apart(query.sink, Network(tuple(queries)).streams())
        found[query.name] = query.sink
    return {name: sink for name, sink in found.items() if not is_native_sink(sink)}


def _one_folder(one: str, other: str) -> RequestError:
    return RequestError(f'queries "{one}" and "{other}" write to one folder', hint="Give each query a sink of its own.")


def _keep_apart(sink: Sink, streams: Sequence[Stream]) -> None:
    """Refuse a sink that writes where a stream reads."""
    for stream in streams:
        path = stream.connector.options.get("path")
        if path and Path(path).resolve() == sink_folder(sink).resolve():
            raise RequestError(
                f'sink "{sink.name}" writes to the folder that stream "{stream.name}" reads',
                hint="Give the sink a folder of its own: its results would be read as input.",
            )


def prepare_folder(sink: Sink, *, fresh: bool) -> Path:
    """The sink's folder, made if need be; a fresh run wants it without results."""
    folder = checked_folder(sink, fresh=fresh)
    for path in results_in(folder) if fresh else ():
        path.unlink()
    return folder


def checked_folder(sink: Sink, *, fresh: bool) -> Path:
    """The sink's folder, made if need be; refuses results in it that a fresh run is not told to overwrite."""
    folder = sink_folder(sink)
    make_folder(folder, f'the path of sink "{sink.name}"')
    if fresh:
        _refuse_results(sink)
    return folder


def joining_folder(sink: Sink) -> Path:
    """The folder of a query that joins others: without results, whatever its mode, for they may be this run's own."""
    _refuse_any_results(sink)
    return checked_folder(sink, fresh=True)


def check_sinks(
    queries: Sequence[Query], before: Sequence[Query] | None, renamed: Mapping[str, str], *, relayed: bool = False
) -> None:
    """Refuse the sinks that a run would refuse; nothing is touched.

    `before` are the queries that the run goes on from, None if it begins, and `renamed` says what each was called.
    """
    folders = {name: sink_folder(sink).resolve() for name, sink in file_sinks(before or (), relayed=relayed).items()}
    for name, sink in file_sinks(queries, relayed=relayed).items():
        if before is None:
            _refuse_results(sink)
        elif folders.get(renamed.get(name, name)) != sink_folder(sink).resolve():
            _refuse_any_results(sink)


def _refuse_results(sink: Sink) -> None:
    folder = sink_folder(sink)
    if results_in(folder) and sink.connector.options.get("mode") != "overwrite":
        raise RequestError(
            f'the folder "{folder}" of sink "{sink.name}" holds results of another run',
            hint="Go on with that run's --checkpoint, empty the folder, or declare the sink with mode 'overwrite'.",
        )


def _refuse_any_results(sink: Sink) -> None:
    if results_in(sink_folder(sink)):
        raise RequestError(
            f'the folder "{sink_folder(sink)}" of sink "{sink.name}" holds results already',
            hint="Give a query that joins a running network a folder of its own.",
        )


def results_in(folder: Path) -> list[Path]:
    """The result files in a folder, by name."""
    return sorted(path for path in folder.glob("part-*") if _RESULTS.fullmatch(path.name))


def kept_in_memory(queries: Sequence[Query]) -> dict[str, list[pa.Table]]:
    """A place for the results of each query with a memory sink."""
    return {query.name: [] for query in queries if query.sink.connector.format == "memory"}


@dataclass(frozen=True)
class _Files:
    """The folder of a query, and the rows gathered for it in this epoch."""

    sink: Sink
    folder: Path
    gathered: list[pa.Table] = field(default_factory=list)

    def stage(self, epoch: int) -> dict[str, str]:
        """Write the gathered rows as a hidden file, if there are any: hidden path -> final path."""
        if not self.gathered:
            return {}
        connector = self.sink.connector
        final = self.folder / f"part-{epoch:08d}{_dotted(connector)}"
        hidden = final.with_name(f".{final.name}")
        write_file(hidden, connector.format, pa.concat_tables(self.gathered), _format_options(connector))
        self.gathered.clear()
        return {str(hidden): str(final)}


class Outputs:
    """The sinks of a network's queries."""

    def __init__(
        self,
        queries: Sequence[Query],
        listeners: Listeners,
        *,
        fresh: bool,
        checkpoint: Path | None = None,
        epoch: int | None = None,
    ) -> None:
        self.memory = kept_in_memory(queries)
        self._queries = {query.name: query for query in queries}
        self._listeners = listeners
        self._files = {
            name: _Files(sink, prepare_folder(sink, fresh=fresh)) for name, sink in file_sinks(queries).items()
        }
        self._leaving: list[_Files] = []
        self._writers = WriterSinks(queries, checkpoint, fresh=fresh)
        self.answers = RunAnswers(queries, checkpoint, epoch, all_put=True)

    def prepare(self, queries: Sequence[Query], renamed: Mapping[str, str] | None = None) -> Callable[[], None]:
        """Check the sinks of a changed network; the call it gives takes them into use.

        What a query that left has gathered is still written, and what it has in memory stays until its name is used
        again. A query that is `renamed`, by its name now the one before, goes on in its folder.
        """
        sinks, was = file_sinks(queries), renamed or {}
        kept = {
            name: replace(self._files[was.get(name, name)], sink=sink)
            for name, sink in sinks.items()
            if self._kept(was.get(name, name), sink)
        }
        new = {name: _Files(sink, self._new_folder(name, sink)) for name, sink in sinks.items() if name not in kept}
        memory = kept_in_memory([query for query in queries if not self._same(query)])
        take_writers, take_answers = self._writers.prepare(queries), self.answers.prepare(queries, was)

        def take_into_use() -> None:
            going_on = {was.get(name, name) for name in kept}
            self._leaving += [files for name, files in self._files.items() if name not in going_on]
            self._files = {**kept, **new}
            self._queries = {query.name: query for query in queries}
            self.memory.update(memory)
            take_writers()
            take_answers()

        return take_into_use

    def _same(self, query: Query) -> bool:
        before = self._queries.get(query.name)
        return before is not None and before.root == query.root

    def _kept(self, name: str, sink: Sink) -> bool:
        """Whether a query writes to a folder already, in whatever form."""
        return name in self._files and self._files[name].folder.resolve() == sink_folder(sink).resolve()

    def _new_folder(self, name: str, sink: Sink) -> Path:
        """The folder of a query that joins: without results, whatever its mode, for they may be this run's own."""
        for other, files in self._files.items():
            if other != name and files.folder.resolve() == sink_folder(sink).resolve():
                raise _one_folder(other, name)
        return joining_folder(sink)

    def deliver(self, results: Mapping[str, Sequence[Batch]]) -> None:
        """Take results over from the kernel."""
        for name, batches in results.items():
            rows = user_table(batches)
            if name in self._files:
                self._files[name].gathered.append(rows)
            elif self._writers.takes(name):
                self._writers.gather(name, rows)
            elif name in self.memory:
                self.memory[name].append(rows)
            self.answers.put(name, batches)
            self._listeners.results(name, rows)

    def stage(self, epoch: int) -> dict[str, str]:
        """Write the gathered rows of the epoch as hidden files: hidden path -> final path."""
        staged: dict[str, str] = {}
        for files in (*self._files.values(), *self._leaving):
            staged |= files.stage(epoch)
        self._leaving.clear()
        self.answers.stage(epoch)
        return staged | self._writers.stage(epoch)

    def publish(self, staged: Mapping[str, str]) -> None:
        """Give hidden files their names, and writers their rows; what has been done already stays."""
        publish({path: final for path, final in staged.items() if not is_for_writer(final)})
        self._writers.hand_over(staged)
        self.answers.sweep()

    def sweep(self, keep: Mapping[str, str]) -> None:
        """Remove hidden files that no committed epoch knows."""
        for files in self._files.values():
            for path in files.folder.glob(".part-*"):
                if str(path) not in keep:
                    path.unlink()
        self._writers.sweep(keep)

    def close(self) -> None:
        """Let go of what is held outside this process; no answer will follow."""
        self._writers.close()
        self.answers.close()


def publish(staged: Mapping[str, str]) -> None:
    """Give hidden files their names; those that have theirs already stay."""
    for hidden, final in staged.items():
        if Path(hidden).exists():
            Path(hidden).replace(final)


def _dotted(connector: Connector) -> str:
    end = extension(connector.format)
    return end if end.startswith(".") else f".{end}"


def _format_options(connector: Connector) -> dict[str, str]:
    return {key: value for key, value in connector.options.items() if key not in ("path", "mode")}
