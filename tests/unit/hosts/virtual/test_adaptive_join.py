"""The adaptive join against both methods in virtual time: streams at 10:1 that change places in mid-run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import VirtualRun
from millrace.kernel.elements import TIMESTAMP
from millrace.kernel.metrics import JoinMetrics
from millrace.language import parse_network

SECOND = 1_000_000
LENGTH, WINDOW = 30, 6
RATES = (1, 10)


def arrivals(at_random: bool, first: int, second: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rows at one rate for half of the run, then at the other."""
    random, half = np.random.default_rng(seed), LENGTH // 2
    found = []
    for begin, rate in ((0, first), (half, second)):
        times = random.integers(0, half * SECOND, random.poisson(rate * half)) if at_random else None
        found.append(begin * SECOND + (np.arange(rate * half) * SECOND // rate if times is None else np.sort(times)))
    return np.concatenate(found).astype(np.int64)


def response(method: str, load: float, at_random: bool) -> tuple[float, JoinMetrics]:
    """The mean time from the arrival of a row to its match with the row of the other stream before it."""
    a, b = arrivals(at_random, *RATES, seed=1), arrivals(at_random, *reversed(RATES), seed=2) + 1
    before = np.searchsorted(b, a) - 1, np.searchsorted(a, b) - 1
    feeds = {
        name: [pa.table({"id": np.arange(len(times)), "p": partner, "ts": pa.array(times).cast(TIMESTAMP)})]
        for name, times, partner in zip("ab", (a, b), before, strict=True)
    }
    streams = "".join(
        f"CREATE STREAM {name} (id BIGINT, p BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE FROM iterable;"
        for name in "ab"
    )
    query = f"""CREATE QUERY q WITH (join = '{method}') AS SELECT greatest(x.ts, y.ts) AS ts
        FROM a [RANGE {WINDOW} SECONDS] AS x, b [RANGE {WINDOW} SECONDS] AS y
        WHERE x.id - y.p = 0 OR y.id - x.p = 0 ORDER BY greatest(x.ts, y.ts);"""
    pair = load / (2 * WINDOW * RATES[0] * RATES[1]) * SECOND
    run = VirtualRun(parse_network(streams + query), feeds=feeds, cost=Costs(pair=pair), rows_per_step=1)
    run.run()
    took = [each.now - each.rows.column("ts").cast(pa.int64()).to_numpy() for each in run.deliveries]
    return float(np.concatenate(took).mean()) / SECOND, run.report().joins["q"]


@pytest.mark.slow
@pytest.mark.parametrize("at_random", [False, True], ids=["even", "Poisson"])
def test_the_adaptive_join_is_within_a_tenth_of_the_better_method(at_random: bool) -> None:
    (sync, _), (ordered, _), (adaptive, metrics) = (
        response(method, 0.3, at_random) for method in ("sync_filter", "filter_order", "adaptive")
    )
    assert adaptive <= 1.1 * min(sync, ordered)
    assert (metrics.mode, metrics.switches) == ("filter_order", 1), "it does not flap"
    assert metrics.waiting == 0
