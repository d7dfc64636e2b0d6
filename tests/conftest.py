"""What all tests share: the hosts, lanes, Hypothesis's profiles, and the option that rewrites golden files."""

from __future__ import annotations

import atexit
import gc
import os
import re
import signal
import sys
from collections.abc import Container, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from tests.e2e.commands import RunOn
    from tests.kafka_broker import Broker

pytest_plugins = ["millrace.testing.fixtures"]

# Each worker, and each of the hundreds of processes that tests start, would otherwise compile all of Millrace again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# In what a shell runs in the background Ctrl-C is ignored, and so it would be in all commands that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Thousands of tests are collected and stay until the end: to look for garbage among them takes a third of that time.
gc.disable()

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=10, **_COMMON)
settings.register_profile("ci", max_examples=10, derandomize=True, print_blob=True, **_COMMON)
settings.register_profile("long", max_examples=100, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "quick"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="rewrite the golden files from the local host")


@pytest.fixture
def run_on(request: pytest.FixtureRequest) -> RunOn:
    """`run_on(host, script, "--until-end", folder=...)` runs the command; on Spark, in the session of all tests."""
    from tests.e2e.commands import absolute, millrace

    def run(host: str, script: Path | str, *arguments: object, folder: Path) -> CompletedProcess[str]:
        if host != "spark":
            return millrace("run", script, "--on", host, *arguments, folder=folder)
        request.getfixturevalue("spark_session")
        return millrace("run", absolute(folder / script), *arguments, folder=folder)

    return run


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker that tests share, each with topics of its own; one that stops or kills a broker starts another."""
    from tests.kafka_broker import running

    with running(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


# What waits most is begun first, so that no worker is left alone with it at the end.
_FIRST = ("crash", "e2e", "differential", "golden", "property", "unit")
_ON_SPARK = re.compile(
    r"[\[-]spark[\]-]|_on_spark|leaves?_spark|/hosts/spark/test_(host|progress)\.py|/e2e/test_native\.py|/test_matrix\.py"
)
"""Tests that share the Spark session of their process, by their names."""
_WHOLE_RUNS, _OTHERS = "whole runs on spark, and kafka", "spark"
_LANES = {"crash": _WHOLE_RUNS, "e2e": _WHOLE_RUNS}
"""Two lanes of about one length: each starts Spark and its Python processes, half a minute of processor time."""


def _lane(nodeid: str) -> str:
    """What is given to a worker as a whole: a file, or the tests that share a Spark session or the Kafka broker."""
    file = nodeid.partition("::")[0]
    if "kafka" in file:
        return _WHOLE_RUNS
    return _LANES.get(nodeid.split("/")[1], _OTHERS) if _ON_SPARK.search(nodeid) else file


def _turn(item: pytest.Item, slow: Container[str]) -> tuple[int, bool]:
    """When a test is begun: Spark first, then by folder; of a folder the files with slow tests first."""
    folder = item.nodeid.split("/")[1]
    turn = _FIRST.index(folder) if folder in _FIRST else len(_FIRST)
    if item.get_closest_marker("spark"):
        turn = -2 if _ON_SPARK.search(item.nodeid) else -1
    return turn, item.nodeid.partition("::")[0] not in slow


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests in the order in which workers take them."""
    slow = {item.nodeid.partition("::")[0] for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: _turn(item, slow))


def pytest_collection_finish() -> None:
    """Look for garbage from here on, and only in what tests make."""
    gc.freeze()
    gc.enable()


# Let Python tidy up at its end; some packages complain of what it leaves. Not before: pytest looks for garbage five
# times, and xdist interrupts a worker that takes seconds to end.
atexit.register(gc.unfreeze)


class Lanes(LoadScopeScheduling):  # type: ignore[misc]
    """Whole files to the workers, and the tests that share a Spark session to two of them."""

    def _split_scope(self, nodeid: str) -> str:
        return _lane(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Lanes:
    """The scheduler of a run with several workers."""
    return Lanes(config, log)
