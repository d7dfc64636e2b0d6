"""The standing answers of a run: the latest answer of each key, for every update query, to be pulled at any time.

Rules:
- On the hosts of one process an answer stands as soon as it is given, before it is committed: freshness comes first.
  After a crash a run goes on from the committed ones, and gives the answers since then anew.
- On Spark the answers are those of committed micro-batches.
- With a checkpoint they are kept in it, an epoch at a time (see latest_files.py).
- A query that leaves ends its subscriptions; its last answers can be read until its name is used again.
- One that is altered to append ends them too, and has no answers to be pulled; where the host puts all results, they
  are kept up with what it gives, so that they stand again as soon as it updates again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from millrace.errors import RequestError
from millrace.hosts.answers.answer_files import AnswerFiles, folder_of, parts_of, read
from millrace.hosts.answers.answer_table import AnswerTable
from millrace.kernel.elements import ARRIVED, Batch
from millrace.plan.nodes.query_network import Query
from millrace.plan.updates.queue_placement import key_of
from millrace.plan.updates.update_keys import reads_updates


@dataclass(frozen=True)
class _Kept:
    """The answers of a query, and their files, if they are kept."""

    query: Query
    latest: AnswerTable
    files: AnswerFiles | None


class RunAnswers:
    """The latest answers of a run's update queries; `epoch` is the last one that was committed in the checkpoint.

    `all_put` says that results are put whether or not their query updates at present.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        checkpoint: Path | None = None,
        epoch: int | None = None,
        *,
        all_put: bool = False,
    ) -> None:
        self._checkpoint = checkpoint
        self._all_put = all_put
        self._queries: tuple[Query, ...] = ()
        self._kept: dict[str, _Kept] = {}
        self._appending: dict[str, _Kept] = {}
        """Queries that have become ordinary ones."""
        self.closed = False
        """Whether the run has ended, so that no answer will follow."""
        self._left: dict[str, _Kept] = {}
        self._removed: list[AnswerFiles] = []
        self.prepare(queries)()
        if checkpoint is not None:
            self._load(checkpoint, epoch)

    def _load(self, checkpoint: Path, epoch: int | None) -> None:
        for each in self._kept.values():
            if each.files is not None and epoch is not None:
                each.files.load(epoch)
        known = {quote(name, safe="") for name in self._kept} if epoch is not None else set()
        for folder in (checkpoint / "latest").glob("*"):
            if folder.name not in known:
                AnswerFiles(folder, AnswerTable("", pa.schema([]), ())).remove()

    def prepare(self, queries: Sequence[Query], renamed: Mapping[str, str] | None = None) -> Callable[[], None]:
        """Make places for the answers of a changed network; the call it gives takes them into use.

        A query that is `renamed`, by its name now the one before, keeps its answers.
        """
        was, kept, appending = renamed or {}, dict[str, _Kept](), dict[str, _Kept]()
        for query in queries:
            key, before = key_of(query), self._going_on(query, was.get(query.name, query.name))
            if key is not None:
                kept[query.name] = before or self._beginning(query, key)
            elif before is not None and self._all_put:
                appending[query.name] = before

        def take_into_use() -> None:
            before, self._queries = self._maintained, tuple(queries)
            self._kept, self._appending = kept, appending
            going_on = {id(each.latest) for each in self._maintained.values()}
            for name, each in before.items():
                if id(each.latest) not in going_on:
                    each.latest.close()
                    self._left[name] = each
                if each.files is not None and name not in self._maintained:
                    self._removed.append(each.files)
            for each in kept.values():
                each.latest.closed = False
            for each in appending.values():
                each.latest.close()
            names = {query.name for query in queries}
            self._left = {name: each for name, each in self._left.items() if name not in names}

        return take_into_use

    @property
    def _maintained(self) -> dict[str, _Kept]:
        """All answers that are kept up."""
        return {**self._kept, **self._appending}

    def _going_on(self, query: Query, name: str) -> _Kept | None:
        """The answers of a query that ran under a name, if it computes the same."""
        before = self._maintained.get(name)
        if before is None or before.query.root != query.root or key_of(query) not in (None, before.latest.key):
            return None
        if name == query.name:
            return _Kept(query, before.latest, before.files)
        before.latest.query = query.name
        return _Kept(query, before.latest, self._files(query.name, before.latest))

    def _beginning(self, query: Query, key: tuple[str, ...]) -> _Kept:
        """A new place for answers."""
        latest = AnswerTable(query.name, query.root.schema, key)
        return _Kept(query, latest, self._files(query.name, latest))

    def _files(self, query: str, latest: AnswerTable) -> AnswerFiles | None:
        return None if self._checkpoint is None else AnswerFiles(folder_of(self._checkpoint, query), latest)

    # Answers come

    def put(self, query: str, batches: Sequence[Batch]) -> None:
        """Take over results, if their query updates, or has done so."""
        if (kept := self._kept.get(query) or self._appending.get(query)) is not None:
            kept.latest.put(timed_table(batches))

    def put_parts(self, epoch: int) -> None:
        """Take over what tasks have written in an epoch that is committed."""
        for each in self._kept.values():
            for path in parts_of(each.files.folder, epoch) if each.files is not None else ():
                each.latest.put(read(path))

    def stage(self, epoch: int) -> None:
        """Write what has changed, as of an epoch that is about to be committed."""
        for each in self._maintained.values():
            if each.files is not None:
                each.files.stage(epoch)

    def sweep(self) -> None:
        """Remove what is no longer needed, now that the epoch is committed."""
        for each in self._maintained.values():
            if each.files is not None:
                each.files.sweep()
        while self._removed:
            self._removed.pop().remove()

    def close(self) -> None:
        """Say that no answer will follow."""
        self.closed = True
        for each in self._kept.values():
            each.latest.close()

    # Answers are asked for

    @property
    def names(self) -> list[str]:
        """The update queries that run."""
        return list(self._kept)

    def of(self, query: str) -> AnswerTable:
        """The answers of a query; refuses one that has none to be pulled."""
        found = self._kept.get(query) or self._left.get(query)
        if found is not None:
            return found.latest
        for each in self._queries:
            if each.name == query:
                raise no_latest(each)
        raise no_query(query, [each.name for each in self._queries])


def timed_table(batches: Sequence[Batch]) -> pa.Table:
    """The rows of several batches of one schema with their times, as a table."""
    names = [name for name in batches[0].rows.schema.names if name != ARRIVED]
    return pa.Table.from_batches([batch.rows.select(names) for batch in batches])


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


def no_query(query: str, names: Iterable[str]) -> RequestError:
    """What is said of a query that there is not."""
    known = ", ".join(f'"{name}"' for name in names)
    return RequestError(f'there is no query "{query}"', hint=f"The queries are {known}." if known else "")
