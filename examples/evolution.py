"""Another file on a kept checkpoint: what is the same goes on with its state, the rest is new.

The command line does the same with a file of queries: edit it, look with `--dry-run`, and start it again.

    python examples/evolution.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import millrace as mr

ORDERS = """
CREATE STREAM orders (id BIGINT, item STRING, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path '{folder}/orders');
"""
BEFORE = """
CREATE QUERY counts AS
  SELECT window_start, window_end, item, count(*) AS n FROM orders [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY item;
CREATE QUERY old AS SELECT id FROM orders WHERE item = 'sack';
"""
AFTER = """
CREATE QUERY counts AS
  SELECT window_start, window_end, item, count(*) AS n FROM orders [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY item
  HAVING count(*) > 1;
CREATE QUERY busiest AS
  SELECT window_start, max(n) AS most
  FROM (SELECT window_start, window_end, item, count(*) AS n FROM orders [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY item)
  GROUP BY window_start, window_end;
CREATE QUERY totals AS SELECT window_start, window_end, count(*) AS orders FROM orders [RANGE 1 HOUR SLIDE 1 HOUR];
"""
EARLIER = ((1, "mill", "12:00:10"), (2, "sack", "12:00:40"))
LATER = ((3, "mill", "12:00:50"), (4, "sack", "12:01:05"), (5, "sack", "12:01:20"))


def arrive(folder: Path, number: int, rows: tuple[tuple[int, str, str], ...]) -> None:
    lines = ["id,item,ts", *(f"{id},{item},2024-03-01 {time}" for id, item, time in rows)]
    (folder / "orders").mkdir(exist_ok=True)
    (folder / "orders" / f"{number}.csv").write_text("\n".join(lines) + "\n")


def run(folder: Path, queries: str, until: str) -> mr.Handle:
    net = mr.Network().sql(ORDERS.format(folder=folder) + queries)
    return net.run(on="local", until=until, checkpoint=folder / "state")


def show(handle: mr.Handle) -> None:
    for query in handle.queries:
        for row in handle.results(query).to_pylist():
            print(query, *(f"{value:%H:%M}" if hasattr(value, "hour") else value for value in row.values()), sep="\t")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arrive(folder, 1, EARLIER)
        show(run(folder, BEFORE, "available"))
        arrive(folder, 2, LATER)
        handle = run(folder, AFTER, "end")
        assert handle.evolution is not None, "the queries have changed"
        print(*handle.evolution.lines(), sep="\n")
        show(handle)


if __name__ == "__main__":
    main()
