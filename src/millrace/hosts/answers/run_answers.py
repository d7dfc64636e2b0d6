"""The latest answers of a run's update queries: one per key, to be pulled at any time.

Rules:
- On the hosts of one process an answer can be pulled as soon as it is delivered, before it is committed. After a crash
  a run goes on from the committed ones, and delivers the later answers again.
- On Spark the answers are those of committed micro-batches.
- With a checkpoint they are kept in it, as files per epoch (see answer_files.py).
- A query that leaves ends its subscriptions; its last answers can be read until its name is used again.
- A query that is altered to append ends them too, and has no answers to be pulled. Where the host puts all results, its
  answers are kept up to date meanwhile, so that they can be pulled as soon as it updates again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from millrace.errors import RequestError, unknown_query
from millrace.hosts.answers.answer_files import AnswerFiles, folder_of, valid_files
from millrace.hosts.answers.answer_table import AnswerTable
from millrace.hosts.checkpoint.durable_files import read_arrow
from millrace.hosts.checkpoint.file_system import files
from millrace.kernel.elements import ARRIVED, Batch
from millrace.plan.nodes.query_network import Query
from millrace.plan.updates.queue_placement import key_of
from millrace.plan.updates.update_keys import reads_updates


@dataclass(frozen=True)
class _Kept:
    """The answers of a query and, with a checkpoint, their files; `pulled` is False while the query appends."""

    query: Query
    table: AnswerTable
    files: AnswerFiles | None
    pulled: bool = True


class RunAnswers:
    """The latest answers of a run's update queries; `kept` has the digests of the files that are committed, by path.

    `all_put` says that results are put whether or not their query updates at present.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        checkpoint: Path | None = None,
        kept: Mapping[str, str] | None = None,
        *,
        all_put: bool = False,
    ) -> None:
        self.closed = False
        """True if the run has ended, so that no answer will follow."""
        self._checkpoint = checkpoint
        self._all_put = all_put
        self._queries: tuple[Query, ...] = ()
        self._kept: dict[str, _Kept] = {}
        self._left: dict[str, AnswerTable] = {}
        """The last answers of queries that have left, while no other query has their name."""
        self._unused: set[Path] = set()
        """Folders of queries that the run no longer has; the last commit may still name their files."""
        self.prepare(queries)()
        if checkpoint is not None:
            self._load(checkpoint, kept)

    def _load(self, checkpoint: Path, kept: Mapping[str, str] | None) -> None:
        """Read the committed answers; those of queries that the run does not have go after its first commit."""
        folders = set((checkpoint / "latest").glob("*"))
        if kept is None:
            for folder in folders:
                files().remove_folder(folder)
            return
        for each in self._in_files():
            each.load(kept)
        self._unused = folders - {each.folder for each in self._in_files()}

    def prepare(self, queries: Sequence[Query], renamed: Mapping[str, str] | None = None) -> Callable[[], None]:
        """Make places for the answers of a changed network; the call that it returns takes them into use.

        A query that is `renamed`, by its name now the one before, keeps its answers.
        """
        was, kept = renamed or {}, dict[str, _Kept]()
        for query in queries:
            key, before = key_of(query), self._going_on(query, was.get(query.name, query.name))
            if key is not None:
                table = before.table if before else AnswerTable(query.name, query.root.schema, key)
                kept[query.name] = before or _Kept(query, table, self._files(query.name, table))
            elif before is not None and self._all_put:
                kept[query.name] = replace(before, pulled=False)

        def take_into_use() -> None:
            before, self._kept, self._queries = self._kept, kept, tuple(queries)
            going_on = {id(each.table) for each in kept.values()}
            for name, each in before.items():
                if id(each.table) not in going_on:
                    each.table.close()
                    self._left[name] = each.table
                if each.files is not None and name not in kept:
                    self._unused.add(each.files.folder)
            for each in kept.values():
                if each.pulled:
                    each.table.closed = False
                else:
                    each.table.close()
            names = {query.name for query in queries}
            self._left = {name: each for name, each in self._left.items() if name not in names}

        return take_into_use

    def _going_on(self, query: Query, name: str) -> _Kept | None:
        """The answers of a query that ran under a name, if it computes the same."""
        before = self._kept.get(name)
        if before is None or before.query.root != query.root or key_of(query) not in (None, before.table.key):
            return None
        if name == query.name:
            return _Kept(query, before.table, before.files)
        before.table.query = query.name
        return _Kept(query, before.table, self._files(query.name, before.table))

    def _files(self, query: str, table: AnswerTable) -> AnswerFiles | None:
        return None if self._checkpoint is None else AnswerFiles(folder_of(self._checkpoint, query), table)

    def _in_files(self) -> list[AnswerFiles]:
        """The files of all queries that have some."""
        return [each.files for each in self._kept.values() if each.files is not None]

    # Answers come

    def put(self, query: str, batches: Sequence[Batch]) -> None:
        """Take over results, if their query updates, or has done so."""
        if (kept := self._kept.get(query)) is not None:
            names = [name for name in batches[0].rows.schema.names if name != ARRIVED]
            kept.table.put(pa.Table.from_batches([batch.rows.select(names) for batch in batches]))

    def put_parts(self, parts: Mapping[str, str]) -> None:
        """Take over what tasks have written in an epoch that is committed, given the digests by path."""
        for each in self._kept.values():
            for file in valid_files(each.files.folder, parts) if each.files is not None else ():
                each.table.put(read_arrow(file.path, file.digest))

    def kept(self) -> dict[str, str]:
        """The digests of all files that hold the answers, by path in the checkpoint."""
        return {path: told for each in self._in_files() for path, told in each.kept().items()}

    def stage(self, epoch: int) -> list[Path]:
        """Write what has changed, as of an epoch that is about to be committed; the folders to be synced before."""
        return [each.folder for each in self._in_files() if each.stage(epoch)]

    def sweep(self) -> None:
        """Remove what is no longer needed, now that the epoch is committed."""
        for each in self._in_files():
            each.sweep()
        # A query that left may have come back before this commit.
        for folder in self._unused - {each.folder for each in self._in_files()}:
            files().remove_folder(folder)
        self._unused.clear()

    def close(self) -> None:
        """Say that no answer will follow."""
        self.closed = True
        for each in self._kept.values():
            each.table.close()

    # Answers are asked for

    @property
    def names(self) -> list[str]:
        """The update queries that run."""
        return [name for name, each in self._kept.items() if each.pulled]

    def of(self, query: str) -> AnswerTable:
        """The answers of a query; refuses one that has none to be pulled."""
        kept = self._kept.get(query)
        if kept is not None and kept.pulled:
            return kept.table
        if query in self._left:
            return self._left[query]
        for each in self._queries:
            if each.name == query:
                raise no_latest(each)
        raise unknown_query(query, [each.name for each in self._queries])


def no_latest(query: Query) -> RequestError:
    """What is said of a query that is no update query."""
    if reads_updates(query.root):
        return RequestError(
            f"query \"{query.name}\" gives every answer, by queue = '{query.options['queue']}', so none is the latest",
            hint="Read all results where its sink puts them, or give it an update queue, such as queue = 'inplace'.",
        )
    return RequestError(
        f'query "{query.name}" has no update key, so none of its answers is the latest',
        hint="Declare UPDATE KEY (column) on all streams that it reads, or read all results where its sink puts them.",
    )
