"""A small project in a folder: links as CSV files, a query that counts them, and a sink."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

HEAD = "k,v,ts"
SCRIPT = """
CREATE STREAM links (k STRING, v INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM csv OPTIONS (path 'in', max_files_per_trigger '1');
CREATE SINK counts TO csv OPTIONS (path 'out');
CREATE QUERY per_minute INTO counts AS
  SELECT window, k, count(*) AS n, sum(v) AS total FROM links [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY k;
"""
SHOWN = SCRIPT.replace("CREATE QUERY per_minute INTO counts AS", "").replace(
    "CREATE SINK counts TO csv OPTIONS (path 'out');", ""
)


def project(folder: Path, script: str = SCRIPT, files: int = 3) -> Path:
    """The script in the folder, and the first files of its stream."""
    (folder / "in").mkdir()
    path = folder / "count.sql"
    path.write_text(script)
    for number in range(files):
        add_file(folder, number)
    return path


def add_file(folder: Path, number: int, *more: str) -> Path:
    """The file of one minute: two rows, and such lines as are given."""
    path = folder / "in" / f"{number:04d}.csv"
    minute = f"2024-01-01 {number // 60:02d}:{number % 60:02d}"
    lines = [HEAD, f"a,{number},{minute}:10", f"b,1,{minute}:30", *more]
    # Moved in whole, as a stream's producer does.
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("\n".join(lines) + "\n")
    hidden.replace(path)
    return path


def results(folder: Path) -> list[tuple[str, ...]]:
    """All rows of the sink, sorted: minute, key, count, total."""
    rows: list[dict[str, Any]] = []
    for path in sorted((folder / "out").glob("part-*")):
        with path.open() as file:
            rows += csv.DictReader(file)
    return sorted((row["window_start"][11:16], row["k"], row["n"], row["total"]) for row in rows)


def expected(files: int) -> list[tuple[str, ...]]:
    """What the sink must hold after so many files."""
    return sorted(
        row
        for number in range(files)
        for minute in [f"{number // 60:02d}:{number % 60:02d}"]
        for row in [(minute, "a", "1", str(number)), (minute, "b", "1", "1")]
    )
