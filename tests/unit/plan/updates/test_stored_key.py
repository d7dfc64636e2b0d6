"""Which columns tell the results of a query apart in a store."""

from __future__ import annotations

import pytest

from millrace.language import parse_network
from millrace.plan.updates.stored_key import stored_key

STREAM = "CREATE STREAM s (k STRING, n BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 's');"


@pytest.mark.parametrize(
    "window",
    [
        "[RANGE 1 MINUTE SLIDE 1 MINUTE]",
        "[RANGE 1 DAY SLIDE 1 DAY AT TIME ZONE 'Europe/Berlin']",
        "[RANGE 1 MONTH SLIDE 1 MONTH]",
        "[SESSION 1 MINUTE]",
    ],
)
def test_results_of_a_window_are_told_apart_by_group_and_window(window: str) -> None:
    (query,) = parse_network(
        f"{STREAM} CREATE QUERY q AS SELECT k, window_end, sum(n) AS total FROM s {window} GROUP BY k;"
    ).queries
    assert stored_key(query) == ("k", "window_end")


def test_results_per_row_are_not_told_apart() -> None:
    (query,) = parse_network(
        f"{STREAM} CREATE QUERY q AS SELECT k, sum(n) AS total FROM s [ROWS 3 PARTITION BY k] GROUP BY k;"
    ).queries
    assert stored_key(query) is None
