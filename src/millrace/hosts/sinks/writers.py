"""Results into any store, each once: the protocol of a sink that a user writes, and the rows staged for it.

Rules:
- An epoch is a checkpoint of the local host or a micro-batch of Spark. Epochs only grow; one without rows is left out.
- Rows are staged as files before their epoch is committed; such a file says itself which writer it is for, as its
  query may have left, or changed, by then. After a kill, or an error, the last epoch is written again with the same
  rows.
- One process calls a writer, one epoch after the other.
- Whatever a writer raises is a `RunError` that names the query, the writer and the epoch. A writer that has failed is
  not used again.
- A checkpoint has a name, its run, so that the epochs of another checkpoint are not taken for repeated ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pyarrow as pa

from millrace.connectors.sink_index import PYTHON_SINK, has_writer, writer_place
from millrace.errors import MillraceError, RequestError, RunError
from millrace.hosts.checkpoint.durable_files import make_folder, note_of, read_record, write_arrow, write_record
from millrace.kernel.columns.user_functions import class_at
from millrace.plan.nodes.query_network import Query
from millrace.plan.updates.stored_key import stored_key
from millrace.secrets import resolved

_METHODS = ("write", "close")
_RUN = "run"
_KEY = "results_key"
_GIVEN = {_RUN: "the name of the checkpoint", _KEY: "the columns that tell results apart"}
"""What every writer is given beside the options of its sink."""


class Writer(Protocol):
    """Takes the rows of one query, an epoch at a time.

    Name such a class in SQL, `CREATE SINK s TO python OPTIONS (writer 'package.module:Class', table 'counts')`, or in
    Python, `net.query("q", relation, sink="python", writer=Class, table="counts")`. It need not inherit from this one.

    >>> class Kept:
    ...     epochs: dict[tuple[str, str, int], list[pa.RecordBatch]] = {}
    ...
    ...     def __init__(self, options: Mapping[str, str], schema: pa.Schema, query: str) -> None:
    ...         self.key = options["run"], query
    ...
    ...     def write(self, epoch: int, batches: Iterator[pa.RecordBatch]) -> None:
    ...         self.epochs.setdefault((*self.key, epoch), list(batches))
    ...
    ...     def close(self) -> None: ...
    >>> writer: Writer = Kept({"run": "7a"}, pa.schema([("n", pa.int64())]), "q")
    >>> for attempt in range(2):
    ...     writer.write(0, iter([pa.record_batch({"n": [1, 2]})]))
    >>> [batch.num_rows for batch in Kept.epochs["7a", "q", 0]]
    [2]
    """

    def __init__(self, options: Mapping[str, str], schema: pa.Schema, query: str) -> None:
        """Open the store for a query whose results have these columns.

        `options` are those of the sink but for `writer`, and two more. `run` is a name that a checkpoint keeps for all
        its life: epochs of one run and query do not come back, those of another run begin anew. `results_key`, a list
        in JSON, names the columns of which equal values mean that a later row takes the place of an earlier one: the
        update key, or group and window. It is left out where the results of the query have none.
        """

    # A writer may have a third method, which is looked for before a run or a change begins, and by `millrace check`:
    #
    #     @staticmethod
    #     def check(options: Mapping[str, str], schema: pa.Schema, query: str) -> None:
    #
    # It is given what `__init__` is given, but for `run`, raises if the store would not take the results, and changes
    # nothing. And a fourth, which is True for options that say how the store is reached, such as its address:
    #
    #     @staticmethod
    #     def reaches(option: str) -> bool:
    #
    # After a restart with other values of such options, the epoch that was under way is given to the writer with them.

    def write(self, epoch: int, batches: Iterator[pa.RecordBatch]) -> None:
        """Make all rows of an epoch visible at once.

        A second call for the same epoch must change nothing, whatever happened to the first: it may have come to
        nothing, or to everything but its return.
        """

    def close(self) -> None:
        """Release the store. Not called after a kill; what it raises is ignored."""


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
        options = {**_options(query), _RUN: run}
        return cls(query.name, writer_place(query.sink.connector), tuple(sorted(options.items())), query.root.schema)

    def reached_as(self, other: WriterSpec | None) -> WriterSpec:
        """The same store, reached as another writer of its kind reaches it."""
        reaches = getattr(self._class(), "reaches", None)
        if other is None or other.place != self.place or reaches is None:
            return self
        own = {name: value for name, value in self.options if not reaches(name)}
        theirs = {name: value for name, value in other.options if reaches(name)}
        return replace(self, options=tuple(sorted({**own, **theirs}.items())))

    def _class(self) -> Any:
        return class_at(self.place, f'the writer of query "{self.query}"')

    def open(self) -> Writer:
        """The writer, opened."""
        writer: Writer = self._class()(
            resolved(dict(self.options), f'the sink of query "{self.query}"'), self.schema, self.query
        )
        return writer


def _options(query: Query) -> dict[str, str]:
    """The options of a query's sink, and the columns that tell its results apart."""
    connector, key = query.sink.connector, stored_key(query)
    own = {
        name: value for name, value in connector.options.items() if (connector.format, name) != (PYTHON_SINK, "writer")
    }
    return own if key is None else {**own, _KEY: json.dumps(key)}


def check_writer(query: Query) -> None:
    """Refuse a sink whose class is not named, not found, or no writer."""
    sink, place = query.sink, writer_place(query.sink.connector)
    options, named = sink.connector.options, f'the writer of sink "{sink.name}"'
    if not place:
        raise RequestError(
            f'sink "{sink.name}" has no writer', hint="Write OPTIONS (writer 'package.module:Class') after its format."
        )
    for name in _GIVEN.keys() & options.keys():
        raise RequestError(
            f'sink "{sink.name}" has an option "{name}", which Millrace itself gives every writer',
            hint=f"Choose another name: this one is {_GIVEN[name]}.",
        )
    resolved(options, f'sink "{sink.name}"')
    found = class_at(place, named)
    lacks = [method for method in _METHODS if not callable(getattr(found, method, None))]
    if lacks or not isinstance(found, type):
        missing = f'has no method "{lacks[0]}"' if lacks else "is no class"
        raise RequestError(
            f"{named}, {place}, {missing}",
            hint="Give a class with the methods of millrace.Writer: write and close.",
        )


def check_stores(queries: Sequence[Query]) -> None:
    """Ask the writers of queries that can tell whether their stores would take the results; raise what they say."""
    for query in queries:
        if not has_writer(query.sink.connector):
            continue
        owner = f'sink "{query.sink.name}"'
        check = getattr(class_at(writer_place(query.sink.connector), f"the writer of {owner}"), "check", None)
        # A user's code may raise anything.
        try:
            if check is not None:
                check(resolved(_options(query), owner), query.root.schema, query.name)
        except MillraceError as error:
            raise type(error)(f"{owner}: {error.fact}", hint=error.hint) from error
        except Exception as error:
            raise RequestError(
                f"{owner} cannot be written: {type(error).__name__}: {error}", hint="Mend the store, or its writer."
            ) from error


def run_name(folder: Path, *, fresh: bool) -> str:
    """The name of the checkpoint in a folder; a fresh one is given its name."""
    path = folder / _RUN
    if fresh or not path.exists():
        make_folder(folder, "the checkpoint")
        write_record(path, {"run": uuid4().hex})
    return str(read_record(path)["run"])


class OpenWriters:
    """Writers that stay open from epoch to epoch."""

    def __init__(self) -> None:
        self._open: dict[WriterSpec, Writer] = {}

    def write(self, spec: WriterSpec, epoch: int, batches: Iterator[pa.RecordBatch]) -> None:
        """Call a writer with an epoch; it is opened if need be."""
        # A user's code may raise anything.
        try:
            if spec not in self._open:
                self._open[spec] = spec.open()
            self._open[spec].write(epoch, batches)
        except MillraceError as error:
            self._close(spec)
            raise type(error)(
                f'the sink of query "{spec.query}", epoch {epoch}: {error.fact}', hint=error.hint
            ) from error
        except Exception as error:
            self._close(spec)
            raise RunError(
                f'the writer "{spec.place}" of query "{spec.query}" failed in epoch {epoch}: '
                f"{type(error).__name__}: {error}",
                hint="Start again on the same checkpoint: Millrace gives it the epoch again.",
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


def reached_now(queries: Sequence[Query], renamed: Mapping[str, str], run: Callable[[], str]) -> dict[str, WriterSpec]:
    """The writers of a run that is resumed, as its queries say now, by the names that these had.

    Their stores may have other addresses and users. Refuses a store that would not take the results.
    """
    check_stores(queries)
    return {
        renamed.get(query.name, query.name): WriterSpec.of(query, run())
        for query in queries
        if has_writer(query.sink.connector)
    }


def stage_rows(path: Path, spec: WriterSpec, rows: pa.Table) -> str:
    """Write rows for a writer as a file that says which one; its digest."""
    note = {"query": spec.query, "place": spec.place, "options": spec.options}
    return write_arrow(path, rows.cast(spec.schema), json.dumps(note))


def writer_of(rows: pa.Table) -> WriterSpec:
    """The writer that staged rows are for."""
    note = json.loads(note_of(rows))
    options = tuple((name, value) for name, value in note["options"])
    return WriterSpec(note["query"], note["place"], options, rows.schema.remove_metadata())


def write_epoch(spec: WriterSpec, epoch: int, staged: Sequence[Path], writers: OpenWriters) -> None:
    """Call a writer with the staged rows of an epoch."""
    writers.write(spec, epoch, _batches(staged, spec.schema))


def _batches(staged: Sequence[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of staged files in the columns of their query."""
    for path in staged:
        # Read, not mapped: a writer may keep what it is given, and the file goes.
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                if batch.num_rows:
                    yield batch.replace_schema_metadata(None).cast(schema)
