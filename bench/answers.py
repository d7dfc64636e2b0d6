"""Whether a system's counts are the true ones, as multisets, by DuckDB over the same files."""

from __future__ import annotations

from pathlib import Path

import duckdb

from bench.workload import Workload


def check(workload: Workload, output: Path, engine: str) -> int:
    """The number of result rows; refuses answers that differ from those of the complete windows."""
    columns = ", ".join(["window_start", *workload.keys, "n"])
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for name, folder in workload.folders.items():
            database.execute(f"CREATE VIEW {name} AS FROM read_parquet('{folder}/*.parquet')")
        database.execute(f"CREATE TABLE truth AS {workload.truth()}")
        database.execute(f"CREATE TABLE found AS SELECT {columns} FROM read_parquet('{output}/part-*.parquet')")
        (true_rows,) = database.execute("SELECT count(*) FROM truth").fetchone() or (0,)
        differing = [_difference(database, columns, *pair) for pair in (("truth", "found"), ("found", "truth"))]
    if any(differing):
        raise SystemExit(f"bench: {engine}: {differing[0]:,} results are missing and {differing[1]:,} are not true")
    return int(true_rows)


def _difference(database: duckdb.DuckDBPyConnection, columns: str, one: str, other: str) -> int:
    query = f"SELECT count(*) FROM (SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other})"
    (rows,) = database.execute(query).fetchone() or (0,)
    return int(rows)
