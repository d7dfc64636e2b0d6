"""Rows per second into and out of an update queue, and memory per key, beside a dict of latest values; then on Spark.

On Spark the peer is the latest row of each key by `max_by`, merged into a table in `foreachBatch`: stock Spark has
nothing else for it, for dropDuplicates keeps the first row of a key. Both read the same files, one a micro-batch, and
the last answer of every key is compared with DuckDB's.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

from bench.measures import result_log
from bench.measures.answers import WrongAnswers
from bench.measures.comparison import OURS, Speed, compare
from bench.queries.latest_values import check_latest, write_latest
from bench.systems.engines import Engine, stock_spark
from bench.systems.queue_speed import KEEPERS, Load, bytes_a_key, measured

KEYS = (1_000, 65_536, 1_000_000)
ROWS = {1: 20_000, 1_000: 400_000, 65_536: 2_097_152}
"""How many rows enter, by the size of a batch, of 6,400,000 that are asked for."""
FILES = 8
SPARK_KEYS = 65_536
ENGINES: dict[str, Engine] = {**OURS, "stock Spark, max_by": partial(stock_spark, settings={})}
_ASKED = 6_400_000


def run(rows: int, rounds: int) -> None:
    """Measure the queue alone, then update queries; print tables and append the results."""
    around = result_log.circumstances()
    lines = [line for batch in ROWS for keys in KEYS for line in _speeds(Load(keys, batch, _part(rows, batch)), rounds)]
    lines += _memory(max(KEYS) * rows // _ASKED)
    print(f"appended to {result_log.append('update_queue', around, lines)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as name:
        _on_spark(Path(name), rows // 4, rounds)


def _part(rows: int, batch: int) -> int:
    return max(batch, ROWS[batch] * rows // _ASKED)


def _speeds(load: Load, rounds: int) -> list[dict[str, Any]]:
    """A line for each: median rows per second into it and out of it."""
    print(f"{load.keys:,} keys, batches of {load.batch:,}:", flush=True)
    lines, answers = [], None
    for name in KEEPERS:
        speeds = [measured(name, load) for _ in range(rounds)]
        if answers is not None and speeds[-1].answers != answers:
            raise WrongAnswers(f"bench: {name}: other rows have left than from the others")
        answers = speeds[-1].answers
        entered, left = median(each.entered for each in speeds), median(each.left for each in speeds)
        print(f"  {name:<20} {entered:>12,.0f} rows/s in {left:>12,.0f} rows/s out", flush=True)
        known = {"keys": load.keys, "batch": load.batch, "rows": load.rows, "what": name}
        lines.append({**known, "entered_per_second": round(entered), "left_per_second": round(left)})
    return lines


def _memory(keys: int) -> list[dict[str, Any]]:
    print(f"memory of {keys:,} keys:")
    lines = []
    for name in KEEPERS:
        # A process of its own: what another one has freed would be taken up again unseen.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
            waiting, left = apart.submit(bytes_a_key, name, keys).result()
        print(
            f"  {name:<20} {waiting:>6,.0f} bytes per key that waits, {left:>6,.0f} when its row has left", flush=True
        )
        known = {"keys": keys, "what": name}
        lines.append({**known, "bytes_waiting": round(waiting), "bytes_left": round(left)})
    return lines


def _on_spark(folder: Path, rows: int, rounds: int) -> None:
    size = max(1, rows // FILES)
    print(f"{FILES} x {size:,} updates of {SPARK_KEYS:,} keys:", flush=True)
    work = write_latest(folder / "in", FILES, size, SPARK_KEYS)
    speeds = compare(
        "update_queue", work, folder, rounds, engines=ENGINES, files_per_batch=1, check=check_latest, keys=SPARK_KEYS
    )
    for engine, found in speeds.items():
        if (under_way := _under_way(found, size)) is not None:
            print(f"{engine}: {under_way:,.0f} rows/s under way", flush=True)


def _under_way(found: Speed, size: int) -> float | None:
    return None if found.batch is None else size / found.batch
