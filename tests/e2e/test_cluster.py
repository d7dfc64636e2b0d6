"""The same program on a standalone cluster: the same results, by code that was shipped, though executors are lost."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.network import SCRIPT, add_minute, expected, project, results
from tests.e2e.cluster import SPARK_CLASS, Cluster, NoClusterError, cluster_in
from tests.e2e.commands import Started, millrace_process, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.long]

MEASURES = """
import widths

class Spread:
    def initialize(self):
        return []

    def iterate(self, state, values):
        return state + values.to_pylist()

    def merge(self, state, other):
        return state + other

    def terminate(self, state):
        return widths.of(state)
"""
WIDTHS = """
def of(values):
    return max(values) - min(values)
"""
SCALES = """
def thrice(value):
    return value * 3
"""
OWN = """
CREATE FUNCTION thrice(INT) RETURNS INT LANGUAGE PYTHON AS 'scales:thrice';
CREATE AGGREGATE spread(INT) RETURNS INT LANGUAGE PYTHON AS 'measures:Spread';
CREATE SINK spreads TO csv OPTIONS (path 'out/spreads');
CREATE QUERY spread_out INTO spreads AS
  SELECT k, spread(thrice(v)) AS width FROM links [RANGE 2 MINUTES SLIDE 2 MINUTES WA ts] GROUP BY k;
"""
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Six Javas run for a minute: the second compiler would take longer than it saves."""
POISON = "raise ImportError('this is not the one that was shipped')\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose processes find neither this package nor a user's modules, unless they are sent to them."""
    if not SPARK_CLASS.exists() or not shutil.which("bash") or not Path("/proc/self/stat").exists():
        pytest.skip("a cluster needs spark-class, bash and /proc; runs on Linux with PySpark from pip")
    folder = tmp_path_factory.mktemp("cluster")
    try:
        with cluster_in(folder, without_code(folder / "poison")) as made:
            yield made
    except NoClusterError as error:
        pytest.skip(f"no cluster on loopback: {error}; runs where Java processes may listen there")


def without_code(folder: Path) -> dict[str, str]:
    """An environment in which our package and the user's modules cannot be imported, though they are installed."""
    folder.mkdir()
    for name in ("millrace", "measures", "scales", "widths"):
        (folder / f"{name}.py").write_text(POISON)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {**kept, "PYTHONPATH": str(folder), "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": QUICK_JAVA}


@pytest.fixture(autouse=True)
def on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", QUICK_JAVA)


def test_processes_of_the_cluster_cannot_import_what_is_not_shipped(cluster: Cluster) -> None:
    command = [sys.executable, "-c", "import millrace"]
    tried = subprocess.run(command, env=dict(cluster.environment), capture_output=True, text=True)
    assert "not the one that was shipped" in tried.stderr


def test_a_cluster_gives_the_same_files_with_shipped_code(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "measures.py").write_text(MEASURES)
    (tmp_path / "widths.py").write_text(WIDTHS)
    (tmp_path / "scales.py").write_text(SCALES)
    script = project(tmp_path, 4)
    script.write_text(SCRIPT + OWN)
    ended = millrace_process(
        "run", script, "--master", cluster.url, "--until-end", "--checkpoint", "state", folder=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    assert results(tmp_path) == expected(4)
    assert widths(tmp_path) == Counter({("a", "3"): 2, ("b", "0"): 2})


def widths(folder: Path) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for path in (folder / "out" / "spreads").glob("part-*"):
        with path.open() as file:
            found.update((row["k"], row["width"]) for row in csv.DictReader(file))
    return found


def test_lost_executors_and_workers_lose_and_repeat_nothing(cluster: Cluster, tmp_path: Path) -> None:
    script, files = project(tmp_path, 3), 3
    run = ["run", script, "--master", cluster.url, "--checkpoint", "state"]

    def committed() -> set[str]:
        return {path.name for path in (tmp_path / "state" / "commits").glob("*.json")}

    with Started(*run, "--trigger", "100 milliseconds", folder=tmp_path) as started:

        def go_on() -> None:
            nonlocal files
            seen = committed()
            add_minute(tmp_path, files)
            files += 1
            wait_for(lambda: committed() - seen or started.process.poll() is not None)
            assert started.process.poll() is None, started.process.communicate()

        go_on()
        for lose in (cluster.kill_executor, cluster.kill_worker):
            wait_for(lambda: all(cluster.executors()))
            # A file that has just come is being worked on.
            add_minute(tmp_path, files)
            files += 1
            lose(1)
            go_on()
    ended = millrace_process(*run, "--until-end", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert results(tmp_path) == expected(files)
