"""Change and restart: a query gets another condition and a second query joins it, and no state is lost.

python examples/cookbook/change_and_restart.py
"""

from __future__ import annotations

import tempfile
from datetime import datetime
from pathlib import Path

import millrace as mr

DEPARTURES = Path(__file__).parent / "data" / "departures.csv"
STREAM = """
CREATE STREAM departures (flight STRING, origin STRING, delay INT, departed TIMESTAMP)
  TIMESTAMP BY departed ORDERED
  FROM csv OPTIONS (path '{folder}/in');
"""
BEFORE = """
CREATE QUERY per_day AS
  SELECT window_start, window_end, origin, count(*) AS flights, sum(delay) AS minutes
  FROM departures [RANGE 1 DAY SLIDE 1 DAY] GROUP BY origin;
"""
AFTER = """
CREATE QUERY per_day AS
  SELECT window_start, window_end, origin, count(*) AS flights, sum(delay) AS minutes
  FROM departures [RANGE 1 DAY SLIDE 1 DAY] GROUP BY origin
  HAVING sum(delay) > 5000;
CREATE QUERY very_late AS SELECT departed, flight, delay FROM departures WHERE delay > 250;
"""


def main() -> None:
    head, *lines = DEPARTURES.read_text().splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arrive(folder / "in" / "1.csv", [head, *lines[:600]])
        run(folder, BEFORE, until="available")
        arrive(folder / "in" / "2.csv", [head, *lines[600:]])
        after = run(folder, AFTER, until="end")
        print(*after.evolution.lines(), sep="\n")
        for query in after.queries:
            for row in after.results(query).to_pylist():
                print(query, *map(shown, row.values()))


def shown(value: object) -> str:
    return f"{value:%d %H:%M}" if isinstance(value, datetime) else str(value)


def arrive(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(lines))


def run(folder: Path, queries: str, until: str) -> mr.Handle:
    network = mr.Network().sql(STREAM.format(folder=folder) + queries)
    return network.run(on="local", until=until, checkpoint=folder / "state")


if __name__ == "__main__":
    main()
