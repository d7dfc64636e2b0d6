"""`millrace run` from outside: the ways to end, what it prints, and what it leaves behind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e.commands import RunOn, Started, millrace, millrace_process, on_terminal, wait_for
from tests.e2e.scripts import SHOWN, add_file, expected, project, results

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("host", ["local", "virtual"])
def test_a_run_until_the_end_writes_every_window(host: str, tmp_path: Path) -> None:
    started = millrace_process if host == "local" else millrace
    ran = started("run", project(tmp_path), "--on", host, "--until-end", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    assert results(tmp_path) == expected(3)
    assert re.search(r"^6 rows in ", ran.stderr, re.MULTILINE)
    assert "links: 6 rows" in ran.stderr
    assert "-> per_minute: 6 results" in ran.stderr


def test_windows_stay_open_until_a_run_that_ends_closes_them(tmp_path: Path) -> None:
    script = project(tmp_path, files=2)
    run = ["run", script, "--on", "local", "--checkpoint", "state"]
    first = millrace(*run, "--available-now", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert results(tmp_path) == expected(1)
    assert "held in open windows" in first.stderr
    add_file(tmp_path, 2)
    assert millrace(*run, "--available-now", folder=tmp_path).returncode == 0
    assert results(tmp_path) == expected(2)
    assert millrace(*run, "--until-end", folder=tmp_path).returncode == 0
    assert results(tmp_path) == expected(3)
    again = millrace(*run, "--until-end", folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert results(tmp_path) == expected(3)


def test_results_without_a_sink_are_shown(tmp_path: Path) -> None:
    ran = millrace("run", project(tmp_path, SHOWN), "--on", "local", "--until-end", folder=tmp_path)
    assert ran.stdout.splitlines()[:3] == [
        "# query_1",
        "window_start\twindow_end\tk\tn\ttotal",
        "2024-01-01 00:00:00\t2024-01-01 00:01:00\ta\t1\t0",
    ]


def test_a_program_can_read_results_and_summary(tmp_path: Path) -> None:
    ran = millrace("run", project(tmp_path, SHOWN), "--on", "virtual", "--until-end", "--json", folder=tmp_path)
    *rows, last = [json.loads(line) for line in ran.stdout.splitlines()]
    assert sorted((row["k"], row["n"], row["total"]) for row in rows) == sorted(
        (key, 1, total) for number in range(3) for key, total in (("a", number), ("b", 1))
    )
    assert last["summary"]["sources"]["links"]["received"] == 6
    assert last["summary"]["results"] == {"query_1": 6}


def test_an_interrupt_ends_a_live_run_in_order(tmp_path: Path) -> None:
    script = project(tmp_path, files=2)
    with Started("run", script, "--on", "local", "--checkpoint", "state", folder=tmp_path) as run:
        wait_for(lambda: results(tmp_path) == expected(1))
        add_file(tmp_path, 2)
        wait_for(lambda: results(tmp_path) == expected(2))
        code, _, said = run.interrupt()
    assert code == 0, said
    assert "Traceback" not in said
    assert re.search(r"^6 rows in ", said, re.MULTILINE)
    assert (
        millrace("run", script, "--on", "local", "--checkpoint", "state", "--until-end", folder=tmp_path).returncode
        == 0
    )
    assert results(tmp_path) == expected(3)


@pytest.mark.parametrize("host", ["local", "virtual", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_query_need_not_read_all_columns_of_csv_without_a_header(host: str, run_on: RunOn, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("a,1,2024-01-01 00:00:01\nb,2,2024-01-01 00:00:02\n")
    (tmp_path / "q.sql").write_text("""
        CREATE STREAM s (k STRING, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
          FROM csv OPTIONS (path 's.csv', header 'false');
        SELECT v FROM s;""")
    ran = run_on(host, "q.sql", "--until-end", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["#", "query_1", "v", "1", "2"]


@pytest.mark.parametrize("columns", [60, 200])
def test_on_a_terminal_results_are_a_table_that_fits(columns: int, tmp_path: Path) -> None:
    rows = "".join(f"2024-01-01 00:00:0{at},{at * 1000},{'text ' * 20}\n" for at in range(3))
    (tmp_path / "s.csv").write_text("ts,n,words\n" + rows)
    (tmp_path / "q.sql").write_text("""
        CREATE STREAM s (ts TIMESTAMP, n INT, words STRING) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 's.csv');
        SELECT * FROM s;""")
    code, lines = on_terminal("run", "q.sql", "--on", "local", "--until-end", folder=tmp_path, columns=columns)
    assert code == 0
    assert lines[:2] == ["# query_1", "ts                      n  words"]
    room = columns - len("2024-01-01 00:00:02  2000  ")
    words = ("text " * 20).rstrip() if room >= 100 else ("text " * 20)[: room - 1] + "…"
    assert lines[2:5] == [f"2024-01-01 00:00:0{at}  {at * 1000:>4}  {words}" for at in range(3)]
    assert lines[5].startswith("3 rows in ")
