"""A network of two streams: windows that overlap, a join under an aggregate, an as-of join; and what it must answer."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from tests.e2e.scripts import add_file

SCRIPT = """
CREATE STREAM links (k STRING, v INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM csv OPTIONS (path 'in', max_files_per_trigger '1');
CREATE STREAM rates (k STRING, w INT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM csv OPTIONS (path 'rates', max_files_per_trigger '1');
CREATE SINK counts TO csv OPTIONS (path 'out/counts');
CREATE SINK pairs TO csv OPTIONS (path 'out/pairs');
CREATE SINK latest TO csv OPTIONS (path 'out/latest');
CREATE QUERY counted INTO counts AS
  SELECT window, k, count(*) AS n, sum(v) AS total FROM links [RANGE 3 MINUTES SLIDE 1 MINUTE WA ts] GROUP BY k;
CREATE QUERY paired INTO pairs AS
  SELECT date_trunc('minute', l.ts) AS minute, r.w, count(*) AS n, sum(l.v) AS total
  FROM links AS l JOIN rates AS r
  ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 20 SECONDS AND l.ts + INTERVAL 20 SECONDS
  GROUP BY date_trunc('minute', l.ts), r.w;
CREATE QUERY in_force INTO latest AS
  SELECT l.ts AS at, l.k, r.w FROM links AS l ASOF LEFT JOIN rates AS r ON r.ts <= l.ts AND r.k = l.k;
"""
SINKS = ("counts", "pairs", "latest")
Rows = Counter[tuple[str, ...]]


def project(folder: Path, files: int) -> Path:
    """The script in the folder, and the first files of its streams."""
    for name in ("in", "rates"):
        (folder / name).mkdir(parents=True)
    path = folder / "network.sql"
    path.write_text(SCRIPT)
    for number in range(files):
        add_minute(folder, number)
    return path


def add_minute(folder: Path, number: int) -> None:
    """The files of one minute: two links, and a rate of each."""
    minute = f"2024-01-01 {number // 60:02d}:{number % 60:02d}"
    lines = ["k,w,ts", f"a,{number % 3},{minute}:05", f"b,{number % 2},{minute}:35"]
    hidden = folder / "rates" / f".{number:04d}.csv"
    hidden.write_text("\n".join(lines) + "\n")
    hidden.replace(folder / "rates" / f"{number:04d}.csv")
    add_file(folder, number)


def results(folder: Path) -> dict[str, Rows]:
    """All rows of every sink, and how often each is there."""
    found: dict[str, Rows] = {}
    for sink in SINKS:
        found[sink] = Counter()
        for path in (folder / "out" / sink).glob("part-*"):
            with path.open() as file:
                found[sink].update(_told(sink, row) for row in csv.DictReader(file))
    return found


def _told(sink: str, row: dict[str, str]) -> tuple[str, ...]:
    names = {
        "counts": ("window_start", "k", "n", "total"),
        "pairs": ("minute", "w", "n", "total"),
        "latest": ("at", "k", "w"),
    }
    first, *others = (row[name] for name in names[sink])
    return (first[:16], *others)


def expected(files: int) -> dict[str, Rows]:
    """What the sinks must hold after so many minutes, each once."""
    return {"counts": Counter(_windows(files)), "pairs": Counter(_pairs(files)), "latest": Counter(_latest(files))}


def _windows(files: int) -> list[tuple[str, ...]]:
    found = []
    for start in range(-2, files):
        held = range(max(start, 0), min(start + 3, files))
        found += [(_minute(start), "a", str(len(held)), str(sum(held)))]
        found += [(_minute(start), "b", str(len(held)), str(len(held)))]
    return found


def _pairs(files: int) -> list[tuple[str, ...]]:
    found = []
    for number in range(files):
        totals: dict[int, list[int]] = {}
        for rate, value in ((number % 3, number), (number % 2, 1)):
            totals.setdefault(rate, []).append(value)
        found += [(_minute(number), str(rate), str(len(each)), str(sum(each))) for rate, each in totals.items()]
    return found


def _latest(files: int) -> list[tuple[str, ...]]:
    found = []
    for number in range(files):
        found += [(_minute(number), "a", str(number % 3))]
        found += [(_minute(number), "b", str((number - 1) % 2) if number else "")]
    return found


def _minute(number: int) -> str:
    """The minute of that number of the day, as a sink writes it."""
    day = "2023-12-31" if number < 0 else "2024-01-01"
    return f"{day} {number // 60 % 24:02d}:{number % 60:02d}"
