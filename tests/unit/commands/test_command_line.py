"""What every command does: it loads little, reads UTF-8, and finds code beside the file that names it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from millrace.commands import command_line
from millrace.commands.command_line import main
from tests.e2e.commands import environment

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
SELECT window_start, window_end, counter(k) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE];
"""


LOADED = """
import sys
sys.argv = ["millrace", *sys.argv[1:]]
from millrace.__main__ import main
try:
    main()
finally:
    print("loaded", *{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""
HEAVY = {"pyspark", "py4j", "pandas", "pyarrow", "numpy", "sqlglot", "matplotlib"}


def loaded(*arguments: str) -> set[str]:
    """The packages that a command has imported when it is over."""
    command = [sys.executable, "-c", LOADED, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    return set(ran.stderr.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"], ["no-such-command"]])
def test_no_package_is_loaded_to_show_help(arguments: list[str]) -> None:
    found = loaded(*arguments)
    assert "argparse" in found and not found & HEAVY


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "demo"])
def test_a_command_loads_neither_spark_nor_pandas_to_show_its_help(command: str) -> None:
    assert not loaded(command, "--help") & {"pyspark", "py4j", "pandas", "matplotlib"}


def test_import_millrace_loads_no_package() -> None:
    code = "import sys, millrace; print(*{name.partition('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert not set(ran.stdout.split()) & HEAVY


def test_without_a_command_the_help_lists_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert said.startswith("usage: millrace ")
    for name in command_line._COMMANDS:
        assert f"\n    {name}" in said


def test_a_misspelt_command_is_answered_with_the_one_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nwe", "clicks.csv"]) == 2
    said = capsys.readouterr().err
    assert said.startswith('millrace: there is no command "nwe"\nhint: Did you mean "new"? The commands are new, run, ')


@pytest.mark.parametrize("name", command_line._COMMANDS)
def test_every_command_of_the_help_is_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0 and capsys.readouterr().out.startswith(f"usage: millrace {name}")


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
