"""An error of the Python API names the user's line and argument, and hides our own lines."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import millrace as mr
from tests.e2e.commands import environment

ROWS = [{"page": "a", "len": 1, "ts": 1_000_000}]


def clicks() -> mr.Relation:
    return mr.Network().stream("clicks", "page STRING, len INT, ts TIMESTAMP", time="ts", source=[ROWS])


def told(attempt: Callable[[], object]) -> tuple[str, list[str]]:
    """What an error notes, and the files of its traceback."""
    with pytest.raises(mr.MillraceError) as raised:
        attempt()
    (note,) = raised.value.__notes__
    return note, [Path(frame.filename).name for frame in traceback.extract_tb(raised.value.__traceback__)]


@pytest.mark.parametrize(
    ("attempt", "argument", "method"),
    [
        (lambda: clicks().where("lne > 0"), "predicate", "where"),
        (lambda: clicks().select("page", "pge"), "items", "select"),
        (lambda: clicks().select(total="lne + 1"), "total", "select"),
        (lambda: clicks().window(range="1 mnute"), "range", "window"),
        (lambda: clicks().window(range="1 minute").group_by("page").agg(n="cuont(*)"), "n", "agg"),
        (lambda: mr.Network().sql("SELEKT 1"), "text", "sql"),
        (lambda: mr.Network().stream("x", "a INTT, ts TIMESTAMP", time="ts", source=[]), "columns", "stream"),
    ],
)
def test_an_error_names_the_line_and_the_argument(attempt: Callable[[], object], argument: str, method: str) -> None:
    note, files = told(attempt)
    line = attempt.__code__.co_firstlineno
    assert note.startswith(f'in test_callers.py, line {line}, argument "{argument}" of {method}: ')
    ours = [name for name in files if name != "test_callers.py"]
    assert ours in ([], ["callers.py"]), "one frame of the package is left, which notebooks hide"


def test_debug_shows_our_own_lines() -> None:
    mr.debug()
    try:
        with pytest.raises(mr.MillraceError) as raised:
            clicks().where("lne > 0")
    finally:
        mr.debug(False)
    files = [Path(frame.filename).name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert "relations.py" in files and not hasattr(raised.value, "__notes__")


@pytest.mark.slow
@pytest.mark.parametrize("debugged", [False, True])
def test_a_program_that_fails_shows_its_own_lines_alone(debugged: bool, tmp_path: Path) -> None:
    (tmp_path / "analysis.py").write_text(
        "import millrace as mr\n"
        + ("mr.debug()\n" if debugged else "")
        + "s = mr.Network().stream('s', 'k STRING, ts TIMESTAMP', time='ts', source=[])\n"
        + "s.where('kk = 1')\n"
    )
    command = [sys.executable, "analysis.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment())
    assert ran.returncode == 1
    assert ("relations.py" in ran.stderr) is debugged
    assert "s.where('kk = 1')" in ran.stderr and 'column "kk" does not exist' in ran.stderr
    if not debugged:
        assert ran.stderr.count("  File ") == 1
        assert ran.stderr.endswith("in analysis.py, line 3, argument \"predicate\" of where: s.where('kk = 1')\n")


def test_times_are_times_and_everything_shows_itself_in_a_notebook() -> None:
    net = mr.Network()
    rows = [{"k": "<a>", "ts": 1_704_067_201_500_000}, {"k": "b", "ts": 1_704_067_262_000_000}]
    stream = net.stream("s", "k STRING, ts TIMESTAMP", time="ts", source=[rows])
    relation = stream.window(range="1 minute").group_by("k").agg(n="count(*)")
    assert "k STRING" in repr(relation) and "<td>BIGINT</td>" in relation._repr_html_()
    handle = net.query("q", relation).run(on="local", until="end")
    assert "greatest 2024-01-01 00:01:02" in repr(handle.metrics())
    assert repr(handle).startswith("run on local, ended: 2 rows in ")
    shown = handle._repr_html_()
    assert "2024-01-01 00:01:02" in shown and "<td>q</td><td>2</td>" in shown and "1704067262" not in shown
    assert isinstance(handle.results("q"), pa.Table) and len(handle.results("q").to_pandas()) == 2
