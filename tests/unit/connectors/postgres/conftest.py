"""A server of PostgreSQL for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres import server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with server() as dsn:
        yield dsn
