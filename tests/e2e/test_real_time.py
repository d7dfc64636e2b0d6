"""000 section 6 in real time: 50 rows a second on one stream, three in all on the other, united in order.

All four variants run at once, each with streams of its own whose rows come 5 milliseconds apart and take turns, so that
what else the machine does hits them alike.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from millrace.hosts.local.host import LocalRun
from millrace.hosts.report import Listeners
from millrace.language import parse_network

pytestmark = [pytest.mark.slow, pytest.mark.alone]

INTERNAL = "INTERNAL TIMESTAMP AS ts"
VARIANTS = {
    "none": f"{INTERNAL} ETS NONE",
    "periodic": f"{INTERNAL} ETS EVERY INTERVAL 100 MILLISECONDS",
    "on_demand": f"{INTERNAL} ETS ON DEMAND",
    "latent": "LATENT TIMESTAMP",
}
SECONDS = 20
SLOW = (4.0, 10.0, 19.4)
MILLISECOND = 1_000

Latencies = npt.NDArray[np.float64]
"""A row a result: when it was due, in seconds since the start, and how long it took, in microseconds."""


def script() -> str:
    statements = []
    for name, contract in VARIANTS.items():
        for kind in ("fast", "slow"):
            columns = f"CREATE STREAM {kind}_{name} (v DOUBLE, due TIMESTAMP)"
            statements.append(f"{columns} {contract} FROM iterable REPLAY BY due")
        branches = [f"SELECT v, due FROM {kind}_{name} WHERE v < 0.95" for kind in ("fast", "slow")]
        order = "" if name == "latent" else " ORDER BY ts"
        statements.append(f"CREATE QUERY {name} AS {' UNION ALL '.join(branches)}{order}")
    return ";".join(statements)


def rows(seconds: Sequence[float] | Latencies, seed: int) -> list[pa.Table]:
    due = pa.array(np.round(np.asarray(seconds) * 1e6).astype(np.int64), pa.timestamp("us", tz="UTC"))
    return [pa.table({"v": np.random.default_rng(seed).random(len(seconds)), "due": due})]


def feeds() -> dict[str, list[pa.Table]]:
    found: dict[str, list[pa.Table]] = {}
    number = np.arange(50 * SECONDS)
    for place, name in enumerate(VARIANTS):
        found[f"fast_{name}"] = rows(number / 50 + 0.005 * ((number + place) % 4), seed=1)
        found[f"slow_{name}"] = rows(np.array(SLOW) + 0.005 * place, seed=2)
    return found


def measured() -> dict[str, Latencies]:
    """The latencies of each variant in one run."""
    delivered: list[tuple[str, int, npt.NDArray[np.int64]]] = []

    def note(query: str, table: pa.Table) -> None:
        delivered.append((query, time.time_ns() // 1_000, table.column("due").cast(pa.int64()).to_numpy()))

    run = LocalRun(parse_network(script()), feeds=feeds(), listeners=Listeners(results=note))
    run.run()
    assert run.intake.pace is not None
    began = run.intake.pace.began - run.intake.pace.origin
    found = {}
    for name in VARIANTS:
        parts = [np.stack([due / 1e6, now - began - due]) for query, now, due in delivered if query == name]
        found[name] = np.concatenate(parts, axis=1)
    return found


def mean_and_p99(latencies: Latencies) -> Latencies:
    return np.array([latencies[1].mean(), np.quantile(latencies[1], 0.99)])


def quieter_half(first: Latencies, second: Latencies) -> list[Latencies]:
    """Both in the half of the seconds in which neither was held up long: a machine at work stops now and then."""
    worst = np.zeros(SECONDS + 1)
    for each in (first, second):
        longest = np.zeros_like(worst)
        np.maximum.at(longest, each[0].astype(int), each[1])
        worst += longest
    quiet = worst <= np.median(worst)
    return [each[:, quiet[each[0].astype(int)]] for each in (first, second)]


def within_a_millisecond(first: Latencies, second: Latencies) -> bool:
    return bool((mean_and_p99(first) - mean_and_p99(second) <= MILLISECOND).all())


def test_on_demand_ets_cost_less_than_a_millisecond_and_save_orders() -> None:
    for _ in range(2):
        found = measured()
        on_demand, latent = found["on_demand"], found["latent"]
        close = within_a_millisecond(on_demand, latent) or within_a_millisecond(*quieter_half(on_demand, latent))
        if close:
            break
    table = {name: (mean_and_p99(each) / MILLISECOND).round(3).tolist() for name, each in found.items()}
    assert close, table
    assert all(each.shape[1] > 0.9 * 50 * SECONDS for each in found.values()), "95 % of the rows pass"
    assert (mean_and_p99(found["none"]) > 100 * mean_and_p99(on_demand)).all(), table
    none, periodic, demanded = (mean_and_p99(found[name])[0] for name in ("none", "periodic", "on_demand"))
    assert demanded < periodic < none, table
    assert periodic > 30 * MILLISECOND, "on average half the time between two beats"
