"""`millrace run --watch`: every save is checked and run; a mistake stops nothing."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from tests.e2e.commands import COMMAND, environment, wait_for

pytestmark = pytest.mark.slow

STREAM = "CREATE STREAM s (k STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 'in');\n"
COUNTS = "CREATE QUERY counts AS SELECT window, count(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];\n"
Said = Callable[[], tuple[str, str]]


@contextmanager
def watching(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], Said]]:
    """A run of q.sql that watches it, and what it has said so far."""
    command = [*COMMAND, "run", "q.sql", "--on", "local", "--watch", *arguments]
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, text=True, cwd=folder, env=environment())
    try:
        yield process, lambda: ((folder / "out").read_text(), (folder / "err").read_text())
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=300)


def add_minute(folder: Path, minute: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    rows = "".join(f"{key},2024-01-01 00:{minute:02}:0{at}\n" for at, key in enumerate("ab"))
    (folder / "part").write_text("k,ts\n" + rows)
    (folder / "part").rename(folder / "in" / f"{minute:02}.csv")


def test_a_mistake_is_shown_and_the_old_run_goes_on_until_a_good_save_keeps_its_state(tmp_path: Path) -> None:
    add_minute(tmp_path, 0)
    script = tmp_path / "q.sql"
    script.write_text(STREAM + COUNTS)
    with watching(tmp_path, "--checkpoint", "state") as (process, said):
        wait_for((tmp_path / "state" / "current.json").exists)
        script.write_text(STREAM + COUNTS.replace("count(*)", "cuont(*)"))
        wait_for(lambda: "cuont" in said()[1])
        add_minute(tmp_path, 1)
        wait_for(lambda: said()[0].endswith("00:01:00\t2\n"))
        assert process.poll() is None
        script.write_text(STREAM + COUNTS + "CREATE QUERY rows_of_a AS SELECT k FROM s WHERE k = 'a';\n")
        wait_for(lambda: "q.sql was saved: running it again" in said()[1] and "rows_of_a" in said()[1])
        add_minute(tmp_path, 2)
        wait_for(lambda: "00:02:00\t2\n" in said()[0] and "# rows_of_a\nk\na\n" in said()[0])
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=300) == 0
    out, err = said()
    assert out.count("00:01:00\t2\n") == 1, "state was kept: nothing is counted again"
    assert "Traceback" not in err and err.count("rows in ") == 2


def test_a_change_that_the_checkpoint_does_not_allow_leaves_the_old_run_alone(tmp_path: Path) -> None:
    add_minute(tmp_path, 0)
    script = tmp_path / "q.sql"
    script.write_text(STREAM + COUNTS)
    with watching(tmp_path, "--checkpoint", "state") as (process, said):
        wait_for((tmp_path / "state" / "current.json").exists)
        script.write_text(STREAM.replace("ORDERED", "ORDERED PARTITIONED BY (k)") + COUNTS)
        wait_for(lambda: "it was without PARTITIONED BY" in said()[1])
        add_minute(tmp_path, 1)
        wait_for(lambda: said()[0].endswith("00:01:00\t2\n"))
        assert process.poll() is None


def test_after_its_end_a_run_waits_for_the_next_save_even_if_the_first_text_was_wrong(tmp_path: Path) -> None:
    add_minute(tmp_path, 0)
    script = tmp_path / "q.sql"
    script.write_text(STREAM + "SELEKT k FROM s;\n")
    with watching(tmp_path, "--until-end") as (process, said):
        wait_for(lambda: "waiting until q.sql is saved" in said()[1])
        script.write_text(STREAM + "SELECT k FROM s WHERE k = 'b';\n")
        wait_for(lambda: said()[1].count("waiting until q.sql is saved") == 2)
        assert said()[0] == "# query_1\nk\nb\n"
        other = tmp_path / "other.sql"
        other.write_text(STREAM + "SELECT k FROM s;\n")
        Thread(target=lambda: other.replace(script)).start()
        wait_for(lambda: said()[0].endswith("# query_1\nk\na\nb\n"))
        wait_for(lambda: said()[1].count("waiting until q.sql is saved") == 3)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=300) == 0
