"""Every example gives the output that stands beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.commands import environment, millrace
from tests.postgres import server
from tests.unit.test_code_blocks import blocks_of, commands

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
QUOTES = '"""'
ELSEWHERE = ("kafka_sink", "postgres", "postgres_sink", "quotes_overload", "slow_quotes")
"""Examples that need a database, see below, or recorded data, see tests/differential/test_real_updates.py."""

IN_REAL_TIME = "live"


def first_steps(page: str) -> list[list[str]]:
    """The commands that a page tells a newcomer to type, but for those that need Java or go on until Ctrl-C."""
    found = [line for block in blocks_of(ROOT / page) if block.kind == "sh" for line in commands(block.text)]
    ends = {"--until-end", "virtual"}
    return [
        line[1:]
        for line in found
        if line[:1] == ["millrace"] and line[1] in ("new", "check", "explain", "run", "demo")
        if line[1] in ("new", "check", "explain") or ("--on" in line and ends & {*line} and "--watch" not in line)
    ]


@pytest.mark.parametrize(("page", "count"), [("README.md", 7), ("docs/start.md", 6)])
def test_the_first_steps_do_what_their_page_says(page: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    steps = first_steps(page)
    assert len(steps) == count, steps
    for step in steps:
        ran = millrace(*step, folder=tmp_path)
        assert ran.returncode == 0, (step, ran.stderr)
        assert ran.stdout, step
        if step[:2] == ["run", "departures.sql"]:
            assert ran.stdout.splitlines()[1].split("\t") == ["window_start", "window_end", "n"]


def output_of(*arguments: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, env=environment()
    )
    assert ran.returncode == 0, ran.stderr
    return rows(ran.stdout)


def output_of_run(name: str, *options: str) -> list[str]:
    ran = millrace("run", f"examples/{name}.sql", "--until-end", *options, folder=ROOT)
    assert ran.returncode == 0, ran.stderr
    return rows(ran.stdout)


def rows(text: str) -> list[str]:
    """The rows in any order, without the heads: when a query's results come out is the host's affair."""
    return sorted(line for line in text.splitlines() if not line.startswith(("#", "window_start\t", "ts\t")))


def expected(name: str) -> list[str]:
    return rows((EXAMPLES / f"{name}.out").read_text())


def names(ending: str) -> list[str]:
    return sorted(path.stem for path in EXAMPLES.glob(f"*{ending}") if path.stem not in ELSEWHERE)


@pytest.mark.parametrize(
    ("name", "host"),
    [
        (name, host)
        for name in names(".sql")
        for host in ("local", "virtual")
        if host == "virtual" or name != IN_REAL_TIME
    ],
)
def test_an_example_in_sql_gives_its_output(name: str, host: str) -> None:
    assert output_of_run(name, "--on", host) == expected(name)


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
def test_the_first_example_gives_its_output_on_spark() -> None:
    assert output_of_run("q1") == expected("q1")


@pytest.mark.parametrize("name", names(".py"))
def test_an_example_in_python_gives_its_output(name: str) -> None:
    assert output_of(f"examples/{name}.py") == expected(name)


def test_the_examples_with_a_database_give_their_output() -> None:
    with server() as dsn:
        for name in ("postgres", "postgres_sink"):
            assert output_of(f"examples/{name}.py", dsn) == expected(name)
    text = (EXAMPLES / "postgres.py").read_text()
    assert f"```sql{text.split(QUOTES)[3]}```" in (ROOT / "docs" / "postgres.md").read_text()
