"""Whether a system's results are the true ones, as multisets, by DuckDB over the same files."""

from __future__ import annotations

from pathlib import Path

import duckdb

from bench.workload import Work


def check(workload: Work, output: Path, engine: str) -> int:
    """The number of result rows; refuses answers that differ from those that are certain when a run ends."""
    columns = workload.results
    with opened(workload) as database:
        database.execute(f"CREATE TABLE truth AS {workload.truth()}")
        database.execute(f"CREATE TABLE found AS SELECT {columns} FROM read_parquet('{output}/part-*.parquet')")
        (true_rows,) = database.execute("SELECT count(*) FROM truth").fetchone() or (0,)
        differing = [_difference(database, columns, *pair) for pair in (("truth", "found"), ("found", "truth"))]
    if any(differing):
        raise SystemExit(f"bench: {engine}: {differing[0]:,} results are missing and {differing[1]:,} are not true")
    return int(true_rows)


def opened(workload: Work) -> duckdb.DuckDBPyConnection:
    """A database whose views are the workload's streams."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for name, folder in workload.folders.items():
        database.execute(f"CREATE VIEW {name} AS FROM read_parquet('{folder}/*.parquet')")
    return database


def _difference(database: duckdb.DuckDBPyConnection, columns: str, one: str, other: str) -> int:
    query = f"SELECT count(*) FROM (SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other})"
    (rows,) = database.execute(query).fetchone() or (0,)
    return int(rows)
