"""Latent streams on every host: what comes is passed on, whatever other streams do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import millrace as mr
from millrace.hosts.run_options import HostName
from millrace.testing.hosts import Host
from tests.e2e.commands import RunOn

UNITED = "CREATE QUERY q AS SELECT v FROM a UNION SELECT v FROM b WITH (baseline = 'in_order');"
ROWS = pa.table({"v": pa.array([1, 2, 3], pa.int32())})


@pytest.mark.parametrize("name", ["local", "virtual"])
def test_a_latent_union_in_order_waits_for_no_stream(name: HostName) -> None:
    streams = "".join(f"CREATE STREAM {name} (v INT) LATENT TIMESTAMP ETS NONE FROM iterable;\n" for name in "ab")
    answer = Host(name).run(streams + UNITED, {"a": ROWS, "b": ROWS.slice(0, 0)}, ending="available")
    assert sorted(row["v"] for row in answer["q"]) == [1, 2, 3]


@pytest.mark.spark
def test_a_latent_union_waits_for_no_folder_that_is_empty_on_spark(run_on: RunOn, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "1.csv").write_text("v\n1\n2\n3\n")
    stream = "CREATE STREAM {0} (v INT) LATENT TIMESTAMP ETS NONE FROM csv OPTIONS (path '{0}');\n"
    (tmp_path / "q.sql").write_text("".join(map(stream.format, "ab")) + UNITED)
    done = run_on("spark", "q.sql", "--available-now", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(f'"v":{value}' in done.stdout for value in (1, 2, 3)), done.stdout


def test_python_unites_latent_streams_in_order_without_waiting() -> None:
    net = mr.Network()
    a, b = (net.stream(name, "v INT", latent=True, source=rows) for name, rows in (("a", ROWS.to_pylist()), ("b", [])))
    net.query("q", a.union(b), settings={"baseline": "in_order"})
    net.query("n", a.window(range="1 minute", slide="1 minute").agg(n="count(*)"))
    handle = net.run(on="local", until="end")
    assert sorted(handle.results("q").column("v").to_pylist()) == [1, 2, 3]
    assert handle.results("n").column("n").to_pylist() == [3]


def test_the_command_line_counts_latent_rows_and_says_that_they_need_no_ets(run_on: RunOn, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("v\n1\n2\n3\n")
    stream = "CREATE STREAM a (v INT) LATENT TIMESTAMP{} FROM csv OPTIONS (path 'a.csv');\n"
    query = "CREATE QUERY q AS SELECT count(*) AS n FROM a [RANGE 1 DAY SLIDE 1 DAY];"
    (tmp_path / "q.sql").write_text(stream.format("") + query)
    done = run_on("local", "q.sql", "--until-end", "--json", folder=tmp_path)
    assert done.returncode == 0 and '"n":3' in done.stdout
    (tmp_path / "q.sql").write_text(stream.format(" ETS ON DEMAND") + query)
    refused = run_on("local", "q.sql", "--until-end", folder=tmp_path)
    assert refused.returncode == 2 and "latent timestamps need no ETS" in refused.stderr
