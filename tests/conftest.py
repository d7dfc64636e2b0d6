"""What all tests share: the hosts, lanes, Hypothesis's profiles, and the option that rewrites golden files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from hypothesis import HealthCheck, settings

from tests.e2e.commands import RunOn, millrace, millrace_here

pytest_plugins = ["millrace.testing.fixtures"]

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=25, **_COMMON)
settings.register_profile("ci", max_examples=25, derandomize=True, print_blob=True, **_COMMON)
settings.register_profile("long", max_examples=500, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "quick"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="rewrite the golden files from the local host")


@pytest.fixture
def run_on(request: pytest.FixtureRequest) -> RunOn:
    """`run_on(host, script, "--until-end", folder=...)` runs the command line; on Spark, in the session of all tests.

    That session's processes have a working folder of their own, so the paths of the script are made absolute for it.
    """

    def run(host: str, script: Path | str, *arguments: object, folder: Path) -> CompletedProcess[str]:
        if host != "spark":
            return millrace("run", script, "--on", host, *arguments, folder=folder)
        request.getfixturevalue("spark_session")
        file = folder / script
        file.write_text(re.sub(r"path '(?!/)", f"path '{folder}/", file.read_text()))
        return millrace_here("run", file, *arguments, folder=folder)

    return run


# What waits most is begun first, so that no worker is left alone with it at the end.
_FIRST = ("crash", "e2e", "differential", "golden", "property", "unit")
_COMMANDS = {"Started", "millrace"}
"""What a test module imports that starts the command line, in a process of its own."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Distribute whole files to the workers, and all tests of this process's Spark session to one of them."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_lane(item)))
    items.sort(key=_turn)


def _lane(item: pytest.Item) -> str:
    fixtures = getattr(item, "fixturenames", ())
    elsewhere = "spark_session" not in fixtures and "run_on" not in fixtures and _COMMANDS & set(vars(item.module))
    return "spark" if item.get_closest_marker("spark") and not elsewhere else item.nodeid.partition("::")[0]


def _turn(item: pytest.Item) -> int:
    folder = Path(item.nodeid).parts[1]
    return -1 if _lane(item) == "spark" else _FIRST.index(folder) if folder in _FIRST else len(_FIRST)
