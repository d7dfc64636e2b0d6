"""A live folder: files are moved in while the run goes on, and each row counts once, also over a restart.

python examples/cookbook/live_folder.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import millrace as mr

DEPARTURES = Path(__file__).parent / "data" / "departures.csv"
QUERIES = """
CREATE STREAM departures (flight STRING, origin STRING, departed TIMESTAMP)
  TIMESTAMP BY departed ORDERED
  FROM csv OPTIONS (path '{folder}/in');

CREATE QUERY per_hour AS
  SELECT window_start, window_end, origin, count(*) AS flights
  FROM departures [RANGE 4 HOURS SLIDE 4 HOURS] GROUP BY origin;
"""


def main() -> None:
    head, *lines = DEPARTURES.read_text().splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        for number, start in enumerate(range(0, len(lines), 400)):
            move_in(folder, f"{number:05}.csv", [head, *lines[start : start + 400]])
            net = mr.Network().sql(QUERIES.format(folder=folder))
            handle = net.run(on="local", until="available", checkpoint=folder / "state")
            print(f"after {number:05}.csv: {handle.metrics().received} rows")
            for row in sorted(handle.results("per_hour").to_pylist(), key=lambda row: tuple(row.values())):
                print(f"  {row['window_start']:%d %H:%M} {row['origin']} {row['flights']}")


def move_in(folder: Path, name: str, lines: list[str]) -> None:
    """Write a file beside the folder, then move it in: a rename within a file system is whole or not at all."""
    written = folder / name
    written.write_text("".join(lines))
    written.rename(folder / "in" / name)


if __name__ == "__main__":
    main()
