"""`millrace why` from outside: a stream, and the partition of it that stalls, are named while a run works and after."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.commands import RunOn, Started, millrace, wait_for

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE STREAM main (link INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
  FROM csv OPTIONS (path 'main');
CREATE STREAM side (link INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED PARTITIONED BY (link)
  FROM csv OPTIONS (path 'side');
CREATE SINK out TO csv OPTIONS (path 'out');
CREATE QUERY both INTO out AS
  SELECT link, ts FROM main UNION ALL SELECT link, ts FROM side ORDER BY ts;
"""
STALLED = 'both waits for stream "side", partition link = 3, whose bound has stood at 2024-01-01 00:00:05 for '


def write(folder: Path, stream: str, number: int, *rows: tuple[int, int]) -> None:
    """A file of a stream: link and second of each row."""
    (folder / stream).mkdir(exist_ok=True)
    lines = ["link,ts", *(f"{link},2024-01-01 00:00:{second:02}" for link, second in rows)]
    hidden = folder / stream / f".{number}"
    hidden.write_text("\n".join(lines) + "\n")
    hidden.replace(folder / stream / f"{number:04}.csv")


def stalled(folder: Path) -> Path:
    """A project with two streams, and in one of them a partition that falls silent."""
    write(folder, "main", 0, *((1, second) for second in range(1, 40)))
    write(folder, "side", 0, (2, 4), (3, 5), (2, 6))
    write(folder, "side", 1, (2, 20), (2, 30))
    path = folder / "why.sql"
    path.write_text(SCRIPT)
    return path


def test_a_local_run_says_which_partition_holds_it_back(tmp_path: Path) -> None:
    run = ["run", stalled(tmp_path), "--on", "local", "--checkpoint", "state"]
    with Started(*run, folder=tmp_path) as started:
        wait_for((tmp_path / "state" / "control" / "listening").exists)
        wait_for(lambda: STALLED in millrace("why", "state", folder=tmp_path).stdout)
        found = millrace("why", "state", folder=tmp_path)
        assert (found.returncode, found.stderr) == (0, "")
        lines = found.stdout.splitlines()
        assert lines[1:3] == [
            "  37 rows are held",
            "  a row of partition link = 3 from 2024-01-01 00:00:06 on releases the first of them",
        ]
        assert "declare ETS ON DEMAND SKEW INTERVAL 1 SECOND" in lines[3]
        data = json.loads(millrace("why", "state/control", "--json", folder=tmp_path).stdout)
        assert data["waits"]["both"]["awaited"][0]["until"] == "2024-01-01 00:00:06"
        assert data["streams"]["side"]["slowest"][0]["values"] == ["3"]
        # What it says releases them does: all that the other partition and the other stream have passed.
        write(tmp_path, "side", 2, (3, 50))
        wait_for(
            lambda: (
                'both waits for stream "side", partition link = 2' in millrace("why", "state", folder=tmp_path).stdout
            )
        )
        code, _, said = started.interrupt()
    assert code == 0, said
    nobody = millrace("why", "state", folder=tmp_path)
    assert (nobody.returncode, nobody.stdout) == (2, "")
    assert 'no run listens in "state", and none on Spark has left a record there' in nobody.stderr


@pytest.mark.spark
def test_on_spark_the_record_of_a_run_that_is_over_says_it_too(run_on: RunOn, tmp_path: Path) -> None:
    run = run_on("spark", stalled(tmp_path), "--available-now", "--checkpoint", "state", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    found = millrace("why", "state", folder=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    lines = found.stdout.splitlines()
    assert lines[0].startswith("as of micro-batch ")
    assert lines[1].startswith(STALLED)
    assert lines[2:4] == [
        "  37 rows are held",
        "  a row of partition link = 3 from 2024-01-01 00:00:06 on releases the first of them",
    ]
    data = json.loads(millrace("why", "state", "--json", folder=tmp_path).stdout)
    assert data["waits"]["both"]["awaited"][0]["stream"] == "side"
    again = run_on("spark", tmp_path / "why.sql", "--available-now", "--checkpoint", "state", folder=tmp_path)
    assert "nothing new was found to read" in again.stderr
    assert "check the paths" not in again.stderr


RELEASED = """
CREATE STREAM a (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'a');
CREATE SINK out TO csv OPTIONS (path 'out');
CREATE QUERY counts WITH (released = 'on') INTO out AS
  SELECT k, count(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY k;
CREATE QUERY plain AS SELECT k FROM a;
"""


def released_project(folder: Path) -> Path:
    (folder / "a").mkdir()
    (folder / "a" / "1.csv").write_text("k,ts\n1,2024-01-01 00:00:01\n2,2024-01-01 00:00:02\n1,2024-01-01 00:00:25\n")
    path = folder / "released.sql"
    path.write_text(RELEASED)
    return path


def asked_for_results(folder: Path, where: str) -> None:
    """The two results of the first window were released by the row at 25 seconds, and every one says so itself."""
    wait_for(lambda: any((folder / "out").glob("part-*")))
    written = "".join(path.read_text() for path in sorted((folder / "out").glob("part-*")))
    assert written.count(',"a","data",2024-01-01 00:00:25,') == 2, written
    words = millrace("why", where, "--result", "counts", folder=folder)
    assert words.returncode == 0, words.stderr
    (line,) = [each for each in words.stdout.splitlines() if "2 rows" in each]
    assert line.endswith('released by stream "a": a row advanced its bound to 2024-01-01 00:00:25')
    read = json.loads(millrace("why", where, "--result", "counts", "--json", folder=folder).stdout)
    assert read["releases"][0]["release"] == {"stream": "a", "how": "data", "bound": "2024-01-01 00:00:25"}
    refused = millrace("why", where, "--result", "plain", folder=folder)
    assert refused.returncode == 2 and "WITH (released = 'on')" in refused.stderr


def test_past_results_of_a_run_at_work_say_what_released_them(tmp_path: Path) -> None:
    run = ["run", released_project(tmp_path), "--on", "local", "--control", "c", "--commit-interval", "100 ms"]
    with Started(*run, folder=tmp_path) as started:
        wait_for((tmp_path / "c" / "listening").exists)
        asked_for_results(tmp_path, "c")
        assert started.interrupt()[0] == 0


@pytest.mark.spark
def test_past_results_of_a_checkpoint_on_spark_say_what_released_them(tmp_path: Path, run_on: RunOn) -> None:
    ran = run_on("spark", released_project(tmp_path).name, "--available-now", "--checkpoint", "state", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    asked_for_results(tmp_path, "state")
