"""Random expressions over all functions: valid ones give what Spark gives, malformed ones an error of ours.

`python -m tests.differential.fuzz --cases 2000` compares more of them.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.differential.fuzz import compare
from tests.differential.random_expressions import Expressions, given_rows, malformed, survives

SEED = 19


@pytest.mark.slow
def test_malformed_expressions_are_refused_with_a_hint() -> None:
    rows, draw = given_rows(SEED), random.Random(SEED)
    expressions = Expressions(SEED, rows.schema)
    assert sum(survives(malformed(expressions.next(), draw), rows) for _ in range(300)) < 60


@pytest.mark.slow
@pytest.mark.spark
def test_random_expressions_give_what_they_give_on_spark(spark_session: Any) -> None:
    rows = given_rows(SEED)
    expressions = Expressions(SEED, rows.schema)
    found = compare(spark_session, rows, [expressions.next() for _ in range(150)])
    assert found.unlike == []
    assert len(found.compared) > 120, (found.refused_by_spark, found.failed_here)
