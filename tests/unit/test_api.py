from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millrace as mr

COLUMNS = "k STRING, n INT, ts TIMESTAMP"
SECOND = 1_000_000


def rows(*pairs: tuple[str, int, int]) -> list[dict[str, Any]]:
    return [{"k": key, "n": number, "ts": second * SECOND} for key, number, second in pairs]


def test_the_methods_build_the_query_that_sql_would() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", disorder="5 seconds", source=[rows(("x", 1, 5), ("y", 2, 1))])
    b = net.stream("b", COLUMNS, time="ts", source=[rows(("x", 10, 3))])
    net.query("sorted", a.union(b).where("n > 1").order_by_time())
    net.query("sums", a.union(b).window(range="10 seconds").group_by("k").agg(s="sum(n)"))
    handle = net.run(on="local", until="end")
    assert handle.results("sorted").column("n").to_pylist() == [2, 10]
    sums = {row["k"]: row["s"] for row in handle.results("sums").to_pylist()}
    assert sums == {"x": 11, "y": 2}


def test_a_relation_can_be_selected_and_filtered_again() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[rows(("x", 1, 1), ("x", 2, 2), ("x", 3, 3))])
    again = a.select("k", twice="n * 2").where("twice > 2").select(more="twice + 1")
    assert again.schema.names == ["more"]
    handle = net.query("q", again).run(on="local", until="end")
    assert handle.results("q").column("more").to_pylist() == [5, 7]


def test_a_mistake_is_told_at_once_and_leaves_the_network_as_it_was() -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[])
    with pytest.raises(mr.MillraceError, match='column "nn" does not exist'):
        a.where("nn > 1")
    with pytest.raises(mr.MillraceError, match="one kind of time"):
        net.stream("b", COLUMNS, time="ts", latent=True)
    with pytest.raises(mr.MillraceError):
        net.stream("c", "k SOMETHING", latent=True)
    net.query("q", a.select("k")).run(on="local", until="end")


def test_a_query_can_write_files(tmp_path: Path) -> None:
    net = mr.Network()
    a = net.stream("a", COLUMNS, time="ts", source=[rows(("x", 1, 1))])
    net.query("q", a, sink="parquet", path=tmp_path / "out").run(on="local", until="end")
    assert pq.read_table(tmp_path / "out").num_rows == 1


def test_a_live_run_goes_on_until_it_is_stopped() -> None:
    release = threading.Event()

    def feed() -> Iterator[list[dict[str, Any]]]:
        yield rows(("x", 1, 1))
        release.wait(10)
        yield rows(("x", 2, 2))
        while True:
            time.sleep(0.01)
            yield []

    net = mr.Network()
    net.query("q", net.stream("a", COLUMNS, time="ts", source=feed()))
    handle = net.run(on="local")
    release.set()
    for _ in range(500):
        if handle.results("q").num_rows == 2:
            break
        time.sleep(0.01)
    assert handle.stop().results("q").column("n").to_pylist() == [1, 2]
    assert handle.metrics().sources["a"].received == 2


def test_rows_that_do_not_fit_the_columns_are_refused() -> None:
    net = mr.Network()
    net.query("q", net.stream("a", COLUMNS, time="ts", source=[[{"k": "x", "n": "many", "ts": 0}]]))
    with pytest.raises(mr.MillraceError, match='stream "a" was fed rows that do not fit'):
        net.run(on="local", until="end")


def test_sql_and_python_share_a_network() -> None:
    net = mr.Network()
    table = pa.table({"k": ["x"], "n": pa.array([1], pa.int32()), "ts": pa.array([0], pa.timestamp("us", tz="UTC"))})
    net.stream("a", COLUMNS, time="ts", source=[table])
    net.sql("CREATE QUERY q AS SELECT n + 1 AS m FROM a;")
    assert net.run(on="virtual", until="end").results("q").to_pylist() == [{"m": 2}]
    assert "query q" in net.explain()
