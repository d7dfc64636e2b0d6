"""Fixtures for pytest: `host`, over all hosts, and the one Spark session they share.

Load them with `pytest_plugins = ["millrace.testing.fixtures"]` in a top-level conftest.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from millrace.testing.hosts import HOSTS, Host


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of Spark, wherever the fixtures are used."""
    config.addinivalue_line("markers", "spark: starts a Spark session (seconds, and Java 17)")


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A quiet Spark session on two cores, started on first use."""
    # Imported here: a test of another host needs neither Spark nor Java.
    from millrace.hosts.spark.session.session import open_session

    session = open_session("local[2]", log_file=tmp_path_factory.mktemp("spark") / "spark.log")
    yield session
    session.stop()


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.spark if name == "spark" else ()) for name in HOSTS])
def host(request: pytest.FixtureRequest) -> Host:
    """Each host in turn; on Spark the test has the marker `spark`.

    A test calls `host.run(sql, inputs)` for the rows of every query.
    """
    return Host(request.param, lambda: request.getfixturevalue("spark_session"))
