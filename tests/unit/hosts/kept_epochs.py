"""Writers for tests: they keep what they are given in files of a folder, and fail when they are told to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa


class KeptEpochs:
    """Each call as a line of the file `calls`; each epoch as a file, written once."""

    opened: list[KeptEpochs] = []

    def __init__(self, options: Mapping[str, str], schema: pa.Schema, query: str) -> None:
        self.options, self.schema, self.query = options, schema, query
        self.folder = Path(options["folder"])
        self.folder.mkdir(exist_ok=True)
        self.closed = False
        self.opened.append(self)

    def write(self, epoch: int, batches: Iterator[pa.RecordBatch]) -> None:
        self._fail("before")
        rows = pa.Table.from_batches(batches, self.schema).to_pylist()
        with (self.folder / "calls").open("a") as file:
            file.write(json.dumps([self.options["run"], self.query, epoch, rows], default=str) + "\n")
        path = self.folder / f"{self.options['run']}-{self.query}-{epoch}.json"
        if not path.exists():
            path.write_text(json.dumps(rows, default=str))
        self._fail("after")

    def _fail(self, moment: str) -> None:
        marker = self.folder / f"fail_{moment}"
        if marker.exists():
            marker.unlink()
            raise ConnectionError(f"lost {moment} the rows were kept")

    def close(self) -> None:
        self.closed = True
        raise OSError("of no consequence")


class NoWriter:
    """Cannot write."""

    def close(self) -> None: ...


def calls(folder: Path) -> list[list[Any]]:
    """What the writers of a folder have been called with: run, query, epoch, rows."""
    path = folder / "calls"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def kept(folder: Path) -> list[dict[str, Any]]:
    """All rows that are to be seen in a folder."""
    return [row for path in sorted(folder.glob("*.json")) for row in json.loads(path.read_text())]
