"""Clicks joined with a table of 5 million users, which is refreshed while the run goes on: local, Spark host.

DuckDB joins the clicks of each version with the users of that version, and says whether the answers are true. Beside
the rows per second stand the bytes per row of a version, the seconds that a refresh takes, and how many processes have
loaded the version: each maps its file once.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import millrace as mr
from bench.measures import result_log
from bench.queries.links import ORIGIN
from bench.queries.workload import write_file
from millrace.kernel.elements import TIMESTAMP

USERS = 5_000_000
FILES = 16
SCRIPT = """
CREATE STREAM clicks (user_id BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM parquet OPTIONS (path '{0}/clicks');
CREATE TABLE users (id BIGINT PRIMARY KEY, name STRING, country STRING) FROM parquet OPTIONS (path '{0}/users.parquet');
CREATE SINK named TO parquet OPTIONS (path '{0}/named');
CREATE QUERY named INTO named AS
  SELECT c.ts, c.user_id, u.name, u.country FROM clicks c LEFT JOIN users u ON c.user_id = u.id;
"""
DIFFERS = """
WITH ours AS (SELECT ts, user_id, name, country FROM read_parquet('{0}/named/part-*')),
  truth AS (
    SELECT c.ts, c.user_id, u.name, u.country
    FROM read_parquet('{0}/clicks/*') c LEFT JOIN '{0}/{1}.parquet' u ON c.user_id = u.id
    WHERE c.ts < to_timestamp({3}) UNION ALL
    SELECT c.ts, c.user_id, u.name, u.country
    FROM read_parquet('{0}/clicks/*') c LEFT JOIN '{0}/{2}.parquet' u ON c.user_id = u.id
    WHERE c.ts >= to_timestamp({3}))
SELECT (SELECT count(*) FROM (FROM ours EXCEPT ALL FROM truth)),
  (SELECT count(*) FROM (FROM truth EXCEPT ALL FROM ours))
"""


def run(rows: int, rounds: int) -> None:
    """Measure both hosts once, print a line each and append the results; a quarter of the rows will do."""
    around, entries = result_log.circumstances(), list[dict[str, Any]]()
    clicks = max(FILES, rows // 4)
    for engine in ("local", "spark"):
        with tempfile.TemporaryDirectory(prefix="millrace-bench-") as name:
            found = measured(engine, Path(name), clicks)
        entries.append({"engine": f"{engine} host", "users": USERS, "clicks": clicks, **found})
        print(", ".join(f"{key} {value}" for key, value in entries[-1].items()), flush=True)
    print(f"appended to {result_log.append('table_join', around, entries)}")


def measured(engine: Any, folder: Path, clicks: int, users: int = USERS) -> dict[str, Any]:
    """A live run over both halves of the clicks, with another table of users for the second."""
    write_users(folder / "first.parquet", users, "a")
    write_users(folder / "second.parquet", users, "b")
    (folder / "users.parquet").symlink_to("first.parquet")
    (folder / "clicks").mkdir()
    began = time.perf_counter()
    handle = mr.Network().sql(SCRIPT.format(folder)).run(on=engine, checkpoint=folder / "state")
    opened = time.perf_counter() - began
    first = _joined(folder, clicks, users, 0)
    mapped = processes_with(folder / "state" / "tables")
    (folder / "users.parquet").unlink()
    (folder / "users.parquet").symlink_to("second.parquet")
    began = time.perf_counter()
    handle.refresh_table("users")
    refreshed = time.perf_counter() - began
    second = _joined(folder, clicks, users, 1)
    versions = list((folder / "state" / "tables").glob("users-*"))
    handle.stop()
    middle = ORIGIN / 1e6 + FILES // 2
    wrong = duckdb.sql(DIFFERS.format(folder, "first", "second", middle)).fetchall()[0]
    assert wrong == (0, 0), f"{wrong} rows differ from DuckDB"
    return {
        "rows_per_second": [round(clicks / 2 / first), round(clicks / 2 / second)],
        "bytes_per_row": round(max(each.stat().st_size for each in versions) / users, 1),
        "source_bytes_per_row": round((folder / "first.parquet").stat().st_size / users, 1),
        "seconds_to_open": round(opened, 1),
        "seconds_to_refresh": round(refreshed, 1),
        "mappings_per_process": sorted(mapped.values()),
    }


def write_users(path: Path, count: int, mark: str) -> None:
    """A table of users in any order; a tenth of the ids has none."""
    random = np.random.default_rng(7)
    ids = random.permutation(count * 10 // 9)[:count]
    names = pa.compute.binary_join_element_wise(pa.array(ids).cast(pa.string()), mark, " ")
    countries = pa.array(["de", "fr", "in", "br"]).take(pa.array(random.integers(0, 4, count)))
    pq.write_table(pa.table({"id": ids, "name": names, "country": countries}), path)


def _joined(folder: Path, clicks: int, users: int, half: int) -> float:
    """The seconds from the moment that half of the clicks is there until all of it is joined."""
    each, draft = clicks // FILES, folder / f"draft-{half}"
    draft.mkdir()
    for number in range(FILES // 2 * half, FILES // 2 * (half + 1)):
        random = np.random.default_rng(number)
        times = ORIGIN + number * 1_000_000 + np.sort(random.integers(0, 1_000_000, each))
        ids = random.integers(0, users * 10 // 9, each)
        write_file(draft, number, pa.table({"user_id": ids, "ts": pa.array(times).cast(TIMESTAMP)}))
    began = time.perf_counter()
    for path in sorted(draft.iterdir()):
        path.rename(folder / "clicks" / path.name)
    _until(lambda: _rows(folder / "named") >= each * (FILES // 2) * (half + 1))
    return time.perf_counter() - began


def _rows(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.glob("part-*"))


def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.05)


def processes_with(folder: Path) -> dict[int, int]:
    """How often each process has mapped a file of a folder, by its number."""
    found: dict[int, int] = {}
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            count = len(re.findall(re.escape(f"{folder}/"), maps.read_text()))
        except OSError:
            continue
        if count:
            found[int(maps.parent.name)] = count
    return found
