"""Versions of tables as files of a checkpoint, and what this process has loaded of them.

Rules:
- A version is copied into the checkpoint before it is used: whatever becomes of its source, a replay meets the same
  rows.
- A file is never changed, and its digest is checked when it is loaded. It is mapped, so that processes of one machine
  share its memory; each process loads a version once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from millrace.hosts.checkpoint.durable_files import make_folder, read_arrow, sync_all, write_arrow
from millrace.hosts.checkpoint.file_system import files
from millrace.kernel.elements import Microseconds
from millrace.kernel.graph.graph import Graph
from millrace.kernel.joins.tables.table_join import TableJoin
from millrace.kernel.joins.tables.table_versions import TableContents, TableVersion
from millrace.kernel.progress.ingress import Ingress

TABLES = "tables"
"""The folder of a checkpoint that keeps versions."""
_LOADED: dict[str, dict[str, TableContents]] = {}
"""What this process has loaded, by the place of a table and the file of a version."""


@dataclass(frozen=True)
class VersionRecord:
    """A version as a checkpoint keeps it: its file, from which time on it is in force per source, when it was read."""

    file: str
    digest: str
    rows: int
    since: Mapping[str, Microseconds]
    read_at: Microseconds

    def data(self) -> dict[str, Any]:
        """It as plain data."""
        return asdict(self)


def write_version(folder: Path, table: str, rows: pa.Table) -> tuple[str, str]:
    """Put rows into a new file of a folder, safe on disk; its name and its digest."""
    make_folder(folder, "the folder of tables")
    name = f"{table}-{uuid4().hex}.arrow"
    told = write_arrow(folder / name, rows)
    sync_all([folder / name])
    return name, told


def remove_versions(folder: Path, names: Iterable[str]) -> None:
    """Remove files that no version needs any more."""
    for name in names:
        files().remove(folder / name)


def remove_others(folder: Path, named: Container[str]) -> None:
    """Remove files that no record names: what a run has left that was killed during a refresh."""
    if folder.is_dir():
        remove_versions(folder, [name for name in files().list(folder) if name not in named])


def use_tables(graph: Graph, edges: Iterable[Ingress], folder: Path, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Hand the versions of a checkpoint's tables, as it records them, to those who read them."""

    def versions(name: str) -> list[TableVersion]:
        return _versions(folder, name, tables[name]["key"], tables[name]["versions"])

    hand_out(graph, edges, versions)


def hand_out(graph: Graph, edges: Iterable[Ingress], versions: Callable[[str], list[TableVersion]]) -> None:
    """Give the operators of a graph the versions of their tables, and streams the partitions that a table lists."""
    for node in graph.nodes.values():
        if isinstance(node.operator, TableJoin):
            node.operator.use(versions(node.operator.table))
    for edge in edges:
        if (listed := edge.contract.listed_in) is not None:
            edge.order.declare(_partitions(versions(listed.name)[-1].contents.rows, listed.columns))


def _partitions(rows: pa.Table, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The partitions that a table lists, as the texts by which rows are told apart; rows with a null list none."""
    texts = [rows.column(name).cast(pa.string()).to_pylist() for name in columns]
    return (values for values in zip(*texts, strict=True) if None not in values)


def _versions(folder: Path, table: str, key: Sequence[str], records: Sequence[Mapping[str, Any]]) -> list[TableVersion]:
    """The versions of a table; those that this process has loaded before are not loaded again."""
    known = _LOADED.get(f"{folder}/{table}", {})
    found = {
        each["file"]: known.get(each["file"]) or _contents(folder / each["file"], each["digest"], key)
        for each in records
    }
    # Contents that no version needs any more are dropped.
    _LOADED[f"{folder}/{table}"] = found
    return [TableVersion(found[each["file"]], each["since"]) for each in records]


def _contents(path: Path, told: str, key: Sequence[str]) -> TableContents:
    return TableContents(lambda: read_arrow(path, told, mapped=True), key)
