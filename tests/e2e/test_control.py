"""`millrace control` from outside: a running network is changed by another process."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.commands import COMMAND, Started, environment, millrace, wait_for
from tests.e2e.scripts import add_file, expected, project, results

pytestmark = pytest.mark.slow

ADD = """CREATE SINK sums TO csv OPTIONS (path '{}/sums');
ADD QUERY totals INTO sums AS SELECT sum(v) AS total FROM links [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];"""


def totals(folder: Path) -> list[int]:
    rows: list[dict[str, str]] = []
    for path in sorted((folder / "sums").glob("part-*")):
        with path.open() as file:
            rows += csv.DictReader(file)
    return [int(row["total"]) for row in rows]


def come_and_go(folder: Path, *others: str) -> None:
    """Add a query, alter it and drop another one; `others` run beside them."""
    wait_for(lambda: results(folder) == expected(1))
    added = millrace("control", "state", ADD.format(folder), folder=folder)
    assert (added.returncode, added.stderr) == (0, "")
    assert added.stdout == "totals added since 2024-01-01 00:01:30.000001, reads links\n"
    add_file(folder, 2)
    add_file(folder, 3)
    wait_for(lambda: totals(folder) == [2 + 1])
    altered = millrace("control", "state", "ALTER QUERY totals SET (strategy = 'bfs')", folder=folder)
    assert altered.stdout == "totals altered: strategy = bfs\n"
    dropped = millrace("control", "state/control", "DROP QUERY per_minute", "--json", folder=folder)
    assert json.loads(dropped.stdout)["did"] == "dropped"
    shown = millrace("control", "state", "SHOW QUERIES", "--json", folder=folder)
    queries = {each["query"]: each for each in map(json.loads, shown.stdout.splitlines())}
    assert set(queries) == {"totals", *others}
    assert (queries["totals"]["options"], queries["totals"]["streams"]) == ({"strategy": "bfs"}, ["links"])


def have_come_and_gone(folder: Path) -> None:
    """Hold that each query has answered while it was there."""
    assert results(folder) == expected(3), "it was dropped before its fourth minute was complete"
    assert totals(folder) == [2 + 1, 3 + 1]


def test_queries_come_and_go_while_a_network_runs(tmp_path: Path) -> None:
    run = ["run", project(tmp_path, files=2), "--on", "local", "--checkpoint", "state"]
    with Started(*run, folder=tmp_path) as started:
        come_and_go(tmp_path)
        code, _, said = started.interrupt()
    assert code == 0, said
    ended = millrace(*run, "--until-end", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    have_come_and_gone(tmp_path)


def test_a_wrong_request_has_the_exit_code_of_one_and_the_run_goes_on(tmp_path: Path) -> None:
    script = project(tmp_path, files=2)
    with Started("run", script, "--on", "local", "--control", "commands", folder=tmp_path) as started:
        wait_for((tmp_path / "commands" / "listening").exists)
        wrong = millrace("control", "commands", "ADD QUERY q AS SELECT vv FROM links", folder=tmp_path)
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert 'line 1, column 23: column "vv" does not exist' in wrong.stderr
        assert "hint: " in wrong.stderr
        read = subprocess.run(
            [*COMMAND, "control", "commands", "-"],
            input="SELECT v FROM links",
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=300,
            env=environment(),
        )
        assert read.stdout.startswith("query_1 added since"), read.stderr
        add_file(tmp_path, 2)
        wait_for(lambda: results(tmp_path) == expected(2))
        code, out, said = started.interrupt()
    assert code == 0, said
    assert out == "# query_1\nv\n2\n1\n", "results without a sink are shown where the network runs"
    nobody = millrace("control", "commands", "SHOW QUERIES", folder=tmp_path)
    assert nobody.returncode == 2
    assert 'no run listens in "commands"' in nobody.stderr


def test_a_second_run_on_a_checkpoint_in_use_is_refused(tmp_path: Path) -> None:
    run = ["run", project(tmp_path, files=2), "--on", "local", "--checkpoint", "state"]
    with Started(*run, folder=tmp_path):
        wait_for((tmp_path / "state" / "control" / "listening").exists)
        second = millrace(*run, "--until-end", folder=tmp_path)
    assert second.returncode == 2
    assert "another run listens in" in second.stderr


@pytest.mark.parametrize("command", [["control", "state", "SHOW QUERIES"], ["why", "state"], ["latest", "state", "q"]])
def test_a_time_that_is_none_is_refused_with_its_option(tmp_path: Path, command: list[str]) -> None:
    wrong = millrace(*command, "--timeout", "30", folder=tmp_path)
    assert wrong.returncode == 2
    assert "--timeout is a length of time, not \"30\"\nhint: Write --timeout='5 seconds'." in wrong.stderr


def test_a_virtual_run_says_that_it_does_not_listen(tmp_path: Path) -> None:
    ran = millrace("run", project(tmp_path), "--on", "virtual", "--control", "commands", folder=tmp_path)
    assert ran.returncode == 2
    assert "hint: " in ran.stderr
