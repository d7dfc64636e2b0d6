"""Results that say which promise released them, by an oracle that replays the arrivals one by one."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import millrace as mr
from millrace.errors import QueryError
from millrace.kernel.progress.released import COLUMNS

START = datetime(2024, 1, 1)
DISORDER = {"a": 2, "b": 0}
STREAMS = """
CREATE STREAM a (k INT, ts TIMESTAMP, at TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 2 SECONDS
  FROM csv OPTIONS (path '{folder}/a.csv') REPLAY BY at;
CREATE STREAM b (k INT, ts TIMESTAMP, at TIMESTAMP) TIMESTAMP BY ts ORDERED {ets}
  FROM csv OPTIONS (path '{folder}/b.csv') REPLAY BY at;
"""
COUNTS = "SELECT window, k, count(*) AS n FROM a UNION b [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY k"
QUERIES = {
    "counts": COUNTS,
    "plain": "SELECT k FROM a WHERE k > 0",
    "levels": f"SELECT window, n, count(*) AS m FROM ({COUNTS}) "
    "[RANGE 20 SECONDS SLIDE 20 SECONDS WA window_end] GROUP BY n",
    "pairs": "SELECT x.k, x.ts AS one, y.ts AS two FROM a [RANGE 3 SECONDS] AS x, b [RANGE 3 SECONDS] AS y "
    "WHERE x.k = y.k ORDER BY ts",
    "asof": "SELECT x.k, x.ts AS one, y.ts AS two FROM a AS x ASOF JOIN b AS y ON y.ts <= x.ts AND y.k = x.k",
}


def moment(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def script(folder: Path, ets: str = "", released: str = "on") -> str:
    added = (f"CREATE QUERY {name} WITH (released = '{released}') AS {text};" for name, text in QUERIES.items())
    return STREAMS.format(folder=folder, ets=ets) + "\n".join(added)


def write(folder: Path, rows: dict[str, list[tuple[int, int, float]]]) -> None:
    """Rows of each stream: key, time and arrival, in seconds."""
    for name, given in rows.items():
        lines = [f"{k},{moment(ts)},{moment(at)}" for k, ts, at in given]
        (folder / f"{name}.csv").write_text("\n".join(["k,ts,at", *lines]) + "\n")


def some_rows(seed: int) -> dict[str, list[tuple[int, int, float]]]:
    """Two streams whose rows arrive alternately, none late and no two at one moment."""
    draw = random.Random(seed)
    rows: dict[str, list[tuple[int, int, float]]] = {"a": [], "b": []}
    time = {"a": 0, "b": 0}
    for number in range(40):
        stream = draw.choice("ab")
        time[stream] += draw.randrange(5)
        back = draw.randrange(DISORDER[stream] + 1)
        rows[stream].append((draw.randrange(3), max(time[stream] - back, 0), 1000 + number * 0.5))
    return rows


def results(folder: Path, host: str, text: str) -> dict[str, list[dict[str, Any]]]:
    net = mr.Network()
    net.sql(text)
    handle = net.run(on=host, until="end").wait()  # type: ignore[arg-type]
    return {name: handle.results(name).to_pylist() for name in QUERIES}


def expected_release(rows: dict[str, list[tuple[int, int, float]]], end: int) -> tuple[str, str, datetime | None]:
    """What closes a window: the first arrival after which the bounds of both streams have reached its end."""
    bounds = {"a": -10.0, "b": -10.0}
    arrivals = sorted((at, name, ts) for name, given in rows.items() for _, ts, at in given)
    for _, name, ts in arrivals:
        bounds[name] = max(bounds[name], ts - DISORDER[name])
        if min(bounds.values()) >= end:
            return name, "data", moment(bounds[name])
    return "", "end", None


@pytest.mark.parametrize("seed", range(5))
def test_the_promise_that_closes_a_window_is_told(seed: int, tmp_path: Path) -> None:
    rows = some_rows(seed)
    write(tmp_path, rows)
    found = results(tmp_path, "virtual", script(tmp_path))["counts"]
    assert len({row["window_end"] for row in found}) > 3
    for row in found:
        end = int((row["window_end"].replace(tzinfo=None) - START).total_seconds())
        stream, how, bound = expected_release(rows, end)
        told = row["released_bound"]
        assert (row["released_how"], told and told.replace(tzinfo=None)) == (how, bound)
        assert row["released_by"] in ("a", "b") if how == "end" else row["released_by"] == stream


@pytest.mark.parametrize("host", ["local", "virtual", pytest.param("spark", marks=pytest.mark.spark)])
def test_answers_are_otherwise_unchanged(host: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if host == "spark":
        request.getfixturevalue("spark_session")
    write(tmp_path, some_rows(7))
    # A replay in real time would take its time.
    text = script(tmp_path).replace(" REPLAY BY at", "")
    told, plain = results(tmp_path, host, text), results(tmp_path, "local", text.replace("'on'", "'off'"))
    for name in QUERIES:
        assert told[name]
        bare = [{column: row[column] for column in row if column not in COLUMNS} for row in told[name]]
        assert sorted(map(str, bare)) == sorted(map(str, plain[name])), name
        for row in told[name]:
            assert list(row)[-4:] == list(COLUMNS)
            assert row["released_by"] in ("a", "b") and row["released_how"] in ("data", "end")
            assert row["released_at"] is not None
            assert (row["released_bound"] is None) or row["released_how"] == "data"
    assert {row["released_by"] for row in told["plain"]} == {"a"}


def test_an_ets_is_told_as_such(tmp_path: Path) -> None:
    write(tmp_path, {"a": [(1, each, float(each)) for each in range(0, 40, 4)], "b": [(1, 1, 1.0)]})
    net = mr.Network()
    net.sql(STREAMS.format(folder=tmp_path, ets="ETS ON DEMAND SKEW INTERVAL 1 SECOND"))
    net.sql(f"CREATE QUERY counts WITH (released = 'on') AS {COUNTS}")
    handle = net.run(on="virtual").wait()
    found = [row for row in handle.results("counts").to_pylist() if row["released_how"] == "ets"]
    assert found and {row["released_by"] for row in found} == {"b"}
    for row in found:
        # The bound is the clock less the skew, and far above the only row of the stream.
        assert row["window_end"] <= row["released_bound"] <= row["released_at"] - timedelta(seconds=1)
    words = handle.why().past("counts")
    assert any('released by stream "b": an ETS advanced its bound to' in line for line in words)


def test_state_is_kept_when_a_query_is_asked_to_tell(tmp_path: Path) -> None:
    write(tmp_path, {"a": [(1, 1, 1.0)], "b": [(1, 2, 1.0)]})
    text = script(tmp_path).replace(" REPLAY BY at", "").replace(".csv'", "'")
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.csv").rename(tmp_path / name / "1.csv")
    for released, until in (("off", "available"), ("on", "end")):
        net = mr.Network()
        net.sql(text.replace("'on'", f"'{released}'"))
        handle = net.run(on="local", until=until, checkpoint=tmp_path / "state").wait()
    (row,) = handle.results("counts").to_pylist()
    assert (row["k"], row["n"], row["released_how"]) == (1, 2, "end")


def test_wrong_requests_are_refused(tmp_path: Path) -> None:
    net = mr.Network()
    net.sql(STREAMS.format(folder=tmp_path, ets=""))
    with pytest.raises(QueryError, match='a column "released_by" already'):
        net.sql("SELECT k AS released_by FROM a WITH (released = 'on')")
    with pytest.raises(QueryError, match="without a queue"):
        net.sql("SELECT k FROM a WITH (released = 'on', queue = 'append')")
    with pytest.raises(QueryError, match="on or off"):
        net.sql("SELECT k FROM a WITH (released = 'yes')")


def test_a_query_that_does_not_tell_traces_nothing(tmp_path: Path) -> None:
    from millrace.kernel.graph.executor import Executor
    from millrace.plan.physical.stages import physical

    for released in ("on", "off"):
        net = mr.Network()
        net.sql(script(tmp_path, released=released))
        graph = physical(net.bound()).whole()
        Executor(graph)
        assert any(node.traced for node in graph.nodes.values()) == (released == "on")
        assert any(node.buffer.traced is not None for node in graph.nodes.values()) == (released == "on")
