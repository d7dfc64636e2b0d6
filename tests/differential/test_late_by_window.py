"""Rows below their stream's bound whose windows are open (LATE BY WINDOW), against a reading row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import millrace as mr
from millrace.errors import QueryError
from millrace.language import parse_network
from millrace.testing import Bench, Host
from tests.e2e.commands import RunOn

SECOND = 1_000_000
DISORDER = 4
TIMESTAMP = pa.timestamp("us", tz="UTC")
WINDOWS = {"tens": (10, 10), "minutes": (60, 60), "sliding": (20, 5)}
"""The range and the slide of each query, in seconds."""
STREAM = "CREATE STREAM {} (v INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 4 SECONDS {} FROM iterable;"
SQL = (
    STREAM.format("s", "LATE BY WINDOW LATE INTO lost")
    + STREAM.format("other", "")
    + """
CREATE QUERY tens AS SELECT window, count(*) AS n, sum(v) AS total FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS];
CREATE QUERY minutes AS SELECT date_trunc('minute', ts) AS window_start, count(*) AS n, sum(v) AS total FROM s
  GROUP BY date_trunc('minute', ts);
CREATE QUERY sliding AS SELECT window, count(*) AS n, sum(v) AS total FROM s [RANGE 20 SECONDS SLIDE 5 SECONDS];
CREATE QUERY merged AS
  SELECT window, count(*) AS n, sum(v) AS total FROM s UNION other [RANGE 10 SECONDS SLIDE 10 SECONDS];
CREATE QUERY gone AS SELECT v FROM lost;
"""
)


def times(seed: int, count: int = 300) -> list[int]:
    """About three rows a second; every seventh comes late, by up to two minutes."""
    random = np.random.default_rng(seed)
    found = 1_700_000_000 + np.cumsum(random.integers(0, 2, count)) - random.integers(0, DISORDER, count)
    found[::7] -= random.integers(5, 120, len(found[::7]))
    return [int(each) for each in found]


def table(seconds: list[int], first: int = 0) -> pa.Table:
    values = pa.array(range(first, first + len(seconds)), pa.int32())
    return pa.table({"v": values, "ts": pa.array([each * SECOND for each in seconds]).cast(TIMESTAMP)})


def pieces(seconds: list[int], seed: int) -> list[pa.Table]:
    cuts = sorted(np.random.default_rng(seed).integers(1, len(seconds), 4).tolist())
    edges = [0, *dict.fromkeys(cuts), len(seconds)]
    return [table(seconds[start:stop], start) for start, stop in pairwise(edges)]


def open_windows(time: int, bound: int, range: int, slide: int) -> Iterator[int]:
    """The starts of the windows that hold a time and end after the bound."""
    start = time // slide * slide
    while start + range > max(time, bound):
        yield start
        start -= slide


def expected(seconds: list[int]) -> dict[str, Any]:
    """The windows of each query with their number of rows and sum of values, and the rows that are late."""
    bound, lost = -1, []
    found: dict[str, dict[int, Counter[str]]] = {name: {} for name in WINDOWS}
    for value, time in enumerate(seconds):
        taken = False
        for name, (length, slide) in WINDOWS.items():
            for start in open_windows(time, bound, length, slide):
                found[name].setdefault(start, Counter()).update(n=1, total=value)
                taken = True
        lost += [] if taken else [value]
        bound = max(bound, time - DISORDER)
    return {**{name: sorted((at, c["n"], c["total"]) for at, c in each.items()) for name, each in found.items()},
            "gone": sorted(lost)}  # fmt: skip


def windows(rows: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    return sorted((int(row["window_start"].timestamp()), row["n"], row["total"]) for row in rows)


def test_a_row_counts_in_the_windows_that_are_open(host: Host) -> None:
    seconds = times(1)
    run = host.open(SQL, {"s": pieces(seconds, 2), "other": [table(times(3)[1:2])]})
    source = run.run().sources["s"]
    answers = {name: [row for each in tables for row in each.to_pylist()] for name, tables in run.memory.items()}
    wanted = expected(seconds)
    assert sorted(row["v"] for row in answers["gone"]) == wanted["gone"]
    assert {name: windows(answers[name]) for name in WINDOWS} == {name: wanted[name] for name in WINDOWS}
    assert (source.received, source.late, source.buffered) == (len(seconds), len(wanted["gone"]), 0)
    # The other stream's only row is far behind: what counts of a stream does not depend on how far others are.
    united = Counter({at: n for at, n, _ in windows(answers["merged"])})
    assert united - Counter({at: n for at, n, _ in wanted["tens"]}) == Counter({times(3)[1] // 10 * 10: 1})
    assert wanted["gone"]
    assert sum(n for _, n, _ in wanted["minutes"]) > sum(n for _, n, _ in wanted["tens"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strategy", ["dfs", "bfs", "batch:1"])
def test_the_answer_depends_on_the_rows_alone(seed: int, strategy: str) -> None:
    seconds = times(seed, 120)
    sql = SQL.replace("SLIDE 5 SECONDS]", f"SLIDE 5 SECONDS] WITH (strategy = '{strategy}')")
    found = Host("local").run(sql, {"s": pieces(seconds, seed + 9), "other": []})
    assert {name: windows(found[name]) for name in WINDOWS} == {name: expected(seconds)[name] for name in WINDOWS}


def test_a_query_without_windows_reads_every_row() -> None:
    sql = STREAM.format("s", "LATE BY WINDOW") + "CREATE QUERY q AS SELECT v FROM s WHERE v > 0;"
    run = Host("virtual").open(sql, {"s": pieces(times(5, 50), 2)})
    assert run.run().sources["s"].late == 0
    assert sorted(row["v"] for each in run.memory["q"] for row in each.to_pylist()) == list(range(1, 50))


def test_windows_of_numbers_are_late_alike() -> None:
    rows = pa.table({"n": pa.array([1, 39, 31, 22, 90, 50], pa.int64())})
    stream = "CREATE STREAM s (n BIGINT) TIMESTAMP BY n DISORDER 5 LATE BY WINDOW FROM iterable;"
    query = "CREATE QUERY q AS SELECT window, count(*) AS c FROM s [RANGE 20 SLIDE 10];"
    found = Host("virtual").run(stream + query, {"s": rows})["q"]
    # The row of 22 comes at a bound of 34: of its windows, that from 10 to 30 is closed.
    counts = {row["window_start"]: row["c"] for row in found}
    assert counts == {-10: 1, 0: 1, 20: 3, 30: 2, 80: 1, 90: 1}


def test_a_bound_that_silence_has_raised_closes_windows_alike() -> None:
    ets = "ETS ON DEMAND SKEW INTERVAL 4 SECONDS LATE BY WINDOW"
    bench = Bench(
        STREAM.format("s", ets)
        + "CREATE QUERY minutes AS SELECT window, count(*) AS n FROM s [RANGE 60 SECONDS SLIDE 60 SECONDS];"
        + "CREATE QUERY tens AS SELECT window, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS];"
    )
    bench.push("s", "v | ts \n 1 | 00:00:08")
    bench.advance_time("6 seconds")
    assert [row["n"] for row in bench.results("tens")] == [1]
    bench.restart()
    bench.push("s", "v | ts \n 2 | 00:00:09")  # Below the bound, which is 10 s; the window of the minute is open.
    bench.push("s", "v | ts \n 4 | 00:00:11")
    bench.advance_time("2 minutes")
    assert [row["n"] for row in bench.results("tens")] == [1]
    assert [row["n"] for row in bench.results("minutes")] == [3]
    assert bench.metrics().sources["s"].late == 0


def test_without_the_clause_a_row_below_the_bound_is_late_for_every_window() -> None:
    plain = Host("virtual").open(SQL.replace("LATE BY WINDOW ", ""), {"s": [table(times(1))], "other": []})
    assert plain.run().sources["s"].late > len(expected(times(1))["gone"])


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT count(*) FROM s [SESSION 5 SECONDS]", "a session cannot say"),
        ("SELECT count(*) FROM s [RANGE 5 SECONDS]", "ends at each row cannot say"),
        ("SELECT count(*) FROM s [ROWS 5 SLIDE 5]", "ROWS cannot say"),
        ("SELECT count(*) FROM s [RANGE 5 SECONDS SLIDE 2 SECONDS]", "a multiple of SLIDE"),
        ("SELECT count(*) FROM s [RANGE 5 SECONDS SLIDE 9 SECONDS]", "leaves rows out"),
        ("SELECT v FROM s ORDER BY ts", "only windows"),
        ("SELECT DISTINCT v, ts FROM s", "only windows"),
        ("SELECT x.v FROM s [RANGE 5 SECONDS] AS x, s [RANGE 5 SECONDS] AS y WHERE x.v = y.v", "only windows"),
        ("SELECT a.v FROM s AS a ASOF JOIN s AS b ON b.ts <= a.ts AND a.v = b.v", "only windows"),
    ],
)
def test_what_has_no_windows_that_close_is_refused(query: str, why: str) -> None:
    with pytest.raises(QueryError, match='stream "s" is LATE BY WINDOW, and this query cannot read it') as refused:
        parse_network(STREAM.format("s", "LATE BY WINDOW") + query)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        ("TIMESTAMP BY ts ORDERED ALSO BY began ORDERED LATE BY WINDOW", "ALSO BY"),
        ("TIMESTAMP BY ts PUNCTUATED BY v = 0 PER (v) LATE BY WINDOW", "PER"),
        ("TIMESTAMP BY ts ORDERED UPDATE KEY (v) LATE BY WINDOW", "UPDATE KEY"),
        ("INTERNAL TIMESTAMP AS ts LATE BY WINDOW", "is for external timestamps"),
        ("TIMESTAMP BY ts ORDERED LATE BY 5", "LATE BY WINDOW"),
    ],
)
def test_streams_without_one_bound_for_all_windows_refuse_it(stream: str, why: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse_network(f"CREATE STREAM s (v INT, ts TIMESTAMP, began TIMESTAMP) {stream} FROM csv; SELECT v FROM s;")
    assert why in f"{refused.value} {refused.value.hint}"


def test_late_by_window_from_python() -> None:
    net = mr.Network()
    rows = table(times(1))
    s = net.stream("s", "v INT, ts TIMESTAMP", time="ts", disorder="4 seconds", late_by_window=True, source=[rows])
    net.query("minutes", s.window(range="1 minute").group_by().agg(n="count(*)", total="sum(v)"))
    handle = net.run(on="virtual", until="end")
    assert windows(handle.results("minutes").to_pylist()) == expected(times(1))["minutes"]


def test_late_by_window_from_the_command_line(run_on: RunOn, tmp_path: Any) -> None:
    rows = "".join(f"{value},{time}\n" for value, time in enumerate(times(1)))
    (tmp_path / "s.csv").write_text(f"v,ts\n{rows}")
    source = "FROM csv OPTIONS (path 's.csv', timestamp_format 'epoch_seconds')"
    (tmp_path / "q.sql").write_text(
        SQL.replace("FROM iterable", source, 1).partition("CREATE STREAM other")[0]
        + "SELECT window_end, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE];"
    )
    said = run_on("local", "q.sql", "--until-end", folder=tmp_path)
    counts = [n for _, n, _ in expected(times(1))["minutes"]]
    assert [int(line.split("\t")[-1]) for line in said.stdout.splitlines() if line[:2] == "20"] == counts
