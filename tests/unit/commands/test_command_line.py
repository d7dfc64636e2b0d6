"""The classes of aggregates are found beside the file that names them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from millrace.commands.command_line import main

COUNTER = """
class Counter:
    def initialize(self):
        return 0

    def iterate(self, state, column):
        return state + len(column)

    def merge(self, state, other):
        return state + other

    def terminate(self, state):
        return state
"""
SCRIPT = """
CREATE STREAM s (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path '{folder}/s.csv');
CREATE AGGREGATE counter(INT) RETURNS BIGINT LANGUAGE PYTHON AS '{module}:Counter';
SELECT counter(k) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE];
"""


@pytest.mark.parametrize("command", [["run", "--on", "local", "--until-end"], ["check"], ["explain"]])
def test_a_class_beside_the_file_is_found_from_any_folder(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, elsewhere, module = tmp_path / "code", tmp_path / "elsewhere", f"counter_for_{command[0]}"
    code.mkdir()
    elsewhere.mkdir()
    (code / f"{module}.py").write_text(COUNTER)
    (code / "s.csv").write_text("k,ts\n1,2024-01-01 00:00:01\n2,2024-01-01 00:00:02\n")
    (code / "q.sql").write_text(SCRIPT.format(folder=code, module=module))
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main([command[0], "../code/q.sql", *command[1:]]) == 0, capsys.readouterr().err
    assert sys.path[0] == str(code)
    if command[0] == "run":
        assert capsys.readouterr().out.splitlines()[-1].endswith("\t2")


def test_a_file_is_utf_8_with_or_without_a_mark_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.csv").write_text("k,ts\n")
    text = SCRIPT.format(folder=tmp_path, module="-").replace("counter(k)", "count(*)").split("\n")
    file = tmp_path / "q.sql"
    file.write_text("\n".join([text[1], "-- é", text[3]]), encoding="utf-8-sig")
    assert main(["check", str(file)]) == 0
    file.write_text("\n".join([text[1], "-- é", text[3]]), encoding="latin-1")
    assert main(["check", str(file)]) == 2
    assert (
        f'the file "{file}" is not UTF-8: line 2 holds the byte 0xe9\nhint: Save it as UTF-8' in capsys.readouterr().err
    )
