"""Push and pull on both sides, on Spark: answers are those of committed micro-batches, and outlive the run."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

import millrace as mr
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.source import python_streams
from tests.e2e.commands import wait_for
from tests.unit.hosts.fed import row

pytestmark = [pytest.mark.slow, pytest.mark.spark]

COLUMNS = "symbol STRING, price DOUBLE, ts TIMESTAMP"


def running(folder: Path, pushed: mr.Pushed, polled: mr.Polled) -> mr.Handle:
    net = mr.Network()
    net.stream("ticks", COLUMNS, time="ts", update_key="symbol", source=pushed)
    net.stream("rates", COLUMNS, time="ts", update_key="symbol", source=polled)
    net.sql("CREATE QUERY prices AS SELECT symbol, price FROM ticks")
    net.sql("CREATE QUERY doubled AS SELECT price * 2 AS twice, symbol FROM rates")
    return net.run(on="spark", master="local[2]", trigger="100 milliseconds", checkpoint=folder / "state")


def test_rows_and_answers_are_pushed_and_pulled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_streams, "_AT_ONCE", 1)
    numbers = count(1)

    def ask() -> list[dict[str, Any]]:
        number = next(numbers)
        return [row(number, symbol="A", price=float(number))]

    def prices(handle: mr.Handle) -> dict[str, float]:
        return {each["symbol"]: each["price"] for each in handle.latest("prices").to_pylist()}

    def files() -> list[str]:
        return sorted(path.name for path in (tmp_path / "state" / "feeds" / "ticks").glob("[0-9]*"))

    ticks = mr.Pushed()
    handle = running(tmp_path, ticks, mr.Polled(ask, every="1 hour"))
    seen: dict[str, float] = {}
    try:
        handle.subscribe(
            "prices", lambda rows: seen.update({each["symbol"]: each["price"] for each in rows.to_pylist()})
        )
        ticks.push([row(1, symbol="X", price=7.0), row(1, symbol="Y", price=8.0)])
        wait_for(lambda: seen == {"X": 7.0, "Y": 8.0})
        ticks.push([row(2, symbol="X", price=9.0)])
        wait_for(lambda: prices(handle) == {"X": 9.0, "Y": 8.0})
        assert handle.latest("prices", "Z") is None
        wait_for(lambda: handle.latest("doubled", "A") == {"symbol": "A", "twice": 2.0})
        assert handle.latest("doubled", "A", refresh=True) == {"symbol": "A", "twice": 4.0}
        assert set(handle.staleness("prices").column_names) >= {"symbol", "queue_now", "application_now"}
        wait_for(lambda: files() == ["00000001.parquet"])
        assert handle.metrics().sources["ticks"].received == 3
    finally:
        handle.stop()
    assert handle.metrics().sources["ticks"].received == 3
    ticks = mr.Pushed()
    handle = running(tmp_path, ticks, mr.Polled(lambda: None))
    try:
        assert prices(handle) == {"X": 9.0, "Y": 8.0}
        ticks.push([row(3, symbol="Y", price=1.0)])
        wait_for(lambda: prices(handle) == {"X": 9.0, "Y": 1.0})
        assert files()[-1] == "00000002.parquet"
        handle.drop("prices")
        commits = CommitLog(tmp_path / "state" / "commits")
        wait_for(lambda: "ticks" not in (commits.newest() or {})["sources"])
        handle.add("ADD QUERY again AS SELECT symbol, price FROM ticks")
        wait_for(lambda: (handle.latest("again", "Y") or {}).get("price") == 1.0)
    finally:
        handle.stop()
