"""Seconds from the end of a window until its result can be read, in a busy stream of which one partition dies.

Four links send at a steady rate, all in one stream; from a moment on nothing comes from the last one. The stream is
partitioned by link, with a disorder of a second and a lull of three, and windows of five seconds are counted. On Spark
its rows are a DataFrame over the source `rate`, from which the link is filtered out; on the local host a thread pushes
them one by one. A clock of its own looks for results.

While all links send, a result can be there a second after the end of its window, the disorder. When one is dead, it is
three seconds, the lull: the disorder of the others is over by then. What it takes longer is told apart: until the row
leaves its operator (`released_at`, on Spark when the micro-batch begins; the source `rate` gives the rows of a second
together), and from then until it is read.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median
from threading import Thread
from typing import Any

import millrace as mr
from bench.measures import result_log

RATE = 1_000
"""Rows per second, of all links."""
DISORDER, LULL = 1, 3
ALIVE, DEAD = 30, 60
"""Seconds before the link dies, and after."""
TRIGGER = "500 milliseconds"
STREAM: dict[str, Any] = {
    "time": "ts",
    "partitioned_by": "link",
    "disorder": f"{DISORDER} second",
    "lull": f"{LULL} seconds",
}
COUNT = """CREATE QUERY q WITH (released = 'on') AS
  SELECT window_end, count(*) AS n FROM s [RANGE 5 SECONDS SLIDE 5 SECONDS WA ts]"""
_LOOK = 0.002


def run(rows: int, rounds: int) -> None:
    """Measure both hosts, print a line per window, and append medians."""
    around, entries = result_log.circumstances(), []
    for host, measure in {"local": _local, "spark": _spark}.items():
        print(
            f"{host}: seconds after the end of each window\n{'waits for':>10} {'of it':>6} {'release':>8} {'read':>6}"
        )
        sums = defaultdict[str, list[tuple[float, float, float]]](list)
        for how, released, read in measure():
            waits = LULL if how == "ets" else DISORDER
            print(f"{'lull' if how == 'ets' else 'disorder':>10} {waits:>6} {released - waits:>8.2f} {read:>6.2f}")
            sums[how].append((waits, released - waits, read - released))
        for how, parts in sums.items():
            waits, release, read = (median(each) for each in zip(*parts, strict=True))
            total = [sum(each) for each in parts]
            told = {"host": host, "released_how": how, "windows": len(parts), "waits_s": waits}
            entries.append(
                {**told, "release_s": release, "read_s": read, "median_s": median(total), "most_s": max(total)}
            )
            print(f"{host}, by {how}: median {median(total):.2f} s = {waits} + {release:.2f} + {read:.2f}", flush=True)
    print(f"appended to {result_log.append('dead_partition', around, entries)}")


def _local() -> list[tuple[str, float, float]]:
    source, net = mr.Pushed(), mr.Network()
    net.stream("s", "link BIGINT, ts TIMESTAMP", source=source, **STREAM)
    began, pushing = time.time(), True

    def push() -> None:
        count = 0
        while pushing:
            if count % 4 < 3 or time.time() < began + ALIVE:
                source.push({"link": count % 4, "ts": time.time_ns() // 1_000})
            count += 1
            time.sleep(max(0.0, began + count / RATE - time.time()))

    thread = Thread(target=push)

    def start() -> mr.Handle:
        thread.start()
        return net.sql(COUNT).run(on="local")

    try:
        return _watched(start)
    finally:
        pushing = False
        thread.join()


def _spark() -> list[tuple[str, float, float]]:
    # Imported here: the local host is measured without Spark.
    from pyspark.sql import functions as F

    session = mr.spark_session()
    rate = session.readStream.format("rate").name("rate").option("rowsPerSecond", RATE).load()
    rows = rate.select((F.col("value") % 4).alias("link"), F.col("timestamp").alias("ts"))
    dies = F.lit(time.time() + ALIVE + 10).cast("timestamp")
    net = mr.Network()
    net.stream("s", rows.where((F.col("link") < 3) | (F.col("ts") < dies)), **STREAM)
    try:
        return _watched(lambda: net.sql(COUNT).run(on="spark", trigger=TRIGGER))
    finally:
        session.stop()


def _watched(start: Callable[[], mr.Handle]) -> list[tuple[str, float, float]]:
    """For each window what released it, and the seconds from its end until it was released and until it was seen."""
    handle = start()
    results, seen, found = handle._run.memory["q"], 0, list[tuple[str, float, float]]()
    until = time.time() + ALIVE + DEAD
    while (now := time.time()) < until:
        fresh = list(results)[seen:]
        seen += len(fresh)
        for row in (row for table in fresh for row in table.to_pylist()):
            end = row["window_end"].timestamp()
            found.append((row["released_how"], row["released_at"].timestamp() - end, now - end))
        time.sleep(_LOOK)
    handle.stop()
    # The first windows are those of the start.
    return found[2:]
