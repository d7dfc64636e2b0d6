"""Where results go on the hosts that run in this process: memory, console, or files in epochs.

Rules:
- Rows for a file sink gather until the epoch ends, then become one hidden file each; `publish` gives it its name.
- The name depends on the epoch alone, so that publishing again changes nothing.
- A folder that holds results of another run is refused, or cleared when the sink says mode 'overwrite'.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from millrace.connectors import FORMATS, extension, write_file
from millrace.errors import RequestError
from millrace.hosts.durable import make_folder
from millrace.hosts.report import Listeners
from millrace.kernel.elements import Batch, user_table
from millrace.plan.nodes import Connector, Network, Query, Sink, Stream

PLAIN = ("memory", "console")
_RESULTS = re.compile(r"part-\d{8}(-\d{4})?\.\w+")


def sink_folder(sink: Sink) -> Path:
    """The folder of a file sink."""
    path = sink.connector.options.get("path")
    if not path:
        raise RequestError(f'sink "{sink.name}" has no path', hint="Write OPTIONS (path 'folder') after its format.")
    return Path(path)


def file_sinks(queries: Sequence[Query]) -> dict[str, Sink]:
    """The queries that write files, with their sinks; refuses sinks that cannot be written."""
    found: dict[str, Sink] = {}
    for query in queries:
        form = query.sink.connector.format
        if form in PLAIN:
            continue
        if form not in FORMATS:
            known = ", ".join([*FORMATS, *PLAIN])
            raise RequestError(f'sink "{query.sink.name}" has no format "{form}"', hint=f"The formats are {known}.")
        clash = next((name for name, sink in found.items() if sink_folder(sink) == sink_folder(query.sink)), None)
        if clash is not None:
            raise RequestError(
                f'queries "{clash}" and "{query.name}" write to one folder', hint="Give each query a sink of its own."
            )
        _keep_apart(query.sink, Network(tuple(queries)).streams())
        found[query.name] = query.sink
    return found


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
    folder = sink_folder(sink)
    make_folder(folder, f'the path of sink "{sink.name}"')
    old = sorted(path for path in folder.glob("part-*") if _RESULTS.fullmatch(path.name))
    if fresh and old:
        if sink.connector.options.get("mode") != "overwrite":
            raise RequestError(
                f'the folder "{folder}" of sink "{sink.name}" holds results of another run',
                hint="Go on with that run's --checkpoint, empty the folder, or declare the sink with mode 'overwrite'.",
            )
        for path in old:
            path.unlink()
    return folder


def kept_in_memory(queries: Sequence[Query]) -> dict[str, list[pa.Table]]:
    """A place for the results of each query with a memory sink."""
    return {query.name: [] for query in queries if query.sink.connector.format == "memory"}


class Outputs:
    """The sinks of a network's queries."""

    def __init__(self, queries: Sequence[Query], listeners: Listeners, *, fresh: bool) -> None:
        self.memory = kept_in_memory(queries)
        self._listeners = listeners
        self._gathered: dict[str, list[pa.Table]] = {}
        self._files = file_sinks(queries)
        self._folders = {name: prepare_folder(sink, fresh=fresh) for name, sink in self._files.items()}

    def deliver(self, results: Mapping[str, Sequence[Batch]]) -> None:
        """Take results over from the kernel."""
        for name, batches in results.items():
            rows = user_table(batches)
            if name in self._files:
                self._gathered.setdefault(name, []).append(rows)
            elif name in self.memory:
                self.memory[name].append(rows)
            self._listeners.results(name, rows)

    def stage(self, epoch: int) -> dict[str, str]:
        """Write the gathered rows of the epoch as hidden files: hidden path -> final path."""
        staged = {}
        for name, tables in self._gathered.items():
            connector = self._files[name].connector
            final = self._folders[name] / f"part-{epoch:08d}{_dotted(connector)}"
            hidden = final.with_name(f".{final.name}")
            write_file(hidden, connector.format, pa.concat_tables(tables), _format_options(connector))
            staged[str(hidden)] = str(final)
        self._gathered.clear()
        return staged

    def sweep(self, keep: Mapping[str, str]) -> None:
        """Remove hidden files that no committed epoch knows."""
        for folder in self._folders.values():
            for path in folder.glob(".part-*"):
                if str(path) not in keep:
                    path.unlink()


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
