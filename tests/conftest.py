"""What all tests share: the hosts, lanes, Hypothesis's profiles, and the option that rewrites golden files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["millrace.testing.fixtures"]

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=25, **_COMMON)
settings.register_profile("ci", max_examples=25, derandomize=True, print_blob=True, **_COMMON)
settings.register_profile("long", max_examples=500, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "quick"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="rewrite the golden files from the local host")


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
    in_process = not _COMMANDS & set(dir(getattr(item, "module", None)))
    return "spark" if item.get_closest_marker("spark") and in_process else item.nodeid.partition("::")[0]


def _turn(item: pytest.Item) -> int:
    folder = Path(item.nodeid).parts[1]
    return -1 if _lane(item) == "spark" else _FIRST.index(folder) if folder in _FIRST else len(_FIRST)
