"""`millrace latest` and `millrace serve` from outside: the answers of a run at work, and of one that has ended."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from millrace.commands.latest import latest
from millrace.errors import RunError
from tests.e2e.commands import COMMAND, Started, environment, millrace, wait_for

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE STREAM ticks (symbol STRING, venue INT, price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (symbol, venue)
  FROM csv OPTIONS (path 'ticks');
CREATE SINK all_prices TO csv OPTIONS (path 'prices');
CREATE QUERY prices INTO all_prices AS SELECT price, symbol, venue FROM ticks;
"""


def project(folder: Path) -> Path:
    (folder / "ticks").mkdir()
    path = folder / "prices.sql"
    path.write_text(SCRIPT)
    return path


def add(folder: Path, number: int, *rows: tuple[str, int, float]) -> None:
    """A file of ticks at a second, moved in whole."""
    path = folder / "ticks" / f"{number:04d}.csv"
    lines = [f"{symbol},{venue},{price},2024-01-01 00:00:{number:02d}" for symbol, venue, price in rows]
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("\n".join(["symbol,venue,price,ts", *lines]) + "\n")
    hidden.replace(path)


def shown(folder: Path, *arguments: object) -> list[dict[str, Any]]:
    asked = millrace("latest", "state", "prices", "--json", *arguments, folder=folder)
    return [json.loads(line) for line in asked.stdout.splitlines()]


def _answered(folder: Path) -> list[dict[str, Any]]:
    # A run on Spark listens before it has started, and answers when it has: one who waits asks again.
    with suppress(RunError):
        return list(latest(folder / "state", "prices", None, 10).data())
    return []


def prices(folder: Path, *, waiting: bool = False) -> dict[tuple[str, int], float]:
    """The latest prices; one who waits asks from here, for a command takes a second to start."""
    rows = _answered(folder) if waiting else shown(folder)
    return {(row["symbol"], row["venue"]): row["price"] for row in rows}


FIRST = {("A", 1): 7.0, ("B", 1): 8.0, ("A", 2): 9.0}
SECOND = FIRST | {("A", 1): 10.5, ("C", 1): 3.0}


def add_first(folder: Path) -> None:
    add(folder, 1, ("A", 1, 7.0), ("B", 1, 8.0), ("A", 2, 9.0))


def asked_at_work(folder: Path) -> None:
    """Ask a run that is at work."""
    wait_for((folder / "state" / "control" / "listening").exists)
    wait_for(lambda: prices(folder, waiting=True) == FIRST)
    add(folder, 2, ("A", 1, 10.5), ("C", 1, 3.0))
    wait_for(lambda: prices(folder, waiting=True) == SECOND)
    assert prices(folder) == SECOND
    assert shown(folder, "--key", "A", "1") == [{"symbol": "A", "venue": 1, "price": 10.5}]
    stale = shown(folder, "--staleness")
    assert all(row["queue_now"] == row["application_now"] == 0 for row in stale)


def asked_when_ended(folder: Path) -> None:
    """Ask the checkpoint of a run that has ended."""
    assert prices(folder) == SECOND
    one = millrace("latest", "state", "prices", "--key", "venue=2", "symbol=A", folder=folder)
    assert (one.returncode, one.stdout) == (0, "symbol\tvenue\tprice\nA\t2\t9.0\n")
    none = millrace("latest", "state", "prices", "--key", "Z", "1", "--json", folder=folder)
    assert (none.returncode, none.stdout) == (1, "")


def asked_after_another(folder: Path, run: Sequence[object], ending: str) -> None:
    """Ask when another run has gone on from the checkpoint."""
    add(folder, 3, ("B", 1, 11.0))
    again = millrace(*run, ending, folder=folder)
    assert again.returncode == 0, again.stderr
    assert prices(folder) == SECOND | {("B", 1): 11.0}


def test_the_latest_answers_are_asked_for_while_a_run_works_and_when_it_has_ended(tmp_path: Path) -> None:
    run = ["run", project(tmp_path), "--on", "local", "--checkpoint", "state"]
    add_first(tmp_path)
    with Started(*run, folder=tmp_path) as started:
        asked_at_work(tmp_path)
        code, _, said = started.interrupt()
    assert code == 0, said
    asked_when_ended(tmp_path)
    asked_after_another(tmp_path, run, "--available-now")


def test_answers_that_were_committed_outlive_a_kill(tmp_path: Path) -> None:
    run = ["run", project(tmp_path), "--on", "local", "--checkpoint", "state"]
    add(tmp_path, 1, ("A", 1, 7.0), ("B", 1, 8.0))
    first = {("A", 1): 7.0, ("B", 1): 8.0}
    with Started(*run, folder=tmp_path) as started:
        wait_for(lambda: any((tmp_path / "prices").glob("part-*")))
        started.kill()
    assert prices(tmp_path) == first
    add(tmp_path, 2, ("A", 1, 9.0))
    again = millrace(*run, "--available-now", folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert prices(tmp_path) == first | {("A", 1): 9.0}


def test_who_follows_sees_what_changes_until_the_run_ends(tmp_path: Path) -> None:
    run = ["run", project(tmp_path), "--on", "local", "--control", "control"]
    add(tmp_path, 1, ("A", 1, 7.0))
    with Started(*run, folder=tmp_path) as started:
        wait_for((tmp_path / "control" / "listening").exists)
        follows = subprocess.Popen(
            [*COMMAND, "latest", "control", "prices", "--follow"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(),
        )
        assert follows.stdout is not None
        assert follows.stdout.readline() == "symbol\tvenue\tprice\n"
        assert follows.stdout.readline() == "A\t1\t7.0\n"
        add(tmp_path, 2, ("B", 1, 8.0))
        assert follows.stdout.readline() == "B\t1\t8.0\n"
        started.interrupt()
        assert follows.wait(300) == 0


def test_wrong_requests_say_what_to_do(tmp_path: Path) -> None:
    wrong = millrace("latest", "nowhere", "prices", folder=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert 'no run listens in "nowhere", and it is no checkpoint' in wrong.stderr
    add_nothing = ["run", project(tmp_path), "--on", "local", "--checkpoint", "state", "--available-now"]
    assert millrace(*add_nothing, folder=tmp_path).returncode == 0
    wrong = millrace("latest", "state", "price", folder=tmp_path)
    assert wrong.returncode == 2
    assert 'holds no latest answers of a query "price"\nhint: It holds those of prices.' in wrong.stderr
    wrong = millrace("latest", "state", "prices", "--key", "A", folder=tmp_path)
    assert wrong.returncode == 2 and "symbol, venue" in wrong.stderr
    wrong = millrace("latest", "state", "prices", "--key", "sybmol=A", "venue=1", folder=tmp_path)
    assert wrong.returncode == 2 and '"sybmol" is no column of the key, which is symbol, venue' in wrong.stderr
    wrong = millrace("latest", "state", "prices", "--staleness", folder=tmp_path)
    assert wrong.returncode == 2 and "a run that is at work" in wrong.stderr


@pytest.mark.parametrize("command", [["serve"], ["run", "--serve", "0"]])
def test_a_run_is_served_over_http_and_says_where(tmp_path: Path, command: list[str]) -> None:
    add_to = project(tmp_path)
    add(tmp_path, 1, ("A", 1, 7.0))
    with Started(*command, add_to, "--on", "local", folder=tmp_path) as started:
        assert started.process.stderr is not None
        line = started.process.stderr.readline()
        assert line.startswith("serving on http://127.0.0.1:")
        url = line.removeprefix("serving on ").strip()

        def answer() -> Any:
            with urlopen(f"{url}/latest/prices", timeout=300) as found:
                return json.loads(found.read())

        wait_for(lambda: answer() == [{"symbol": "A", "venue": 1, "price": 7.0}])
        code, _, _ = started.interrupt()
    assert code == 0
