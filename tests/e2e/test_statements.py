"""Views, queries that read queries, INSERT INTO, variables, LIMIT and SHOW from the command line, on every host."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import millrace as mr
from millrace.hosts.run_options import HostName
from tests.e2e.commands import RunOn, millrace

pytestmark = pytest.mark.slow

STREAM = (
    "CREATE STREAM s (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path '${file}.csv');"
)
SCRIPT = f"""
SET size = 1 MINUTE;
SET file = rows;
{STREAM}
CREATE SINK out TO csv OPTIONS (path 'out');
CREATE VIEW big (name, number, ts) AS SELECT k, v, ts FROM s WHERE v >= ${{least:1}};
CREATE QUERY counts AS
  SELECT window_start, name, count(*) AS n FROM big [RANGE ${{size}} SLIDE ${{size}}] GROUP BY name;
CREATE QUERY hours AS SELECT window_start, name, sum(n) AS n FROM counts [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY name;
INSERT INTO out SELECT window, name, sum(n) AS n FROM hours [RANGE 1 DAY SLIDE 1 DAY] GROUP BY name;
DESCRIBE hours;
"""
ROWS = [("ab"[number % 2], number, number * 47) for number in range(200)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [f"{k},{v},2024-01-01 {at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}" for k, v, at in ROWS]
    (tmp_path / "rows.csv").write_text("\n".join(["k,v,ts", *lines]))
    return tmp_path


@pytest.mark.parametrize("host", ["local", "virtual"])
def test_a_query_reads_queries_three_levels_deep(host: str, run_on: RunOn, folder: Path) -> None:
    (folder / "q.sql").write_text(SCRIPT.replace("${file}", "rows"))
    done = run_on(host, "q.sql", "--until-end", "--var", "least=3", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "# DESCRIBE hours" in done.stdout
    lines = [line for path in (folder / "out").glob("*.csv") for line in path.read_text().splitlines()[1:]]
    expected = Counter(k for k, v, _ in ROWS if v >= 3)
    found = {line.split(",")[-2].strip('"'): int(line.split(",")[-1]) for line in lines}
    assert found == dict(expected)


@pytest.mark.parametrize("host", ["local", "virtual", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_limit_ends_a_run_that_would_go_on(host: str, run_on: RunOn, folder: Path) -> None:
    (folder / "q.sql").write_text(
        f"{STREAM} CREATE VIEW t AS SELECT * FROM s; SELECT k, v FROM t WHERE v > 4 LIMIT 3".replace("${file}", "rows")
    )
    done = run_on(host, "q.sql", folder=folder)
    rows = done.stdout.splitlines()[2:]
    assert done.returncode == 0 and len(rows) == 3, done.stderr
    assert {tuple(row.split("\t")) for row in rows} <= {(k, str(v)) for k, v, _ in ROWS if v > 4}


@pytest.mark.parametrize("host", ["local", "virtual"])
def test_rows_of_equal_time_are_sorted_by_further_columns(host: HostName) -> None:
    rows = [{"k": "abc"[at % 3], "n": [None, 1, 2][at % 4 % 3], "ts": at // 7 * 1_000_000} for at in range(100)]
    net = mr.Network()
    s = net.stream(
        "s", "k STRING, n INT, ts TIMESTAMP", time="ts", source=[rows[at : at + 13] for at in range(0, 100, 13)]
    )
    net.query("q", s.order_by_time("n DESC", "k"))
    found = [(row["k"], row["n"]) for row in net.run(on=host, until="end").results("q").to_pylist()]
    expected = sorted(rows, key=lambda row: (row["ts"], -(row["n"] or 0), row["k"]))
    assert found == [(row["k"], row["n"]) for row in expected]


def test_a_file_may_only_show(folder: Path) -> None:
    (folder / "q.sql").write_text(f"{STREAM} SHOW STREAMS; EXPLAIN SELECT k FROM s")
    done = millrace("run", "q.sql", "--on", "local", "--var", "file=rows", folder=folder)
    assert done.returncode == 0 and "k STRING, v INT, ts TIMESTAMP" in done.stdout and "project k" in done.stdout
    checked = millrace("check", "q.sql", folder=folder)
    assert checked.returncode == 2 and 'variable "file" has no value' in checked.stderr


def test_python_reads_views_and_queries_by_name_and_limits_rows(capsys: pytest.CaptureFixture[str]) -> None:
    net = mr.Network(variables={"least": 3})
    rows = [{"k": k, "v": v, "ts": at * 1_000_000} for k, v, at in ROWS]
    s = net.stream("s", "k STRING, v INT, ts TIMESTAMP", time="ts", source=[rows])
    big = net.view("big", s.where("v >= 3"))
    net.query("counts", big.window(range="1 minute", slide="1 minute").group_by("k").agg(n="count(*)"))
    net.query("busy", net.read("counts").where("n > 0").select("k", "n"))
    net.sql("CREATE QUERY same AS SELECT k FROM big WHERE v >= ${least}; SHOW VIEWS")
    net.query("few", net.read("big").select("v"), sink="console", limit=4)
    handle = net.run(on="local", until="end")
    counted: Counter[str] = Counter()
    for row in handle.results("busy").to_pylist():
        counted[row["k"]] += row["n"]
    assert counted == Counter(k for k, v, _ in ROWS if v >= 3)
    assert handle.results("same").num_rows == sum(counted.values())
    assert handle.results("few").column("v").to_pylist() == [3, 4, 5, 6]
    assert "big\tk STRING, v INT, ts TIMESTAMP" in capsys.readouterr().out
    assert net.show("DESCRIBE busy").column("column").to_pylist() == ["k", "n"]


CHECKED = "CREATE STREAM s (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'rows.csv');"


@pytest.mark.parametrize(
    ("script", "fact", "marked"),
    [
        (CHECKED.replace("csv OPTIONS", "cvs OPTIONS"), 'comes from "cvs", which is unknown', "cvs"),
        (CHECKED.replace("path", "pth"), 'format "csv" has no option "pth"', "pth"),
        (CHECKED.replace("rows.csv", "row.csv"), 'the path "row.csv" of stream "s" is not there', "'row.csv'"),
        (CHECKED.replace("v INT", "w INT") + "SELECT w FROM s;", 'has no column "w"; it has k, v, ts', "w"),
        (CHECKED + "CREATE SINK o TO pasquet; INSERT INTO o SELECT k FROM s;", 'goes to "pasquet"', "pasquet"),
        (
            CHECKED + "CREATE SINK o TO csv OPTIONS (pth 'x'); INSERT INTO o SELECT k FROM s;",
            'format "csv" has no option "pth"',
            "pth",
        ),
        (
            CHECKED + "CREATE SINK o TO csv OPTIONS (mode 'overwrite'); INSERT INTO o SELECT k FROM s;",
            'sink "o" has no path',
            "csv",
        ),
        (
            CHECKED + "CREATE SINK o TO jdbc OPTIONS (url 'x'); INSERT INTO o SELECT k FROM s;",
            'sink "o" goes to "jdbc"',
            "jdbc",
        ),
    ],
)
def test_check_opens_what_it_can_and_marks_what_is_wrong(folder: Path, script: str, fact: str, marked: str) -> None:
    (folder / "q.sql").write_text(script if "SELECT" in script else f"{script} SELECT k FROM s;")
    done = millrace("check", "q.sql", folder=folder)
    message, line, caret, *_ = done.stderr.splitlines()
    assert done.returncode in (1, 2) and fact in message
    assert line[caret.index("^") : caret.rindex("^") + 1] == marked


def test_check_says_what_only_spark_can_open(folder: Path) -> None:
    (folder / "q.sql").write_text(f"{CHECKED} CREATE SINK o TO orc OPTIONS (path 'x'); INSERT INTO o SELECT k FROM s;")
    done = millrace("check", "q.sql", folder=folder)
    assert done.returncode == 0 and 'sink "o" goes to "orc", which Spark writes: it was not opened' in done.stdout
