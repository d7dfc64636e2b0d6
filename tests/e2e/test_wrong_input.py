"""What a newcomer gets wrong: the right exit code, a message that says what to do, and nothing lost."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from millrace.errors import MalformedRow
from millrace.hosts.run_options import RunOptions
from millrace.language import parse_network
from tests.e2e.commands import millrace, millrace_process
from tests.e2e.scripts import SCRIPT, add_file, expected, project, results

pytestmark = pytest.mark.slow

WRONG_SCRIPTS = {
    "an unknown column": ("window, k,", "window, kk,", 'column "kk" does not exist'),
    "an unclosed bracket": ("WA ts]", "WA ts", '"[" is never closed'),
    "a missing file": ("path 'in'", "path 'elsewhere'", 'the path "elsewhere" of stream "links" is not there'),
    "an unbounded aggregate": ("[RANGE 1 MINUTE SLIDE 1 MINUTE WA ts]", "", "an aggregate without a window"),
    "a misspelt keyword": ("SELECT window,", "SELEC window,", 'Did you mean "SELECT"?'),
    "an unknown format": ("FROM csv", "FROM cvs", '"cvs"'),
    "an unknown option": ("max_files_per_trigger", "max_file", 'no option "max_file"'),
}


def refused(ran: subprocess.CompletedProcess[str], code: int, fact: str) -> None:
    assert ran.returncode == code, ran.stderr
    assert fact in ran.stderr
    assert "hint: " in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("case", WRONG_SCRIPTS)
def test_a_wrong_script_is_refused_before_anything_runs(case: str, tmp_path: Path) -> None:
    old, new, fact = WRONG_SCRIPTS[case]
    assert old in SCRIPT
    script = project(tmp_path, SCRIPT.replace(old, new))
    refused(millrace("run", script, "--on", "local", "--until-end", folder=tmp_path), 2, fact)
    assert results(tmp_path) == []


def test_a_file_that_is_not_there_is_a_wrong_request(tmp_path: Path) -> None:
    refused(millrace("run", "nothing.sql", "--on", "local", folder=tmp_path), 2, 'there is no file "nothing.sql"')
    (tmp_path / "a.csv.gz").touch()
    refused(millrace("run", "a.csv.gz", "--on", "local", folder=tmp_path), 2, "millrace new a.csv.gz")


@pytest.mark.parametrize(
    ("line", "fact"),
    [("a,1", "0002.csv"), ("a,many,2024-01-01 00:02:40", '"many"'), ("a,1,yesterday", '"yesterday"')],
    ids=["too few cells", "text in a number column", "no time"],
)
def test_a_malformed_row_stops_the_run_and_loses_nothing(line: str, fact: str, tmp_path: Path) -> None:
    script = project(tmp_path, files=2)
    add_file(tmp_path, 2, line)
    add_file(tmp_path, 3)
    run = ["run", script, "--on", "local", "--checkpoint", "state", "--until-end"]
    ran = millrace(*run, folder=tmp_path)
    refused(ran, 1, fact)
    assert "0002.csv" in ran.stderr
    assert "4" in ran.stderr, "the line of the file is named"
    add_file(tmp_path, 2)
    again = millrace(*run, folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert results(tmp_path) == expected(4)


def test_malformed_rows_may_be_skipped_and_are_counted(tmp_path: Path) -> None:
    script = project(tmp_path, SCRIPT.replace("path 'in'", "path 'in', on_malformed 'skip'"), files=2)
    add_file(tmp_path, 2, "a,many,2024-01-01 00:02:40")
    ran = millrace("run", script, "--on", "local", "--until-end", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "7 rows, 6 processed, 1 quarantined" in ran.stderr
    assert results(tmp_path) == expected(3)


@pytest.mark.spark
def test_a_malformed_row_on_spark_stops_the_run_and_loses_nothing(
    tmp_path: Path, spark_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from millrace.hosts.spark.host import SparkRun

    monkeypatch.chdir(tmp_path)
    project(tmp_path, files=2)
    network = parse_network(SCRIPT.replace("path 'in'", f"path '{tmp_path / 'in'}'"))
    add_file(tmp_path, 2, "a,many,2024-01-01 00:02:40")
    with pytest.raises(MalformedRow, match='"many"') as raised:
        SparkRun(network, RunOptions("spark", "end", checkpoint=tmp_path / "state"), session=spark_session).run()
    assert raised.value.hint
    assert results(tmp_path) == expected(1), "the first minute was complete, and stays"
    add_file(tmp_path, 2)
    SparkRun(network, RunOptions("spark", "end", checkpoint=tmp_path / "state"), session=spark_session).run()
    assert results(tmp_path) == expected(3)


def test_results_of_another_run_are_not_mixed_with_new_ones(tmp_path: Path) -> None:
    script = project(tmp_path)
    run = ["run", script, "--on", "local", "--until-end"]
    assert millrace(*run, folder=tmp_path).returncode == 0
    refused(millrace(*run, folder=tmp_path), 2, "holds results of another run")
    assert results(tmp_path) == expected(3)


def test_a_checkpoint_of_another_stream_is_refused(tmp_path: Path) -> None:
    script = project(tmp_path)
    run = ["run", script, "--on", "local", "--checkpoint", "state", "--available-now"]
    assert millrace(*run, folder=tmp_path).returncode == 0
    script.write_text(SCRIPT.replace("FROM csv", "LATE BY WINDOW FROM csv"))
    refused(millrace(*run, folder=tmp_path), 2, "LATE BY WINDOW was added")
    script.write_text(SCRIPT)
    ran = millrace("run", script, "--on", "local", "--checkpoint", "state", "--until-end", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert results(tmp_path) == expected(3)


def test_a_checkpoint_of_another_host_is_refused(tmp_path: Path) -> None:
    script = project(tmp_path)
    assert (
        millrace("run", script, "--on", "local", "--checkpoint", "local", "--available-now", folder=tmp_path).returncode
        == 0
    )
    refused(millrace("run", script, "--checkpoint", "local", folder=tmp_path), 2, "a checkpoint of the local host")
    for name in ("commits", "spark"):
        (tmp_path / "spark" / name).mkdir(parents=True)
    (tmp_path / "spark" / "network.json").write_text("{}")
    ran = millrace("run", script, "--on", "local", "--checkpoint", "spark", folder=tmp_path)
    refused(ran, 2, "a checkpoint of the Spark host")
    ran = millrace("run", script, "--on", "virtual", "--checkpoint", "local", folder=tmp_path)
    refused(ran, 2, "the virtual host keeps no checkpoint")


def test_a_file_of_queries_is_utf_8_whatever_the_locale_and_what_it_cannot_show_is_spelled_out(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("k,ts\n1,2024-01-01 00:00:00\n")
    stream = "CREATE STREAM s (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 's.csv');"
    (tmp_path / "q.sql").write_text(f"{stream} SELECT k, '€' AS e FROM s;", encoding="utf-8")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = millrace_process("run", "q.sql", "--on", "local", "--until-end", folder=tmp_path, settings=ascii_only)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "1\t\\u20ac"


def test_a_full_standard_output_is_told_by_name_and_the_results_in_files_are_exact(tmp_path: Path) -> None:
    script = project(tmp_path, SCRIPT + "CREATE QUERY shown AS SELECT k FROM links;")
    run = ["run", script, "--on", "local", "--checkpoint", "state", "--until-end"]
    with Path("/dev/full").open("w") as full:
        ran = millrace_process(*run, folder=tmp_path, out=full)
    refused(ran, 1, "standard output cannot be written to: no space left on device")
    assert len(ran.stderr.splitlines()) == 2, "nothing is said at the end of Python"
    assert millrace(*run, folder=tmp_path).returncode == 0
    assert results(tmp_path) == expected(3)
