"""Generated links for Q1: two busy ones, skewed against each other, and a sparse one that falls silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
SCHEMA = pa.schema([("srcIP", pa.string()), ("destIP", pa.string()), ("len", pa.int32()),
                    ("ts", pa.timestamp("us", tz="UTC"))])  # fmt: skip
LINKS = ("control", "main1", "main2")


def links(seed: int, disorder: dict[str, int]) -> dict[str, pa.Table]:
    """The rows of each link, shaken within its disorder (seconds)."""
    random = np.random.default_rng(seed)
    skew = int(random.integers(0, 90)) * SECOND
    return {
        "control": _link(random, 12, 60, START, disorder["control"]),
        "main1": _link(random, 700, 300, START, disorder["main1"]),
        "main2": _link(random, 500, 300, START - skew, disorder["main2"]),
    }


def _link(random: np.random.Generator, count: int, seconds: int, start: int, disorder: int) -> pa.Table:
    times = start + np.sort(random.integers(0, seconds * SECOND, count))
    shaken = times - random.integers(0, disorder * SECOND + 1, count)
    return pa.table(
        {
            "srcIP": _hosts(random, count),
            "destIP": _hosts(random, count),
            "len": pa.array(random.integers(40, 1500, count), pa.int32()),
            "ts": pa.array(shaken).cast(SCHEMA.field("ts").type),
        },
        schema=SCHEMA,
    )


def _hosts(random: np.random.Generator, count: int) -> pa.Array:
    numbers: Any = random.integers(0, 6, count)
    return pa.array([None if number == 0 else f"10.0.0.{number}" for number in numbers], pa.string())


def declarations(disorder: dict[str, int]) -> str:
    columns = "srcIP STRING, destIP STRING, len INT, ts TIMESTAMP"
    return "\n".join(
        f"CREATE STREAM {link} ({columns}) TIMESTAMP BY ts DISORDER INTERVAL {disorder[link]} SECONDS FROM iterable;"
        for link in LINKS
    )
