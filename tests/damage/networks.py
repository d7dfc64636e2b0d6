"""Small networks, each with another kind of state, and their input."""

from __future__ import annotations

import csv
import random
from collections import Counter
from pathlib import Path

FILES = 12
_ROWS = 40
_STREAMS = """
CREATE STREAM links (k STRING, v INT, x DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 30 SECONDS FROM csv OPTIONS (path 'links', max_files_per_trigger '1');
CREATE STREAM rates (k STRING, v INT, x DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 30 SECONDS FROM csv OPTIONS (path 'rates', max_files_per_trigger '1');
CREATE STREAM quotes (k STRING, v INT, x DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 30 SECONDS UPDATE KEY (k)
  FROM csv OPTIONS (path 'links', max_files_per_trigger '1');
CREATE STREAM sensors (k STRING, v INT, x DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 30 SECONDS PARTITIONED BY (k)
  FROM csv OPTIONS (path 'links', max_files_per_trigger '1');
CREATE AGGREGATE spread(DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'tests.property.user_aggregates:Spread';
CREATE SINK results TO csv OPTIONS (path 'out');
"""
_QUERIES = {
    "windows": "SELECT window, k, count(*) AS n, sum(v) AS total, min(v) AS least "
    "FROM links [RANGE 6 MINUTES SLIDE 1 MINUTE] GROUP BY k",
    "band join": "SELECT l.k, l.v, r.v AS w, l.ts FROM links AS l JOIN rates AS r "
    "ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 4 MINUTES AND l.ts + INTERVAL 4 MINUTES",
    "as-of": "SELECT l.k, l.v, r.x, l.ts FROM links AS l ASOF LEFT JOIN rates AS r ON r.ts <= l.ts AND r.k = l.k",
    "update queue": "SELECT k, v, x, ts FROM quotes WITH (queue = 'inplace', budget = '5 rows')",
    "latest answers": "SELECT k, sum(v) AS total, window_end FROM quotes [RANGE 4 MINUTES SLIDE 2 MINUTES] GROUP BY k",
    "distinct": "SELECT DISTINCT k, v FROM links [RANGE 5 MINUTES SLIDE 1 MINUTE]",
    "user's states": "SELECT k, spread(x) AS s FROM links [RANGE 6 MINUTES SLIDE 2 MINUTES] GROUP BY k",
    "partitions": "SELECT window, k, count(*) AS n FROM sensors [RANGE 3 MINUTES SLIDE 1 MINUTE] GROUP BY k",
}
NAMES = tuple(_QUERIES)
QUEUED = ("update queue", "latest answers")
"""How many answers these give depends on the moment: only the last of a key counts."""

Rows = Counter[tuple[str, ...]]


def script(name: str) -> str:
    """The text of a network; its paths are relative."""
    return f"{_STREAMS}CREATE QUERY q INTO results AS {_QUERIES[name]};"


def write_inputs(folder: Path) -> None:
    """A file per minute of both streams, the same ones at every time."""
    chance = random.Random(18)
    for stream in ("links", "rates"):
        (folder / stream).mkdir(parents=True)
        for minute in range(FILES):
            lines = [
                f"k{chance.randrange(12)},{chance.randrange(9)},{chance.random():.6f},"
                f"2024-01-01 00:{minute:02d}:{chance.randrange(60):02d}.{chance.randrange(1000):03d}"
                for _ in range(_ROWS)
            ]
            (folder / stream / f"{minute:04d}.csv").write_text("\n".join(["k,v,x,ts", *lines]) + "\n")


def results(folder: Path, name: str) -> Rows:
    """What the sink of a network holds: every row, or of one with a queue the last of each key."""
    found: list[tuple[str, ...]] = []
    for path in sorted((folder / "out").glob("part-*")):
        with path.open() as file:
            found += [tuple(row) for row in list(csv.reader(file))[1:]]
    return Counter(
        {row[0]: row for row in sorted(found, key=lambda row: row[-1])}.values() if name in QUEUED else found
    )
