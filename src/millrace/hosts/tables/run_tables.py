"""The versions of a run's tables: read, recorded, handed to operators, dropped.

Rules:
- A table is read when the first query begins that joins it, or that reads a stream whose partitions it lists, and
  again when it is due or asked for. Its newest version lists the partitions from then on.
- A new version is in force for rows after all that have been seen: per source, from the first time that neither a row
  nor a bound has reached. What was processed before met the version before, on a replay too, for the record says so.
- A refresh that fails leaves the version in force, says so, and is tried again when it is next due. A table that cannot
  be read at all lets no run begin, and no query join.
- A version is dropped at a refresh, when no row before its end can come. Its file stays until the refresh after that: a
  micro-batch that is run again may need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any
from uuid import uuid4

from millrace.errors import MillraceError
from millrace.hosts.tables.table_files import (
    TABLES,
    VersionRecord,
    hand_out,
    remove_others,
    remove_versions,
    use_tables,
    write_version,
)
from millrace.hosts.tables.table_reader import read_table
from millrace.kernel.elements import NO_BOUND, Microseconds
from millrace.kernel.graph.graph import Graph
from millrace.kernel.joins.tables.table_versions import TableContents, TableVersion
from millrace.kernel.progress.ingress import Ingress
from millrace.plan.evolution.start_points import StreamProgress, bounds_of, unreached_points
from millrace.plan.nodes.endpoints import Table
from millrace.plan.nodes.query_network import QueryNetwork


@dataclass(frozen=True)
class ReadTable:
    """A table that has been read, and is not in force yet; `record` names its file, or its place in memory."""

    table: Table
    record: VersionRecord


class RunTables:
    """The tables of one run; without a checkpoint's `folder` their versions are in memory alone.

    `saved` is what the checkpoint says of them, `warn` is told what goes wrong with a refresh, and `wake` is called
    when a table has been read beside the run; without it the run waits for it.
    """

    def __init__(
        self,
        folder: Path | None,
        feeds: Mapping[str, Any] | None,
        saved: Mapping[str, Any],
        warn: Callable[[str], None],
        wake: Callable[[], None] | None = None,
    ) -> None:
        self._folder = None if folder is None else folder / TABLES
        self._feeds: Mapping[str, Any] = feeds if feeds is not None else {}
        self._warn, self._wake = warn, wake
        self._tables: dict[str, Table] = {}
        self._columns = {name: told["columns"] for name, told in saved.items()}
        self._versions = {name: [VersionRecord(**each) for each in told["versions"]] for name, told in saved.items()}
        self._dropped: dict[str, list[str]] = {name: list(told["dropped"]) for name, told in saved.items()}
        self._contents: dict[str, TableContents] = {}
        """The versions that are in memory alone, by the name that stands for their file."""
        self._tried: dict[str, Microseconds] = {}
        """When each table was last read, or was to be read."""
        self._reading: set[str] = set()
        self._read: SimpleQueue[ReadTable | tuple[Table, MillraceError]] = SimpleQueue()
        self._stale: list[str] = []

    # Versions

    def fit(self, network: QueryNetwork) -> bool:
        """True if all tables of a network have a version with the columns that they are declared with."""
        return all(self._fits(table) for table in network.tables())

    def _fits(self, table: Table) -> bool:
        return bool(self._versions.get(table.name)) and self._columns.get(table.name) == _columns(table)

    def open(self, network: QueryNetwork, now: Microseconds) -> None:
        """Read the tables of a network that have no version yet, or have other columns than before; or raise."""
        if not self._tables and self._folder is not None:
            remove_others(self._folder, self._recorded())
        for table in network.tables():
            if not self._fits(table):
                record = self.read(table, now).record
                self._dropped.setdefault(table.name, []).extend(
                    each.file for each in self._versions.get(table.name, ())
                )
                self._versions[table.name], self._columns[table.name] = [record], _columns(table)
            self._tables[table.name] = table
            self._tried.setdefault(table.name, max(each.read_at for each in self._versions[table.name]))

    def _recorded(self) -> set[str]:
        """The files that the record names."""
        versions = (each.file for known in self._versions.values() for each in known)
        return {*versions, *(name for names in self._dropped.values() for name in names)}

    def equip(self, graph: Graph, edges: Iterable[Ingress]) -> None:
        """Hand the versions to the operators of a graph, and to the edges of its streams."""
        if self._folder is not None:
            use_tables(graph, edges, self._folder, self.saved())
        else:
            hand_out(graph, edges, self._in_memory)

    def _in_memory(self, name: str) -> list[TableVersion]:
        return [TableVersion(self._contents[each.file], each.since) for each in self._versions[name]]

    def saved(self) -> dict[str, Any]:
        """What a checkpoint keeps of the tables, as plain data."""
        return {
            name: {
                "key": list(table.key),
                "columns": self._columns[name],
                "versions": [each.data() for each in self._versions[name]],
                "dropped": self._dropped.get(name, []),
            }
            for name, table in sorted(self._tables.items())
        }

    def read(self, table: Table | str, now: Microseconds) -> ReadTable:
        """A table read now; or raise."""
        found = self._tables[table] if isinstance(table, str) else table
        rows = read_table(found, self._feeds)
        if self._folder is None:
            name = told = f"{found.name}-{uuid4().hex}"
            self._contents[name] = TableContents(lambda: rows, found.key)
        else:
            name, told = write_version(self._folder, found.name, rows)
        return ReadTable(found, VersionRecord(name, told, rows.num_rows, {}, now))

    def put(self, fresh: ReadTable, network: QueryNetwork, points: StreamProgress) -> bool:
        """Let a table that was read be in force from here on; False if it holds what it held before."""
        name, known = fresh.table.name, self._versions[fresh.table.name]
        self._tried[name] = fresh.record.read_at
        if self._is_same(known[-1], fresh.record):
            self._stale.append(fresh.record.file)
            self.settled()
            return False
        self._stale += self._dropped.get(name, [])
        kept = _needed(
            [*known, replace(fresh.record, since=unreached_points(network, points))], bounds_of(network, points)
        )
        self._dropped[name] = [each.file for each in known if each not in kept]
        self._versions[name] = kept
        return True

    def _is_same(self, before: VersionRecord, after: VersionRecord) -> bool:
        if self._folder is None:
            return bool(self._contents[before.file].rows.equals(self._contents[after.file].rows))
        return before.digest == after.digest

    def settled(self) -> None:
        """Remove what no version needs, now that a record says so."""
        stale, self._stale = self._stale, []
        if self._folder is not None:
            remove_versions(self._folder, stale)
        for name in stale:
            self._contents.pop(name, None)

    # Refreshes

    def next_due(self) -> Microseconds | None:
        """When a table is to be read again; None if none is, or it is being read."""
        due = [
            self._tried[name] + table.refresh
            for name, table in self._tables.items()
            if table.refresh is not None and name not in self._reading
        ]
        return min(due, default=None)

    def take(self, now: Microseconds) -> list[ReadTable]:
        """The tables that have been read again; those that are due are begun, beside the run if it can be woken."""
        for name, table in self._tables.items():
            due = table.refresh is not None and now >= self._tried[name] + table.refresh
            if due and name not in self._reading:
                self._reading.add(name)
                self._tried[name] = now
                if self._wake is None:
                    self._refresh(table, now)
                else:
                    Thread(target=self._refresh, args=(table, now), daemon=True).start()
        found: list[ReadTable] = []
        while not self._read.empty():
            each = self._read.get()
            table = each.table if isinstance(each, ReadTable) else each[0]
            self._reading.discard(table.name)
            if isinstance(each, ReadTable):
                found.append(each)
            else:
                self._warn(f"{each[1].fact}; the version before stays in force")
        return found

    def _refresh(self, table: Table, now: Microseconds) -> None:
        try:
            self._read.put(self.read(table, now))
        except MillraceError as error:
            self._read.put((table, error))
        if self._wake is not None:
            self._wake()


def _columns(table: Table) -> list[list[str]]:
    """What of a declaration the stored rows depend on, as plain data."""
    return [[*table.key], *([each.name, str(each.type)] for each in table.schema)]


def _needed(versions: list[VersionRecord], bounds: Mapping[str, Microseconds]) -> list[VersionRecord]:
    """The versions that rows may still meet: not those whose end all bounds have passed."""
    first = 0
    for place, after in enumerate(versions[1:], 1):
        if all(bounds.get(source, NO_BOUND) >= start for source, start in after.since.items()):
            first = place
    return versions[first:]
