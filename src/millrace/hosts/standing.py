"""The standing answers of a run: the latest answer of each key, for every update query, to be pulled at any time.

Rules:
- On the hosts of one process an answer stands as soon as it is given, before it is committed: freshness comes first.
  After a crash a run goes on from the committed ones, and gives the answers since then anew.
- On Spark the answers are those of committed micro-batches.
- With a checkpoint they are kept in it, an epoch at a time (see latest_files.py).
- A query that leaves ends its subscriptions; its last answers can be read until its name is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from millrace.errors import RequestError
from millrace.hosts.latest import Latest
from millrace.hosts.latest_files import LatestFiles, folder_of, parts_of, read
from millrace.kernel.elements import ARRIVED, Batch
from millrace.plan.nodes import Query
from millrace.plan.updating import key_of


@dataclass(frozen=True)
class _Kept:
    """The answers of a query, and their files, if they are kept."""

    query: Query
    latest: Latest
    files: LatestFiles | None


class Standing:
    """The latest answers of a run's update queries; `epoch` is the last one that was committed in the checkpoint."""

    def __init__(self, queries: Sequence[Query], checkpoint: Path | None = None, epoch: int | None = None) -> None:
        self._checkpoint = checkpoint
        self._queries: tuple[Query, ...] = ()
        self._kept: dict[str, _Kept] = {}
        self._left: dict[str, _Kept] = {}
        self._removed: list[LatestFiles] = []
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
                LatestFiles(folder, Latest("", pa.schema([]), ())).remove()

    def prepare(self, queries: Sequence[Query], renamed: Mapping[str, str] | None = None) -> Callable[[], None]:
        """Make places for the answers of a changed network; the call it gives takes them into use.

        A query that is `renamed`, by its name now the one before, keeps its answers.
        """
        was, keys = renamed or {}, {query.name: key_of(query) for query in queries}
        kept = {
            query.name: self._going_on(query, was.get(query.name, query.name), key)
            for query in queries
            if (key := keys[query.name]) is not None
        }

        def take_into_use() -> None:
            before, self._kept, self._queries = self._kept, kept, tuple(queries)
            going_on = {id(each.latest) for each in kept.values()}
            for name, each in before.items():
                if id(each.latest) not in going_on:
                    each.latest.close()
                    self._left[name] = each
                if each.files is not None and name not in kept:
                    self._removed.append(each.files)
            self._left = {name: each for name, each in self._left.items() if name not in keys}

        return take_into_use

    def _going_on(self, query: Query, name: str, key: tuple[str, ...]) -> _Kept:
        """The answers of a query that ran under a name, or a new place for them."""
        before = self._kept.get(name)
        if before is not None and before.query.root == query.root and before.latest.key == key:
            if name == query.name:
                return _Kept(query, before.latest, before.files)
            before.latest.query = query.name
            return _Kept(query, before.latest, self._files(query.name, before.latest))
        latest = Latest(query.name, query.root.schema, key)
        return _Kept(query, latest, self._files(query.name, latest))

    def _files(self, query: str, latest: Latest) -> LatestFiles | None:
        return None if self._checkpoint is None else LatestFiles(folder_of(self._checkpoint, query), latest)

    # Answers come

    def put(self, query: str, batches: Sequence[Batch]) -> None:
        """Take over results, if they are those of an update query."""
        if (kept := self._kept.get(query)) is not None:
            kept.latest.put(timed_table(batches))

    def put_parts(self, epoch: int) -> None:
        """Take over what tasks have written in an epoch that is committed."""
        for each in self._kept.values():
            for path in parts_of(each.files.folder, epoch) if each.files is not None else ():
                each.latest.put(read(path))

    def stage(self, epoch: int) -> None:
        """Write what has changed, as of an epoch that is about to be committed."""
        for each in self._kept.values():
            if each.files is not None:
                each.files.stage(epoch)

    def sweep(self) -> None:
        """Remove what is no longer needed, now that the epoch is committed."""
        for each in self._kept.values():
            if each.files is not None:
                each.files.sweep()
        while self._removed:
            self._removed.pop().remove()

    def close(self) -> None:
        """Say that no answer will follow."""
        for each in self._kept.values():
            each.latest.close()

    # Answers are asked for

    @property
    def names(self) -> list[str]:
        """The update queries that run."""
        return list(self._kept)

    def of(self, query: str) -> Latest:
        """The answers of a query; refuses one that has none to be pulled."""
        found = self._kept.get(query) or self._left.get(query)
        if found is not None:
            return found.latest
        if any(each.name == query for each in self._queries):
            raise no_key(query)
        raise no_query(query, [each.name for each in self._queries])


def timed_table(batches: Sequence[Batch]) -> pa.Table:
    """The rows of several batches of one schema with their times, as a table."""
    names = [name for name in batches[0].rows.schema.names if name != ARRIVED]
    return pa.Table.from_batches([batch.rows.select(names) for batch in batches])


def no_key(query: str) -> RequestError:
    """What is said of a query that is no update query."""
    return RequestError(
        f'query "{query}" has no update key, so none of its answers is the latest',
        hint="Declare UPDATE KEY (column) on all streams that it reads, or read all results where its sink puts them.",
    )


def no_query(query: str, names: Iterable[str]) -> RequestError:
    """What is said of a query that there is not."""
    known = ", ".join(f'"{name}"' for name in names)
    return RequestError(f'there is no query "{query}"', hint=f"The queries are {known}." if known else "")
