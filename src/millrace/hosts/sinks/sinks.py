"""The sinks of a network's queries, as every host checks them before a run or a change begins.

Rules:
- A sink is memory or console, a folder of files, a writer of the user's own, or one that Spark writes.
- No two queries write to one folder, and none to a folder that a stream reads.
- A folder that holds results of another run is refused, or cleared if the sink says mode 'overwrite'. A query that
  joins a running network needs a folder without results, whatever its mode: they may be this run's own.
- A folder that holds results of an epoch after the last in the checkpoint is refused: the checkpoint is an old copy.
- `prepare` checks the sinks of a changed network and touches nothing; the call that it returns takes them into use.
- The latest answers of update queries are kept beside the results, wherever these go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import digits

from millrace.connectors.files.file_options import check_write_options
from millrace.connectors.files.path_patterns import reads
from millrace.connectors.native import PLAIN_SINKS, is_native, is_native_sink, refuse_sink
from millrace.connectors.sink_index import has_writer
from millrace.errors import CheckpointError, RequestError
from millrace.hosts.answers.run_answers import RunAnswers
from millrace.hosts.checkpoint.durable_files import make_folder, sync_all
from millrace.hosts.checkpoint.file_system import files
from millrace.hosts.sinks.kept_rows import KeptRows, kept_rows
from millrace.hosts.sinks.writers import check_stores, check_writer
from millrace.plan.nodes.endpoints import Sink, Stream
from millrace.plan.nodes.query_network import Query, QueryNetwork
from millrace.secrets import has_reference, resolved

_RESULTS = re.compile(r"part-\d{8}(-\d{4})?\.\w+")
_RESULT_NAMES = ([*"part-", *[digits] * 8], [*"part-", *[digits] * 8, "-", *[digits] * 4])
"""The same names without their ends, as `reads` takes them."""


class Sinks:
    """The queries of a run and their sinks; `epoch` is the last one that is committed in the checkpoint, and `kept` has
    the digests of its files with latest answers.

    `fresh` says that the run begins anew, `relayed` that the host has ways to the sinks that Spark writes, `pending`
    that an epoch after the last may have reached the sinks, and will be written again.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        *,
        fresh: bool,
        checkpoint: Path | None = None,
        epoch: int | None = None,
        kept: Mapping[str, str] | None = None,
        relayed: bool = False,
        pending: bool = False,
    ) -> None:
        self.queries = {query.name: query for query in queries}
        self.files = file_sinks(queries, relayed=relayed)
        """The sinks of the queries that write files."""
        if fresh:
            # A run that is resumed asks the stores of its queries as they are now: see `reached_now`.
            check_stores(queries)
        self.memory = _memory(queries)
        """The last results of queries with a memory sink; they stay until another query has their name."""
        self._fresh, self._relayed = fresh, relayed
        for sink in self.files.values():
            _make_folder(sink)
            if fresh:
                _refuse_results(sink)
            elif checkpoint is not None:
                _refuse_ahead(sink, (-1 if epoch is None else epoch) + pending, checkpoint)
        self.answers = RunAnswers(queries, checkpoint, kept, all_put=not relayed)

    def clear(self) -> None:
        """Remove what is in the folders of a run that begins anew: their sinks say mode 'overwrite'."""
        if self._fresh:
            for sink in self.files.values():
                for path in results_in(sink_folder(sink)):
                    files().remove(path)
            sync_all((), map(sink_folder, self.files.values()))
            self._fresh = False

    def prepare(self, queries: Sequence[Query], renamed: Mapping[str, str]) -> Callable[[], None]:
        """Check the sinks of a changed network; the call that it returns takes them into use.

        `renamed` says by a query's name what it was called before.
        """
        files = file_sinks(queries, relayed=self._relayed)
        check_stores([query for query in queries if self.queries.get(query.name) != query])
        for name, sink in files.items():
            if not self.goes_on(renamed.get(name, name), sink):
                self._check_joining(name, sink)
            _make_folder(sink)
        memory = _memory([query for query in queries if not self._computes_the_same(query)])
        take_answers = self.answers.prepare(queries, renamed)

        def take_into_use() -> None:
            self.queries, self.files = {query.name: query for query in queries}, files
            self.memory.update(memory)
            take_answers()

        return take_into_use

    def goes_on(self, name: str, sink: Sink) -> bool:
        """True if the query of this name writes to the sink's folder already, in whatever format."""
        return name in self.files and _place(self.files[name]) == _place(sink)

    def _computes_the_same(self, query: Query) -> bool:
        before = self.queries.get(query.name)
        return before is not None and before.root == query.root

    def _check_joining(self, name: str, sink: Sink) -> None:
        for other, taken in self.files.items():
            if other != name and _place(taken) == _place(sink):
                raise _one_folder(other, name)
        _refuse_any_results(sink)


def sink_folder(sink: Sink) -> Path:
    """The folder of a file sink."""
    path = sink.connector.options.get("path")
    if not path:
        raise RequestError(f'sink "{sink.name}" has no path', hint="Write OPTIONS (path 'folder') after its format.")
    if has_reference(path):
        raise RequestError(
            f'the path of sink "{sink.name}" contains a reference to a secret',
            hint="Only writers and Spark's own sinks take references.",
        )
    return Path(path)


def _place(sink: Sink) -> Path:
    return sink_folder(sink).resolve()


def results_in(folder: Path) -> list[Path]:
    """The result files in a folder, by name."""
    return sorted(path for path in folder.glob("part-*") if _RESULTS.fullmatch(path.name))


def file_sinks(queries: Sequence[Query], *, relayed: bool = False) -> dict[str, Sink]:
    """The queries that write files, with their sinks; refuses sinks that cannot be written.

    Sinks that Spark writes are refused unless they are `relayed`; they are checked, but not returned.
    """
    found: dict[str, Sink] = {}
    takers: dict[Path, str] = {}
    streams = QueryNetwork(tuple(queries)).streams()
    for query in queries:
        if query.sink.connector.format in PLAIN_SINKS:
            kept_rows(query.sink)
            continue
        if has_writer(query.sink.connector):
            check_writer(query)
            continue
        if is_native_sink(query.sink):
            if not relayed:
                raise refuse_sink(query.sink)
            resolved(query.sink.connector.options, f'sink "{query.sink.name}"')
            if "path" not in query.sink.connector.options:
                continue
        else:
            check_write_options(query.sink.connector.format, query.sink.connector.options)
        taker = takers.setdefault(_place(query.sink), query.name)
        if taker != query.name:
            raise _one_folder(taker, query.name)
        _keep_apart(query.sink, streams)
        found[query.name] = query.sink
    return {name: sink for name, sink in found.items() if not is_native_sink(sink)}


def check_sinks(
    queries: Sequence[Query], before: Sequence[Query] | None, renamed: Mapping[str, str], *, relayed: bool = False
) -> None:
    """Refuse the sinks that a run would refuse; nothing is touched.

    `before` are the queries that the run goes on from, None if it begins anew; `renamed` says what each was called.
    """
    folders = {name: _place(sink) for name, sink in file_sinks(before or (), relayed=relayed).items()}
    for name, sink in file_sinks(queries, relayed=relayed).items():
        if before is None:
            _refuse_results(sink)
        elif folders.get(renamed.get(name, name)) != _place(sink):
            _refuse_any_results(sink)


def _make_folder(sink: Sink) -> None:
    make_folder(sink_folder(sink), f'the path of sink "{sink.name}"')


def _one_folder(one: str, other: str) -> RequestError:
    return RequestError(
        f'queries "{one}" and "{other}" write to one folder',
        hint="Give each query a sink of its own, or unite the queries with UNION.",
    )


def _keep_apart(sink: Sink, streams: Sequence[Stream]) -> None:
    """Refuse a sink whose results a stream would read."""
    end = f".{sink.connector.format}"
    names = None if is_native_sink(sink) else [[*each, *end] for each in _RESULT_NAMES]
    place = _place(sink)
    for stream in streams:
        if any(reads(path, place, names) for path in _paths(stream)):
            raise RequestError(
                f'sink "{sink.name}" writes to the folder that stream "{stream.name}" reads',
                hint="Give the sink a folder of its own: its results would be read as input.",
            )


def _paths(stream: Stream) -> tuple[str, ...]:
    """The paths of the files that a stream reads; Spark also reads what is in the folders that a pattern matches."""
    path = stream.connector.options.get("path", "")
    if not path or not is_native(stream.connector):
        return (path,) if path else ()
    path = re.sub(r"\{[^}]*\}", "*", re.sub(r"^file:/+", "/", path))
    return path, f"{path}/*"


def _refuse_results(sink: Sink) -> None:
    folder = sink_folder(sink)
    if results_in(folder) and sink.connector.options.get("mode") != "overwrite":
        raise RequestError(
            f'the folder "{folder}" of sink "{sink.name}" holds results of another run',
            hint="Go on with that run's --checkpoint, empty the folder, or declare the sink with mode 'overwrite'.",
        )


def _refuse_ahead(sink: Sink, epoch: int, checkpoint: Path) -> None:
    """Refuse a folder with results that are later than the checkpoint: their rows would be there twice."""
    newest = max((int(path.name[5:13]) for path in results_in(sink_folder(sink))), default=-1)
    if newest > epoch:
        raise CheckpointError(
            f'the folder "{sink_folder(sink)}" of sink "{sink.name}" holds results of epoch {newest}, '
            f'and the checkpoint "{checkpoint}" is at epoch {epoch}',
            hint="The checkpoint is an old copy: go on with the newest one. To go on from this one, remove the result "
            f"files whose number is greater than {max(epoch, 0):08d}; their rows are made again.",
        )


def _refuse_any_results(sink: Sink) -> None:
    if results_in(sink_folder(sink)):
        raise RequestError(
            f'the folder "{sink_folder(sink)}" of sink "{sink.name}" holds results already',
            hint="Give a query that joins a running network a folder of its own.",
        )


def _memory(queries: Sequence[Query]) -> dict[str, KeptRows]:
    """A place for the results of each query with a memory sink."""
    return {query.name: kept_rows(query.sink) for query in queries if query.sink.connector.format == "memory"}
