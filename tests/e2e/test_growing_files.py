"""Files that are written slowly, appended to, or named by chance: every row counts once, also after kills."""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from tests.e2e.commands import RunOn, Started, millrace_process, wait_for

SQL = """
CREATE STREAM s (n INT, t STRING, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 1 DAY
  FROM csv OPTIONS (path '{folder}/in'{options});
CREATE SINK out TO csv OPTIONS (path '{folder}/out');
CREATE QUERY q INTO out AS SELECT n, t FROM s;
"""
HEADER = "n,t,ts\n"


def lines(start: int, stop: int) -> str:
    return "".join(f'{number},"a\n{number}",2024-01-01 00:00:00\n' for number in range(start, stop))


def script(folder: Path, options: str = "") -> Path:
    (folder / "in").mkdir()
    path = folder / "s.sql"
    path.write_text(SQL.format(folder=folder, options=options))
    return path


def numbers(folder: Path) -> list[int]:
    paths = sorted((folder / "out").glob("*.csv"))
    return sorted(int(row["n"]) for path in paths for row in csv.DictReader(path.open(newline="")))


def append(path: Path, text: str) -> None:
    with path.open("a", newline="") as file:
        file.write(text)


def rest(path: Path) -> None:
    """As if the writer of a file had paused for a minute, in the midst of a line."""
    os.utime(path, ns=(1, time.time_ns() - 60_000_000_000))


@pytest.mark.slow
@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])])
def test_files_that_grow_while_a_run_reads_them_count_once_though_it_is_killed(host: str, tmp_path: Path) -> None:
    sql, folder, random = script(tmp_path, ", order_by 'arrival'"), tmp_path / "in", Random(7)
    copied, appended, text = folder / "copied.csv", folder / "appended.csv", HEADER + lines(1, 500)
    cuts = [2, *sorted(random.sample(range(2, len(text)), 9)), len(text)]
    copied.write_text(text[:2])
    rest(copied)
    appended.write_text(HEADER + lines(0, 1))
    command = ("run", sql, "--on", host, "--checkpoint", tmp_path / "state")
    for number in range(2):
        with Started(*command, folder=tmp_path) as process:
            wait_for(lambda: 0 in numbers(tmp_path))
            for piece in range(5 * number, 5 * number + 5):
                append(copied, text[cuts[piece] : cuts[piece + 1]])
                rest(copied)
                append(appended, lines(500 + 10 * piece, 510 + 10 * piece))
                whole = folder / f"{UUID(int=random.getrandbits(128))}.csv"
                whole.write_text(HEADER + lines(600 + 10 * piece, 610 + 10 * piece))
                # The last pieces of a run are not waited for: the kill comes while they are read.
                if piece % 5 < 4:
                    wait_for(lambda last=10 * piece: {509 + last, 609 + last} <= set(numbers(tmp_path)))
            process.kill()
    done = millrace_process(*command, "--until-end", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert numbers(tmp_path) == list(range(700))


@pytest.mark.slow
@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_file_that_is_appended_to_between_runs_is_read_on(host: str, tmp_path: Path, run_on: RunOn) -> None:
    sql, path = script(tmp_path), tmp_path / "in" / "a.csv"
    arguments = ("--checkpoint", tmp_path / "state")
    append(path, HEADER + lines(0, 41))
    done = run_on(host, sql, "--available-now", *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    append(path, lines(41, 60))
    (tmp_path / "in" / "b.csv").write_text(HEADER + lines(60, 70))
    done = run_on(host, sql, "--until-end", *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert numbers(tmp_path) == list(range(70))


@pytest.mark.slow
@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_files_with_chance_names_are_read_by_time_and_earlier_ones_as_the_option_says(
    host: str, tmp_path: Path, run_on: RunOn
) -> None:
    sql, random = script(tmp_path, ", order_by 'modified'"), Random(3)
    arguments = ("--available-now", "--checkpoint", tmp_path / "state")
    names = [str(UUID(int=random.getrandbits(128))) for _ in range(4)]
    for number, name in enumerate(names[:3]):
        path = tmp_path / "in" / f"{name}.csv"
        path.write_text(HEADER + lines(10 * number, 10 * number + 10))
        os.utime(path, ns=(1, 10**18 + number))
    assert run_on(host, sql, *arguments, folder=tmp_path).returncode == 0
    assert numbers(tmp_path) == list(range(30))
    earlier = tmp_path / "in" / f"{names[3]}.csv"
    earlier.write_text(HEADER + lines(30, 40))
    os.utime(earlier, ns=(1, 10**18))
    if host == "local":
        refused = run_on(host, sql, *arguments, folder=tmp_path)
        assert refused.returncode == 1 and f'{names[3]}.csv" of stream "s" was modified before' in refused.stderr
    sql.write_text(sql.read_text().replace("'modified'", "'modified', earlier_files 'read'"))
    taken = run_on(host, sql, *arguments, folder=tmp_path)
    assert taken.returncode == 0, taken.stderr
    assert numbers(tmp_path) == list(range(40))
