"""`check`, `explain`, `doctor` and `demo` from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.commands import millrace, millrace_process
from tests.e2e.scripts import project

pytestmark = pytest.mark.slow


def test_check_finds_no_fault_in_a_good_file(tmp_path: Path) -> None:
    ran = millrace("check", project(tmp_path), folder=tmp_path)
    assert ran.returncode == 0
    assert "no fault" in ran.stdout


def test_check_refuses_what_a_run_would_refuse(tmp_path: Path) -> None:
    script = project(tmp_path)
    script.write_text(script.read_text().replace("path 'in'", "path 'inn'"))
    ran = millrace("check", script, folder=tmp_path)
    assert ran.returncode == 2
    assert 'path "inn"' in ran.stderr
    assert 'There is "in"' in ran.stderr


def test_explain_shows_the_plan(tmp_path: Path) -> None:
    ran = millrace_process("explain", project(tmp_path), folder=tmp_path)
    assert ran.returncode == 0
    assert "window aggregate count(*) AS" in ran.stdout
    assert "exchange partials by k" in ran.stdout
    assert "state table" in ran.stdout


def test_explain_draws_the_query_graph(tmp_path: Path) -> None:
    script = project(tmp_path)
    data, dot, svg = (millrace("explain", script, "--format", each, folder=tmp_path) for each in ("json", "dot", "svg"))
    assert (data.returncode, dot.returncode, svg.returncode) == (0, 0, 0)
    names = {node["name"] for node in json.loads(data.stdout)["nodes"]}
    assert len(names) > 2
    assert all(f'"{name}"' in dot.stdout and f">{name}</text>" in svg.stdout for name in names)
    refused = millrace("explain", script, "--format", "svg", "--pair-cost", "1ms", folder=tmp_path)
    assert refused.returncode == 2 and "only a text has costs" in refused.stderr


def test_doctor_says_what_it_found_to_people_and_programs(tmp_path: Path) -> None:
    ran, read = millrace("doctor", folder=tmp_path), millrace("doctor", "--json", folder=tmp_path)
    assert ran.returncode == read.returncode
    checks = json.loads(read.stdout)
    assert {"name", "ok", "found", "hint"} == set(checks[0])
    assert all(each["name"] in ran.stdout for each in checks)


def test_doctor_says_what_a_file_needs(tmp_path: Path) -> None:
    kafka = "FROM kafka OPTIONS (bootstrap_servers '${at}', topic 't')"
    (tmp_path / "q.sql").write_text(f"CREATE STREAM s (n INT) LATENT TIMESTAMP {kafka}; SELECT n FROM s;")
    ran = millrace("doctor", "q.sql", "--json", "--var", "at=x:1", folder=tmp_path)
    assert {"extra kafka"} <= {each["name"] for each in json.loads(ran.stdout)}
    assert millrace("doctor", "none.sql", folder=tmp_path).returncode == 2


def test_the_demonstration_in_virtual_time_needs_no_java(tmp_path: Path) -> None:
    without = {"JAVA_HOME": str(tmp_path / "none"), "PATH": str(tmp_path)}
    ran = millrace_process("demo", "--on", "virtual", folder=tmp_path, settings=without)
    assert ran.returncode == 0, ran.stderr
    assert "Millrace: 9 of 9 windows came out; every count is the true one" in ran.stdout
    assert "in virtual time" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("picture: ")
    assert (tmp_path / "demo-output" / "timeline.txt").is_file()


def test_the_command_alone_prints_help(tmp_path: Path) -> None:
    ran = millrace_process(folder=tmp_path)
    assert ran.returncode == 0 and ran.stdout.startswith("usage: millrace") and not ran.stderr


@pytest.mark.parametrize("arguments", [("jump",), ("run",), ("run", "x.sql", "--on", "moon")])
def test_a_wrong_command_is_a_wrong_request(arguments: tuple[str, ...], tmp_path: Path) -> None:
    ran = millrace(*arguments, folder=tmp_path)
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
