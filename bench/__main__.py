"""`python -m bench [NAME ...]`: run workloads, print their tables, and append their results to bench/results."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

WORKLOADS = {
    "grouped_count": "rows per second of Q1 grouped by 65,536 and 1,000,000 pairs: local, Spark host, stock Spark",
    "sliding_count": "rows per second of a count over 60 seconds, every second: the same systems",
    "nexmark_q5": "rows per second of the auctions with the most bids, every 2 of 10 seconds: the same systems",
    "band_join": "rows per second and seconds a micro-batch of a join, +-1 s, 65,536 keys: the same systems",
    "asof_join": "rows per second of as-of joins of recorded and made-up streams: local, Spark host, DuckDB in batch",
    "state_bytes": "bytes of state written per checkpoint and micro-batch while the held state grows",
    "kernel_overhead": "microseconds a row and operator at k = 1, for 1 to 64 operators",
    "spark_settings": "the same on the Spark host alone, by files a micro-batch and number of buckets",
}
DEFAULT = tuple(name for name in WORKLOADS if name != "spark_settings")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(WORKLOADS))
    parser.add_argument("--rows", type=int, default=6_400_000, help="rows of input (default: 6,400,000)")
    parser.add_argument("--rounds", type=int, default=2, help="measured rounds, after one that is not (default: 2)")
    parser.add_argument("--data", type=Path, help="folder of recorded streams, for asof_join (default: ../shared/data)")
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
        given = {"data": options.data} if name == "asof_join" and options.data else {}
        import_module(f"bench.{name}").run(rows=options.rows, rounds=options.rounds, **given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
