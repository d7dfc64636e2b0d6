"""What the tests of this folder share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

HERE = str(Path(__file__).parent)

# The toys are imported by name, here and in Spark's worker processes.
sys.path.insert(0, HERE)
os.environ["PYTHONPATH"] = os.pathsep.join([HERE, *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture
def spark(spark_session: SparkSession) -> SparkSession:
    """The session that all tests share, set for the toys."""
    from toys import SETTINGS

    for name, value in SETTINGS.items():
        spark_session.conf.set(name, value)
    return spark_session
