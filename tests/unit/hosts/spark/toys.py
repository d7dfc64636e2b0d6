"""A low level that reads files of integers, and a writer that needs no connectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from millrace.connectors.files.input_files import Span
from millrace.hosts.spark.sink.network_sink import NetworkWriter
from millrace.hosts.spark.source.stream_files import FileScan, Listing


@dataclass(frozen=True)
class IntegerFiles:
    """The files of a folder, a task each or all in one."""

    folder: str
    in_sequence: bool = False

    def files(self) -> Listing:
        return Listing([str(path) for path in sorted(Path(self.folder).glob("*.txt"))])

    def arrived(self, path: str) -> int | None:
        return Path(path).stat().st_ctime_ns // 1000

    def size(self, path: str) -> int:
        return Path(path).stat().st_size

    def tasks(self, paths: Sequence[str], sizes: Sequence[int] | None = None) -> list[int]:
        return [len(paths)] if self.in_sequence and paths else [1] * len(paths)

    def read(
        self,
        paths: Sequence[str],
        index: int,
        scan: FileScan,
        before: dict[str, Any],
        *,
        alone: bool,
        spans: Sequence[Span] = (),
    ) -> Iterator[pa.RecordBatch]:
        raise AssertionError("files are listed here, not read")


class ToyWriter(NetworkWriter):
    """Writes parquet whatever the format."""

    def write_file(self, path: Path, format: str, rows: pa.Table, options: Any) -> None:
        pq.write_table(rows, path)
