"""`python -m bench [NAME ...]`: run workloads, print their tables, and append their results to bench/results."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

WORKLOADS = {
    "grouped_count": "rows per second of Q1 grouped by 65,536 and 1,000,000 pairs: local, Spark host, stock Spark",
    "sliding_count": "rows per second of a count over 60 seconds, every second: the same systems",
    "nexmark_q5": "rows per second of the auctions with the most bids, every 2 of 10 seconds: the same systems",
    "band_join": "rows per second and seconds per micro-batch of a join, +-1 s, 65,536 keys: the same systems",
    "asof_join": "rows per second of as-of joins of recorded and made-up streams: local, Spark host, DuckDB in batch",
    "functions": "processor time of SQL functions by family beside DuckDB and polars, as ratios: local",
    "table_join": "clicks joined with 5 million users that are refreshed while it runs: local, Spark host",
    "update_queue": "rows per second into and out of an update queue beside a dict; update queries beside stock Spark",
    "stale_quotes": "staleness per symbol of recorded quotes and trades under overload, by queue: local, Spark host",
    "state_bytes": "bytes of state written per checkpoint and micro-batch while the held state grows",
    "kernel_overhead": "microseconds per row and operator at k = 1, for 1 to 64 operators",
    "push_latency": "milliseconds from a window's end to its result, for rows that are pushed one by one: local",
    "dead_partition": "seconds from a window's end to its result when a partition of its stream dies: local, Spark",
    "page": "rows per second with the live page followed, not read, and without a server, as ratios: local",
    "spark_table": "the Spark host beside stock Spark with both state stores, over all kinds of queries, as one table",
    "growth": "seconds per micro-batch with state ten times as large: local, Spark host",
    "buckets": "seconds per micro-batch of Q1 on the Spark host with 2, 4, 8 and 16 buckets",
    "kafka": "a count from topic to topic: Spark host, stock Spark; local, a loop in Python, quixstreams; kills",
    "soak": "memory, state and checkpoint of a live run on Spark for many minutes: do they grow?",
}
SEPARATE = ("functions", "stale_quotes", "dead_partition", "spark_table", "growth", "buckets", "kafka", "soak")
DEFAULT = tuple(name for name in WORKLOADS if name not in SEPARATE)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(WORKLOADS))
    parser.add_argument("--rows", type=int, default=6_400_000, help="rows of input (default: 6,400,000)")
    parser.add_argument("--rounds", type=int, default=2, help="measured rounds, after one that is not (default: 2)")
    parser.add_argument("--data", type=Path, help="folder of recorded streams, for asof_join and stale_quotes")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="CASE",
        help="of spark_table: this workload alone; of stale_quotes: this recording, host or queue; of kafka: this part",
    )
    parser.add_argument("--resume", action="store_true", help="of spark_table: go on with the last run")
    parser.add_argument(
        "--from-results", action="store_true", help="of spark_table: print the last results, run nothing"
    )
    parser.add_argument("--minutes", type=float, default=20.0, help="of soak: how long it runs (default: 20)")
    parser.add_argument("--list", action="store_true", help="list the workloads")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{name:<16} {what}" for name, what in WORKLOADS.items()))
        return 0
    unknown = [name for name in options.names if name not in WORKLOADS]
    if unknown:
        print(f'bench: there is no workload "{unknown[0]}"\nhint: They are {", ".join(WORKLOADS)}.', file=sys.stderr)
        return 2
    for name in options.names or DEFAULT:
        import_module(f"bench.workloads.{name}").run(rows=options.rows, rounds=options.rounds, **_given(name, options))
    return 0


def _given(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of a workload beside its size."""
    if name == "soak":
        return {"minutes": options.minutes}
    if name == "spark_table":
        return {"only": options.only, "resume": options.resume, "from_results": options.from_results}
    given = {"data": options.data} if name in ("asof_join", "stale_quotes") and options.data else {}
    return {**given, "only": options.only} if name in ("stale_quotes", "kafka") else given


if __name__ == "__main__":
    sys.exit(main())
