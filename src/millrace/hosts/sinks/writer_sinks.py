"""The writers of a run in this process: rows gather in an epoch, are staged, and handed over when it is committed.

Rules:
- A staged file says itself what it is: its query may have left, or changed, by the time it is handed over again.
- Writers are opened with the first rows they are given, and closed when their query has left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from millrace.hosts.sinks.writer_protocol import (
    Writers,
    WriterSpec,
    hand_over,
    run_name,
    staged_as,
    write_staged,
    writer_queries,
)
from millrace.plan.nodes.query_network import Query

_TO_WRITER = "writer of "


@dataclass(frozen=True)
class _Gathered:
    """A writer, and the rows gathered for it in this epoch."""

    spec: WriterSpec
    rows: list[pa.Table] = field(default_factory=list)

    def stage(self, folder: Path, epoch: int) -> dict[str, str]:
        if not any(map(len, self.rows)):
            return {}
        spec = self.spec
        path = folder / f"{quote(spec.query, safe='')}-{epoch:08d}.arrow"
        note = {"query": spec.query, "place": spec.place, "options": spec.options, "epoch": epoch}
        write_staged(path, pa.concat_tables(self.rows).cast(spec.schema), json.dumps(note).encode())
        self.rows.clear()
        return {str(path): f"{_TO_WRITER}{spec.query}"}


class WriterSinks:
    """The queries of a network whose sinks are writers; `checkpoint` is where their rows are staged."""

    def __init__(self, queries: Sequence[Query], checkpoint: Path | None, *, fresh: bool) -> None:
        self._writers = Writers()
        self._gathered: dict[str, _Gathered] = {}
        self._leaving: list[_Gathered] = []
        self._checkpoint, self._fresh = checkpoint, fresh
        self._temporary: TemporaryDirectory[str] | None = None
        self._place: tuple[Path, str] | None = None
        self.prepare(queries)()

    def prepare(self, queries: Sequence[Query]) -> Callable[[], None]:
        """Check the writers of a changed network; the call it gives takes them into use."""
        specs = [WriterSpec.of(query, self._opened()[1]) for query in writer_queries(queries)]

        def take_into_use() -> None:
            before, self._gathered = self._gathered, {}
            for spec in specs:
                old = before.get(spec.query)
                self._gathered[spec.query] = old if old is not None and old.spec == spec else _Gathered(spec)
            self._leaving += [each for name, each in before.items() if self._gathered.get(name) is not each]

        return take_into_use

    def _opened(self) -> tuple[Path, str]:
        """The folder for staged rows and the name of the run, made when the first writer needs them."""
        if self._place is None:
            if self._checkpoint is None:
                self._temporary = TemporaryDirectory(prefix="millrace-staged-")
            home = self._checkpoint or Path(self._temporary.name if self._temporary else "")
            folder = home / "staged"
            folder.mkdir(parents=True, exist_ok=True)
            self._place = folder, run_name(home, fresh=self._fresh)
        return self._place

    def takes(self, query: str) -> bool:
        """Whether the results of a query go to a writer."""
        return query in self._gathered

    def gather(self, query: str, rows: pa.Table) -> None:
        """Take over rows of this epoch."""
        self._gathered[query].rows.append(rows)

    def stage(self, epoch: int) -> dict[str, str]:
        """Write the gathered rows of the epoch as files: path -> for whom."""
        staged: dict[str, str] = {}
        for each in (*self._leaving, *self._gathered.values()):
            more = each.stage(self._opened()[0], epoch) if each.rows else {}
            # A query that replaces another of its name has no rows before the next epoch.
            assert not staged.keys() & more.keys()
            staged |= more
        self._leaving.clear()
        return staged

    def hand_over(self, staged: Mapping[str, str]) -> None:
        """Give what is staged, and has not been taken yet, to its writers."""
        for name in _names(staged):
            # A checkpoint may have been moved since.
            path = self._opened()[0] / name
            if path.exists():
                self._hand_over(path)
        self._writers.keep([each.spec for each in self._gathered.values()])

    def _hand_over(self, path: Path) -> None:
        schema, note = staged_as(path)
        told: dict[str, Any] = json.loads(note)
        options = tuple((name, value) for name, value in told["options"])
        hand_over(WriterSpec(told["query"], told["place"], options, schema), told["epoch"], [path], self._writers)

    def sweep(self, keep: Mapping[str, str]) -> None:
        """Remove staged files that no committed epoch knows."""
        for path in (self._checkpoint / "staged").glob("*.arrow") if self._checkpoint is not None else ():
            if path.name not in _names(keep):
                path.unlink()

    def close(self) -> None:
        """Close the writers."""
        self._writers.keep(())
        if self._temporary is not None:
            self._temporary.cleanup()


def is_for_writer(whom: str) -> bool:
    """Whether what is staged for someone is for a writer, and not a file to be."""
    return whom.startswith(_TO_WRITER)


def _names(staged: Mapping[str, str]) -> list[str]:
    """The names of the staged files that are for writers."""
    return [Path(path).name for path, whom in staged.items() if is_for_writer(whom)]
