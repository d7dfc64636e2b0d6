"""Monitoring: what a run counts, and what it waits for.

python examples/cookbook/monitoring.py
"""

from __future__ import annotations

import millrace as mr

QUERIES = """
CREATE STREAM departures (flight STRING, origin STRING, scheduled TIMESTAMP)
  TIMESTAMP BY scheduled DISORDER INTERVAL 2 HOURS
  FROM csv OPTIONS (path 'examples/cookbook/data/departures.csv');

CREATE QUERY per_day AS SELECT window_start, window_end, count(*) AS flights FROM departures [RANGE 1 DAY SLIDE 1 DAY];
"""
SHOWN = ("rows_in", "rows_out", "rows_late", "rows_quarantined", "rows_buffered")


def main() -> None:
    handle = mr.Network().sql(QUERIES).run(on="local", until="available")
    for line in handle.metrics_text().splitlines():
        if line.startswith(tuple(f"millrace_{name}" for name in SHOWN)):
            print(line)
    print(*str(handle.why()).splitlines()[1:4], sep="\n")


if __name__ == "__main__":
    main()
