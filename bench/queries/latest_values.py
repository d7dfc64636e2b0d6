"""The latest value of every key: an update query of ours, and what a user of stock Spark writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.measures.answers import WrongAnswers, opened, published
from bench.queries.links import ORIGIN
from bench.queries.workload import Work, network, write_file
from bench.systems.stock_latest import VERSIONS, Latest
from millrace.plan.nodes.query_network import QueryNetwork

COLUMNS = "key BIGINT, value DOUBLE, ts TIMESTAMP"
APART = 10
"""Microseconds between two rows."""
_LATE, _MOST = 0.1, 1_000_000
"""The share of rows that come out of order, and by how many microseconds at most."""


@dataclass(frozen=True)
class LatestValues:
    """Updates of keys, of which the last ones count."""

    folders: Mapping[str, Path]
    rows: int
    results: str = "key, value, ts"

    @property
    def needs(self) -> Mapping[str, str]:
        """An answer is there as soon as its row is."""
        return {"updates": "ts"}

    def ours(self, output: Path, files_per_batch: int | None) -> QueryNetwork:
        """The query as a user of Millrace writes it."""
        time, queue = "TIMESTAMP BY ts DISORDER INTERVAL 2 SECONDS UPDATE KEY (key)", "WITH (queue = 'inplace')"
        select = "SELECT key, value, ts FROM updates"
        return network(self.folders, COLUMNS, time, select, output, files_per_batch, queue)

    def stock(self, output: Path, checkpoint: Path, files_per_batch: int | None) -> Latest:
        """The query as a user of Spark writes it."""
        return Latest(str(self.folders["updates"]), str(output), str(checkpoint), COLUMNS, files_per_batch)

    def truth(self) -> str:
        """The query in DuckDB's words."""
        return "SELECT key, max_by(value, ts) AS value, max(ts) AS ts FROM updates GROUP BY key"


def check_latest(workload: Work, output: Path, engine: str) -> int:
    """The number of keys; refuses results that were not sent, and last ones that are not the last."""
    versions = sorted((output / VERSIONS).glob("*"), key=lambda path: int(path.name))
    files = [str(path) for path in versions[-1].glob("*.parquet")] if versions else list(published(output))
    with opened(workload) as database:
        listed = ", ".join(f"'{path}'" for path in files)
        database.execute(f"CREATE TABLE found AS SELECT {workload.results} FROM read_parquet([{listed}])")
        database.execute(f"CREATE TABLE truth AS {workload.truth()}")
        last = "SELECT key, max_by(value, ts) AS value, max(ts) AS ts FROM found GROUP BY key"
        for wrong in (f"({last}) EXCEPT ALL FROM truth", f"FROM truth EXCEPT ALL ({last})"):
            if database.execute(wrong).fetchone() is not None:
                raise WrongAnswers(f"bench: {engine}: the last value of a key is not its last")
        if database.execute(f"FROM found EXCEPT ALL SELECT {workload.results} FROM updates").fetchone() is not None:
            raise WrongAnswers(f"bench: {engine}: a result is no row of the input, or comes twice")
        (keys,) = database.execute("SELECT count(*) FROM truth").fetchone() or (0,)
    return int(keys)


def write_latest(folder: Path, files: int, size: int, keys: int) -> LatestValues:
    """Write so many files of so many rows; no two rows have the same time."""
    random = np.random.default_rng(11)
    folder.mkdir(parents=True)
    times = np.arange(files * size, dtype=np.int64) * APART
    delays = np.where(random.random(len(times)) < _LATE, random.integers(0, _MOST, len(times)), 0)
    times = times[np.argsort(times + delays, kind="stable")]
    for number in range(files):
        mine = times[number * size : (number + 1) * size]
        columns = {"key": random.integers(0, keys, size), "value": random.random(size)}
        stamps = pa.array(ORIGIN + mine).cast(pa.timestamp("us", tz="UTC"))
        write_file(folder, number, pa.table({**columns, "ts": stamps}))
    return LatestValues({"updates": folder}, files * size)
