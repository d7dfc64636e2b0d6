"""What every system computes in a run, in several dialects; here a count per window and keys over parquet files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from millrace.experiments.stock_spark import StockCount, StockQuery
from millrace.language import parse_network
from millrace.plan.nodes.query_network import QueryNetwork


class Work(Protocol):
    """A query over folders of parquet files, in our words and in DuckDB's."""

    @property
    def folders(self) -> Mapping[str, Path]:
        """The folder of each stream."""

    @property
    def rows(self) -> int:
        """Rows of all streams together."""

    @property
    def results(self) -> str:
        """The columns by which results are compared."""

    @property
    def needs(self) -> Mapping[str, str]:
        """By stream, in terms of the results: the time that its rows must have reached for a result to be certain."""

    def ours(self, output: Path, files_per_batch: int | None) -> QueryNetwork:
        """The query as a user of Millrace writes it."""

    def truth(self) -> str:
        """The query in DuckDB's words, over the finished input: those results that are certain when a run ends."""


class PeerWork(Work, Protocol):
    """A query that stock Spark can do too."""

    def stock(self, output: Path, checkpoint: Path, files_per_batch: int | None) -> StockQuery:
        """The query as a user of Spark writes it; the module of its class carries it out."""


@dataclass(frozen=True)
class Workload:
    """A count; `window` and `slide` are seconds. With `most`, only the greatest counts of each window are wanted."""

    folders: Mapping[str, Path]
    columns: str
    time: str
    keys: tuple[str, ...]
    rows: int
    window: int = 60
    slide: int = 60
    most: bool = False
    silence: str = ""
    """What the streams say of their silence, in our words."""

    @property
    def results(self) -> str:
        """Columns that tell a result from others."""
        return ", ".join(["window_start", *self.keys, "n"])

    @property
    def needs(self) -> Mapping[str, str]:
        """All streams must have passed the end of the window."""
        return dict.fromkeys(self.folders, f"window_start + INTERVAL {self.window} SECOND")

    def ours(self, output: Path, files_per_batch: int | None) -> QueryNetwork:
        """The query as a user of Millrace writes it."""
        time = f"TIMESTAMP BY {self.time} ORDERED {self.silence}"
        return network(self.folders, self.columns, time, self._select(), output, files_per_batch)

    def _select(self) -> str:
        keys = ", ".join(self.keys)
        window = f"[RANGE {self.window} SECONDS SLIDE {self.slide} SECONDS WA {self.time}]"
        count = f"SELECT window, {keys}, count(*) AS n FROM {' UNION '.join(self.folders)} {window} GROUP BY {keys}"
        if not self.most:
            return count
        return f"""SELECT window_start, window_end, {keys}, n FROM ({count})
            QUALIFY rank() OVER (PARTITION BY window_start, window_end ORDER BY n DESC) = 1"""

    def stock(self, output: Path, checkpoint: Path, files_per_batch: int | None) -> StockCount:
        """The query as a user of Spark writes it."""
        return StockCount(
            [str(folder) for folder in self.folders.values()],
            str(output),
            str(checkpoint),
            f"{self.window} seconds",
            self.keys,
            files_per_batch,
            slide=f"{self.slide} seconds",
            schema=self.columns,
            time=self.time,
            most=self.most,
        )

    def truth(self) -> str:
        """The query in DuckDB's words, over the finished input: the windows that are complete, with their rows `n`."""
        keys, time = ", ".join(self.keys), self.time
        everything = " UNION ALL ".join(f"FROM {name}" for name in self.folders)
        ends = ", ".join(f"(SELECT max({time}) FROM {name})" for name in self.folders)
        best = "QUALIFY rank() OVER (PARTITION BY window_start ORDER BY n DESC) = 1" if self.most else ""
        return f"""WITH panes AS (
              SELECT time_bucket(INTERVAL {self.slide} SECOND, {time}) AS pane, {keys}, count(*) AS n
              FROM ({everything}) GROUP BY ALL),
            windows AS (
              SELECT pane - INTERVAL {self.slide} SECOND * back AS window_start, {keys}, sum(n)::BIGINT AS n
              FROM panes, range({self.window // self.slide}) AS backs(back) GROUP BY ALL)
            SELECT window_start, {keys}, n FROM windows
            WHERE window_start + INTERVAL {self.window} SECOND <= least({ends}) {best}"""


def network(
    folders: Mapping[str, Path],
    columns: str,
    time: str | Mapping[str, str],
    select: str,
    output: Path,
    files_per_batch: int | None,
    options: str = "",
) -> QueryNetwork:
    """A query of ours over streams that are folders of parquet files, into a folder of such files.

    `time` is the time contract of all streams, or of each one.
    """
    limit = "" if files_per_batch is None else f", max_files_per_trigger '{files_per_batch}'"
    streams = [
        f"CREATE STREAM {name} ({columns}) {time if isinstance(time, str) else time[name]} "
        f"FROM parquet OPTIONS (path '{folder}'{limit});"
        for name, folder in folders.items()
    ]
    sink = f"CREATE SINK results TO parquet OPTIONS (path '{output}');"
    return parse_network("\n".join([*streams, sink, f"CREATE QUERY measured {options} INTO results AS {select};"]))


def write_file(folder: Path, number: int, table: pa.Table) -> None:
    """Write the file of a number; all systems read files in order of their numbers."""
    path = folder / f"{number:06d}.parquet"
    pq.write_table(table, path)
    # Stock Spark reads by modification time: without this, files written in one second come in any order.
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
