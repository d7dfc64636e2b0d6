"""Random expressions over all functions: valid ones give what Spark gives, malformed ones an error of ours.

`python -m tests.differential.fuzz --cases 2000` compares more of them.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from millrace.errors import QueryError
from millrace.language import bind_expression
from tests.differential.fuzz import compare
from tests.differential.malformed_expressions import Malformed
from tests.differential.random_expressions import Expressions, given_rows

SEED = 19


def test_malformed_expressions_are_refused_with_a_hint_at_their_place() -> None:
    tried = Malformed(given_rows(SEED))
    tried.try_many(SEED, 300)
    assert tried.faults == []
    assert tried.outcomes["refused: QueryError"] > 240, tried.outcomes


def test_half_a_character_is_refused() -> None:
    with pytest.raises(QueryError, match=r"line 1, column 3: U\+D800 is half of a character"):
        bind_expression("'a\ud800'", pa.schema([]))


@pytest.mark.slow
@pytest.mark.spark
def test_random_expressions_give_what_they_give_on_spark(spark_session: Any) -> None:
    rows = given_rows(SEED)
    expressions = Expressions(SEED, rows.schema)
    found = compare(spark_session, rows, [expressions.next() for _ in range(150)])
    assert found.unlike == []
    assert len(found.compared) > 120, (found.refused_by_spark, found.failed_here)
