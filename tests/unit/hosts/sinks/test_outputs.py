from __future__ import annotations

from pathlib import Path

import pytest

import millrace as mr
from millrace.errors import CheckpointError, RequestError, RunError
from millrace.hosts.local.host import LocalRun
from millrace.hosts.run_options import RunOptions
from millrace.hosts.sinks.sinks import file_sinks
from millrace.language import parse_network
from millrace.plan.nodes.query_network import QueryNetwork


def network(folder: Path, *, sink: str = "out", mode: str = "") -> QueryNetwork:
    """One csv stream of a folder `in` copied to a folder."""
    (folder / "in").mkdir(exist_ok=True)
    return parse_network(f"""
        CREATE STREAM s (n INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path '{folder / "in"}');
        CREATE SINK o TO csv OPTIONS (path '{folder / sink}'{mode});
        CREATE QUERY q INTO o AS SELECT n FROM s;
    """)


def put(folder: Path, name: str, *numbers: int) -> None:
    lines = [f"{number},2024-01-01 00:00:{number:02d}" for number in numbers]
    (folder / "in" / name).write_text("n,ts\n" + "\n".join(lines) + "\n")


def test_a_fresh_run_refuses_the_results_of_another(tmp_path: Path) -> None:
    given = network(tmp_path)
    put(tmp_path, "a.csv", 1)
    LocalRun(given, RunOptions("local", "end")).run()
    with pytest.raises(RequestError, match="holds results of another run"):
        LocalRun(given, RunOptions("local", "end"))


def test_overwriting_removes_results_and_nothing_else(tmp_path: Path) -> None:
    given = network(tmp_path, mode=", mode 'overwrite'")
    put(tmp_path, "a.csv", 1)
    LocalRun(given, RunOptions("local", "end")).run()
    (tmp_path / "out" / "part-list.csv").write_text("precious")
    LocalRun(given, RunOptions("local", "end")).run()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["part-00000000.csv", "part-list.csv"]


def test_a_sink_may_not_write_where_a_stream_reads(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match='writes to the folder that stream "s" reads'):
        file_sinks(network(tmp_path, sink="in").queries)


def test_a_sink_may_not_feed_the_pattern_of_its_stream(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    put(tmp_path, "a.csv", 1)
    columns = "CREATE STREAM s (n BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED"
    stream = f"{columns} FROM csv OPTIONS (path '{tmp_path}/in/*.csv');"
    sink = "CREATE SINK o TO {} OPTIONS (path '{}/in'); CREATE QUERY q INTO o AS SELECT n, ts FROM s;"
    with pytest.raises(RequestError, match='writes to the folder that stream "s" reads'):
        file_sinks(parse_network(stream + sink.format("csv", tmp_path)).queries)
    assert list(file_sinks(parse_network(stream + sink.format("json", tmp_path)).queries)) == ["q"]
    native = stream.replace("FROM csv", "FROM text").replace("/in/*.csv", "/{in,other}")
    with pytest.raises(RequestError, match='writes to the folder that stream "s" reads'):
        file_sinks(parse_network(native + sink.format("csv", tmp_path)).queries, relayed=True)
    net = mr.Network()
    rows = net.stream("s", "n BIGINT, ts TIMESTAMP", time="ts", source="csv", path=f"{tmp_path}/**/*.csv")
    net.query("q", rows, sink="csv", path=f"{tmp_path}/in")
    with pytest.raises(RequestError, match='writes to the folder that stream "s" reads'):
        net.run(on="local", until="end")


def test_a_file_in_the_way_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("")
    given = network(tmp_path, sink="afile/out")
    with pytest.raises(RequestError, match=r'the path of sink "o" .* is no folder'):
        LocalRun(given, RunOptions("local", "end"))
    with pytest.raises(RequestError, match=r"the checkpoint .* is no folder"):
        LocalRun(network(tmp_path), RunOptions("local", "end", checkpoint=tmp_path / "afile"))


def test_rows_after_the_end_of_a_stream_are_an_error_and_not_late(tmp_path: Path) -> None:
    given = network(tmp_path)
    put(tmp_path, "a.csv", 1)
    LocalRun(given, RunOptions("local", "end", checkpoint=tmp_path / "state")).run()
    LocalRun(given, RunOptions("local", "end", checkpoint=tmp_path / "state")).run()
    put(tmp_path, "b.csv", 2, 3)
    with pytest.raises(RunError, match='stream "s" has ended, and now has 2 rows more'):
        LocalRun(given, RunOptions("local", "end", checkpoint=tmp_path / "state")).run()


def test_a_resumed_run_counts_its_own_rows_apart(tmp_path: Path) -> None:
    given = network(tmp_path)
    put(tmp_path, "a.csv", 1)
    LocalRun(given, RunOptions("local", "available", checkpoint=tmp_path / "state")).run()
    put(tmp_path, "b.csv", 2, 3)
    report = LocalRun(given, RunOptions("local", "available", checkpoint=tmp_path / "state")).run()
    assert (report.received, report.earlier) == (3, 1)


def test_a_checkpoint_of_other_queries_is_a_wrong_request() -> None:
    assert CheckpointError("").exit_code == 2


def test_one_folder_under_two_names_is_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = f"""CREATE STREAM s (v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM iterable;
    CREATE SINK one TO csv OPTIONS (path 'out'); CREATE SINK other TO csv OPTIONS (path '{tmp_path / "out"}');
    CREATE QUERY a INTO one AS SELECT v FROM s; CREATE QUERY b INTO other AS SELECT v FROM s;"""
    with pytest.raises(RequestError, match="write to one folder"):
        LocalRun(parse_network(script), feeds={"s": []})
