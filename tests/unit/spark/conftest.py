"""One Spark session for all tests of this folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

HERE = str(Path(__file__).parent)

# The toys are imported by name, here and in Spark's worker processes.
sys.path.insert(0, HERE)
os.environ["PYTHONPATH"] = os.pathsep.join([HERE, *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture(scope="session")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark") / "spark.log"


@pytest.fixture(scope="session")
def spark(log_file: Path) -> Iterator[SparkSession]:
    from toys import SETTINGS

    from millrace.hosts.spark.session import open_session

    session = open_session("local[2]", log_file=log_file, settings=SETTINGS)
    yield session
    session.stop()
