"""A live run on Spark for many minutes: does what it holds grow?

A count, a band join and an as-of join over files that keep arriving. Every 15 seconds: the resident memory of the
driver, of its JVM and of the Python workers, the bytes of state, and the size of the checkpoint. Java lets its heap
grow to the size that it was given before it cleans it up: so every minute it is made to, and the bytes of the objects
that are left are looked at, too.

Rules:
- A page that several processes share is charged to each in part, so that the sum is what the machine gives.
- What is seen before the warm-up is over does not count: Java compiles and fills its heap, and Spark begins to drop old
  batches only after a hundred.
- The slope is the median of the slopes between all pairs of samples. A figure is flat if by it the measured part rose
  by no more than 5 % an hour, or by less than a grain: 8 MB of memory, 1 MB of state and checkpoint.
- Files that have been read stay, as a checkpoint needs them: they are small and few.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.measures import result_log
from bench.measures.memory import end, resident, tree
from bench.measures.spark_outcome import size

MB = 2**20
SAMPLE = 15.0
TRIGGER = 1.0
RATE = 2_000
"""Rows per second of each stream."""
KEYS = 10_000
COLLECT = 60.0
"""Seconds between two collections of Java's garbage."""
WARM_UP = 240.0
"""Seconds; never more than half of the run."""
LIMIT = 0.05
"""The share an hour that counts as flat."""
FIGURES = {
    "driver": 8 * MB, "JVM": 8 * MB, "Java objects": 2 * MB, "Python workers": 8 * MB, "state": MB, "checkpoint": MB
}  # fmt: skip
"""What is looked at, and the rise that is below its grain."""
STREAMS = ("orders", "prices")
SCRIPT = """
CREATE STREAM orders (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
  FROM parquet OPTIONS (path '{folder}/orders');
CREATE STREAM prices (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
  FROM parquet OPTIONS (path '{folder}/prices');
CREATE SINK counts TO parquet OPTIONS (path '{folder}/out/counts');
CREATE SINK pairs TO parquet OPTIONS (path '{folder}/out/pairs');
CREATE SINK latest TO parquet OPTIONS (path '{folder}/out/latest');
CREATE QUERY counted INTO counts AS
  SELECT k, count(*) AS n FROM orders [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY k;
CREATE QUERY paired INTO pairs AS
  SELECT o.k, o.v AS order_v, p.v FROM orders AS o JOIN prices AS p
  ON o.k = p.k AND p.ts BETWEEN o.ts - INTERVAL 1 SECOND AND o.ts + INTERVAL 1 SECOND;
CREATE QUERY in_force INTO latest AS
  SELECT o.k, o.v AS order_v, p.v FROM orders AS o ASOF JOIN prices AS p ON p.ts <= o.ts AND p.k = o.k;
"""

Sample = dict[str, float]
"""The seconds since the start (`at`), and bytes of each figure."""


@dataclass(frozen=True)
class Slope:
    """How a figure went after the warm-up: its median, and its rise by the median slope."""

    middle: float
    rise: float
    hours: float
    grain: float

    @property
    def share(self) -> float:
        """The rise an hour, as a part of the median."""
        return self.rise / self.hours / self.middle if self.middle and self.hours else 0.0

    @property
    def flat(self) -> bool:
        return self.share <= LIMIT or self.rise < self.grain


def run(rows: int, rounds: int, minutes: float = 20.0) -> None:
    """Run so many minutes, print a table of samples and slopes, and append the slopes to the results."""
    around = result_log.circumstances()
    with tempfile.TemporaryDirectory(prefix="millrace-soak-") as made:
        samples, batches, read = soak(Path(made), minutes * 60)
    warm = min(WARM_UP, minutes * 30)
    slopes = {name: slope_of(samples, name, warm) for name in FIGURES}
    print("\n".join(_table(samples, slopes)))
    common = {"minutes": minutes, "warm_up_seconds": warm, "batches": batches, "rows": read}
    results = [
        {"system": "Spark host", **common, "figure": name, "bytes": round(each.middle), "rise_bytes": round(each.rise)}
        | {"rise_an_hour": round(each.share, 4), "flat": each.flat}
        for name, each in slopes.items()
    ]
    print(f"\n{verdict(slopes)}  {batches:,} micro-batches, {read:,} rows")
    print(f"appended to {result_log.append('soak', around, results)}")


def soak(folder: Path, seconds: float) -> tuple[list[Sample], int, int]:
    """Samples of a run of that length from its first commit on, its micro-batches, and the rows that it read."""
    for name in STREAMS:
        (folder / name).mkdir()
    script, checkpoint = folder / "soak.sql", folder / "state"
    script.write_text(SCRIPT.format(folder=folder))
    options = ["--checkpoint", str(checkpoint), "--trigger", f"{TRIGGER:g} seconds"]
    with (folder / "said").open("wb") as said:
        command = [sys.executable, "-m", "millrace", "run", str(script), *options]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            samples = _watch(process, folder, checkpoint, seconds)
        finally:
            end(process.pid)
            process.wait()
    newest = newest_commit(checkpoint)
    return samples, newest["batch"] + 1, sum(known["received"] for known in newest["sources"].values())


def _watch(process: subprocess.Popen[bytes], folder: Path, checkpoint: Path, seconds: float) -> list[Sample]:
    """Feed the run and look at it, from its first commit on."""
    samples: list[Sample] = []
    number, began, objects = 0, None, 0.0
    while began is None or time.monotonic() - began < seconds:
        if process.poll() is not None:
            raise SystemExit(f"the run ended by itself:\n{(folder / 'said').read_text()[-2000:]}")
        # Before its first commit the run gets one file, so that it does not begin with a backlog.
        for index, name in enumerate(STREAMS if began or not number else ()):
            send(folder / name, number, seed=number * len(STREAMS) + index)
        number += 1
        if began is None and newest_commit(checkpoint):
            began = time.monotonic()
        if began is not None and time.monotonic() - began >= SAMPLE * (len(samples) + 1):
            at = time.monotonic() - began
            objects = objects if at % COLLECT > SAMPLE else java_objects(process.pid)
            samples.append({"at": at, **look(process.pid, checkpoint), "Java objects": objects})
        time.sleep(TRIGGER - time.time() % TRIGGER)
    return samples


def send(folder: Path, number: int, seed: int) -> None:
    """The rows of the last second, as a file."""
    draw, now = np.random.default_rng(seed), time.time_ns() // 1000
    count = round(RATE * TRIGGER)
    times = np.linspace(now - TRIGGER * 1e6, now, count, endpoint=False).astype(np.int64)
    table = pa.table(
        {
            "k": pa.array(draw.integers(0, KEYS, count, dtype=np.int32)),
            "v": pa.array(draw.integers(0, 1000, count, dtype=np.int32)),
            "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
        }
    )
    hidden = folder / f".{number:08d}"
    pq.write_table(table, hidden)
    hidden.replace(folder / f"{number:08d}.parquet")


def look(pid: int, checkpoint: Path) -> Sample:
    """What the run holds now."""
    found = dict.fromkeys(FIGURES, 0.0)
    for each in tree(pid):
        kind = "driver" if each == pid else "JVM" if _name(each) == "java" else "Python workers"
        found[kind] += resident(each)
    found["state"] = (newest_commit(checkpoint).get("metrics") or {}).get("state_bytes", 0)
    found["checkpoint"] = size(checkpoint)
    return found


def java_objects(pid: int) -> float:
    """The bytes of all Java objects of a run that are in use, after those that are not have been cleared away."""
    (java,) = (each for each in tree(pid) if _name(each) == "java")
    histogram = subprocess.run(["jcmd", str(java), "GC.class_histogram"], capture_output=True, text=True, check=True)
    return float(histogram.stdout.splitlines()[-1].split()[-1])


def newest_commit(checkpoint: Path) -> dict[str, Any]:
    """The last record of a batch; empty if there is none."""
    for path in sorted((checkpoint / "commits").glob("*.json"), reverse=True):
        with suppress(OSError):
            return dict(json.loads(path.read_text()))
    return {}


def slope_of(samples: Sequence[Sample], name: str, warm: float) -> Slope:
    """How a figure went after the warm-up."""
    seen = [(each["at"], each[name]) for each in samples if each["at"] >= warm]
    if len(seen) < 2:
        return Slope(seen[0][1] if seen else 0.0, 0.0, 0.0, FIGURES[name])
    slope = median((later - value) / (then - at) for (at, value), (then, later) in combinations(seen, 2))
    length = seen[-1][0] - seen[0][0]
    return Slope(median(value for _, value in seen), slope * length, length / 3600, FIGURES[name])


def verdict(slopes: Mapping[str, Slope]) -> str:
    """All of it in a line."""
    grown = [name for name, each in slopes.items() if not each.flat]
    return f"grows: {', '.join(grown)}." if grown else "flat: all of them."


def _table(samples: Sequence[Sample], slopes: Mapping[str, Slope]) -> list[str]:
    lines = ["seconds  " + "  ".join(f"{f'{name}, MB':>18}" for name in FIGURES)]
    for each in samples:
        lines.append(f"{each['at']:7.0f}  " + "  ".join(f"{each[name] / MB:18.1f}" for name in FIGURES))
    lines.append("an hour  " + "  ".join(f"{f'{slopes[name].share:+.1%}':>18}" for name in FIGURES))
    lines.append("rise     " + "  ".join(f"{slopes[name].rise / MB:18.1f}" for name in FIGURES))
    lines.append("         " + "  ".join(f"{'flat' if slopes[name].flat else 'grows':>18}" for name in FIGURES))
    return lines


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""
