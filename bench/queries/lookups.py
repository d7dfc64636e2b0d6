"""A stream whose rows ask, a stream that knows, and the as-of join that answers each with the latest that was known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.queries.links import ORIGIN
from bench.queries.workload import network, write_file
from millrace.kernel.elements import TIMESTAMP
from millrace.plan.nodes.query_network import QueryNetwork

COLUMNS = "key STRING, n BIGINT, ts TIMESTAMP, value DOUBLE"
"""`n` is the number of the row in its stream, as it arrived."""
_FILES = 8
_SECOND = 1_000_000


@dataclass(frozen=True)
class Inputs:
    """Two tables in order of arrival, and by how many microseconds a row of each may be late."""

    asked: pa.Table
    known: pa.Table
    asked_disorder: int
    known_disorder: int


@dataclass(frozen=True)
class AsOf:
    """For each row of `asked` the latest of `known` with its key, not after it; the later one of equal times."""

    folders: Mapping[str, Path]
    rows: int
    disorder: Mapping[str, int]
    results: str = "key, asked_n, known_n, ts, value"

    @property
    def needs(self) -> Mapping[str, str]:
        """The row that asks must have come, and every later one that is known be later."""
        late = self.disorder["known"]
        return {"asked": "ts", "known": f"ts + INTERVAL {late + 1} MICROSECOND"}

    def ours(self, output: Path, files_per_batch: int | None) -> QueryNetwork:
        """The query as a user of Millrace writes it."""
        times = {name: f"TIMESTAMP BY ts {_order(disorder)}" for name, disorder in self.disorder.items()}
        select = """SELECT asked.key, asked.n AS asked_n, known.n AS known_n, asked.ts, known.value
            FROM asked ASOF JOIN known ON known.ts <= asked.ts AND known.key = asked.key"""
        return network(self.folders, COLUMNS, times, select, output, files_per_batch)

    def truth(self) -> str:
        """The query in DuckDB's words, for the rows that are older than all that may still become known."""
        return f"""SELECT asked.key, asked.n AS asked_n, known.n AS known_n, asked.ts, known.value
            FROM (FROM asked WHERE ts < (SELECT max(ts) FROM known)
                  - INTERVAL {self.disorder["known"]} MICROSECOND) AS asked
            ASOF JOIN (FROM known QUALIFY row_number() OVER (PARTITION BY key, ts ORDER BY n DESC) = 1) AS known
            ON known.key = asked.key AND known.ts <= asked.ts"""


def _order(disorder: int) -> str:
    return f"DISORDER INTERVAL {disorder} MICROSECONDS" if disorder else "ORDERED"


def write_lookups(folder: Path, inputs: Inputs) -> AsOf:
    """Write both tables to files, in order of arrival."""
    tables = {"asked": inputs.asked, "known": inputs.known}
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        for number, numbers in enumerate(np.array_split(np.arange(table.num_rows), _FILES)):
            write_file(folder / name, number, table.slice(numbers[0] if len(numbers) else 0, len(numbers)))
    rows = sum(table.num_rows for table in tables.values())
    disorder = {"asked": inputs.asked_disorder, "known": inputs.known_disorder}
    return AsOf({name: folder / name for name in tables}, rows, disorder)


@dataclass(frozen=True)
class Shape:
    """What made-up streams look like: keys, rows, seconds that they span, and how exact and how late times are."""

    keys: int
    asked: int
    known: int
    seconds: float
    grain: int = 1_000
    """Microseconds."""
    asked_late: float = 0.0
    known_late: float = 0.0

    def made(self) -> Inputs:
        """Rows of this shape."""
        random = np.random.default_rng(6)
        asked = self._table(random, self.asked, self.asked_late)
        known = self._table(random, self.known, self.known_late)
        return Inputs(asked, known, self._disorder(self.asked_late), self._disorder(self.known_late))

    def _disorder(self, late: float) -> int:
        """What a row can be late by: a grain more, for times are rounded down to one."""
        return round(late * _SECOND) + self.grain if late else 0

    def _table(self, random: np.random.Generator, rows: int, late: float) -> pa.Table:
        arrivals = np.sort(random.uniform(0.0, self.seconds, rows))
        times = ((arrivals - random.uniform(0.0, late, rows)) * _SECOND).astype(np.int64) // self.grain * self.grain
        keys = pa.DictionaryArray.from_arrays(
            random.integers(0, self.keys, rows), [f"key {number}" for number in range(self.keys)]
        )
        columns = [keys.cast(pa.string()), np.arange(rows), (pa.array(times + ORIGIN)).cast(TIMESTAMP)]
        return pa.table([*columns, random.random(rows)], names=["key", "n", "ts", "value"])
