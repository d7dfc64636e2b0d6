"""A user's own network in the simulator: it holds, or is shown small; from SQL, from Python, with an oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

import millrace as mr
from millrace.errors import RequestError
from millrace.testing import SimulationFailed, simulate
from tests.simulation.seeded_faults import a_result_twice_after_a_restart

SQL = """
CREATE STREAM s (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
  ETS ON DEMAND SKEW INTERVAL 1 SECOND FROM iterable;
CREATE QUERY q AS SELECT k, sum(v) AS total FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k;
"""
ROWS = pa.table(
    {
        "k": [("a", "b", "c")[number % 3] for number in range(40)],
        "v": pa.array(range(40), pa.int32()),
        "ts": pa.array([number * 1_500_000 for number in range(40)], pa.timestamp("us", tz="UTC")),
    }
)
Row = dict[str, Any]


def totals(rows: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    found: dict[tuple[int, str], int] = {}
    for row in rows["s"]:
        key = int(row["ts"].timestamp()) // 10, row["k"]
        found[key] = found.get(key, 0) + row["v"]
    return {"q": [{"k": key, "total": total} for (_, key), total in found.items()]}


def test_a_network_that_is_killed_gives_what_it_gives_in_one_go() -> None:
    for seed in range(3):
        assert sum(row["total"] for row in simulate(SQL, seed, {"s": ROWS})["q"]) == sum(range(40))


def test_a_network_written_in_python_is_simulated_too() -> None:
    net = mr.Network()
    s = net.stream("s", "k STRING, v INT, ts TIMESTAMP", time="ts")
    net.query("q", s.where("v > 10").select("k", "v"))
    assert len(simulate(net, 1, {"s": ROWS})["q"]) == 29


def test_an_oracle_takes_the_place_of_one_go() -> None:
    with pytest.raises(SimulationFailed, match=r'query "q" gave'):
        simulate(SQL, 1, {"s": ROWS}, oracle=lambda rows: {"q": []})


@pytest.mark.slow
def test_a_slip_is_found_made_small_and_can_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    a_result_twice_after_a_restart(monkeypatch)
    with pytest.raises(SimulationFailed) as failed:
        for seed in range(20):
            simulate(SQL, seed, {"s": ROWS})
    assert "replay it: simulate(network, seed=" in str(failed.value)
    assert "s: 40 rows" not in str(failed.value)


def test_times_of_the_clock_need_an_oracle() -> None:
    internal = "CREATE STREAM s (v INT, ts TIMESTAMP) INTERNAL TIMESTAMP AS ts FROM iterable; SELECT v FROM s;"
    with pytest.raises(RequestError, match="get their time from the clock"):
        simulate(internal, 1, {"s": ROWS.select(["v"])})
