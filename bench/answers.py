"""Whether a system's counts are the true ones, as multisets, by DuckDB over the same files."""

from __future__ import annotations

from pathlib import Path

import duckdb

from bench.links import Links

_COLUMNS = "window_start, srcIP, destIP, n"


def check(links: Links, output: Path, engine: str) -> int:
    """The number of result rows; refuses answers that differ from those of the complete windows."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for link in Links.NAMES:
            database.execute(f"CREATE VIEW {link} AS FROM read_parquet('{links.path(link)}/*.parquet')")
        ends = ", ".join(f"(SELECT max(ts) FROM {link})" for link in Links.NAMES)
        database.execute("""CREATE TABLE truth AS
            SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start, srcIP, destIP, count(*) AS n
            FROM (FROM control UNION ALL FROM main1 UNION ALL FROM main2) GROUP BY 1, 2, 3""")
        database.execute(f"DELETE FROM truth WHERE window_start + INTERVAL 1 MINUTE > least({ends})")
        database.execute(f"CREATE TABLE found AS SELECT {_COLUMNS} FROM read_parquet('{output}/part-*.parquet')")
        (true_rows,) = database.execute("SELECT count(*) FROM truth").fetchone() or (0,)
        differing = [_difference(database, *pair) for pair in (("truth", "found"), ("found", "truth"))]
    if any(differing):
        raise SystemExit(f"bench: {engine}: {differing[0]:,} results are missing and {differing[1]:,} are not true")
    return int(true_rows)


def _difference(database: duckdb.DuckDBPyConnection, one: str, other: str) -> int:
    query = f"SELECT count(*) FROM (SELECT {_COLUMNS} FROM {one} EXCEPT ALL SELECT {_COLUMNS} FROM {other})"
    (rows,) = database.execute(query).fetchone() or (0,)
    return int(rows)
