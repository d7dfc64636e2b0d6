"""Without user code, SQL that names code to be loaded is refused before anything is imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import millrace as mr
from millrace.errors import QueryError
from millrace.language import bind_changes, check_user_code, read_file
from tests.e2e.commands import millrace

STREAM = "CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'in.csv');\n"
QUERY = "CREATE QUERY q AS SELECT a FROM s;"
CODE = {
    "function": "CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE PYTHON AS 'evil_code:f';",
    "aggregate": "CREATE AGGREGATE g(x INT) RETURNS INT LANGUAGE PYTHON AS 'evil_code:G';",
    "sink": "CREATE SINK o TO python OPTIONS (writer 'evil_code:W');",
    "source": "CREATE STREAM t (a INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM `evil.code.Source`;",
}


@pytest.mark.parametrize("kind", CODE)
def test_code_is_refused_at_its_place(kind: str) -> None:
    check_user_code(STREAM + CODE[kind] + QUERY, allowed=True)
    with pytest.raises(QueryError, match="which this run does not allow") as refused:
        check_user_code(STREAM + CODE[kind] + QUERY, allowed=False)
    assert refused.value.place is not None and refused.value.place.line == 2


def test_sinks_of_files_are_no_code() -> None:
    check_user_code(f"{STREAM}CREATE SINK o TO csv OPTIONS (path 'out');{QUERY}", allowed=False)


@pytest.mark.parametrize("command", [["check"], ["explain"], ["run", "--on", "local", "--until-end"]])
@pytest.mark.parametrize("kind", CODE)
def test_no_command_imports_code_that_is_not_allowed(command: list[str], kind: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,ts\n1,2026-01-01 00:00:00\n")
    (tmp_path / "evil_code.py").write_text("raise SystemExit('it was imported')\n")
    (tmp_path / "q.sql").write_text(STREAM + CODE[kind] + QUERY)
    found = millrace(command[0], "q.sql", *command[1:], "--no-user-code", folder=tmp_path)
    assert found.returncode == 2 and "which this run does not allow" in found.stderr
    assert "hint: Leave out --no-user-code." in found.stderr and "evil_code" not in sys.modules


def test_a_run_of_python_refuses_code_too_and_also_while_it_runs() -> None:
    network = mr.Network()
    network.sql(STREAM.replace("FROM csv OPTIONS (path 'in.csv')", "FROM iterable") + CODE["function"] + QUERY)
    with pytest.raises(QueryError, match="does not allow"):
        network.run(on="local", user_code=False)
    with pytest.raises(QueryError, match="does not allow"):
        bind_changes(STREAM, f"{CODE['function']} ADD QUERY r AS SELECT a FROM s", [], user_code=False)


def test_code_that_an_earlier_run_declared_is_refused_with_its_checkpoint() -> None:
    read_file(STREAM + QUERY, CODE["sink"])
    with pytest.raises(QueryError, match="does not allow"):
        read_file(STREAM + QUERY, CODE["sink"], user_code=False)
