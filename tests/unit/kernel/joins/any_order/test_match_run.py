from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.elements import END_OF_TIME, NO_BOUND
from millrace.kernel.joins.any_order import match_run
from millrace.kernel.joins.any_order.match_keys import KeyReader
from millrace.kernel.joins.any_order.match_run import MatchRows, MatchRun


@pytest.fixture
def run() -> MatchRun:
    random = np.random.default_rng(5)
    keys, times = random.integers(0, 20, 200), random.integers(0, 1000, 200)
    rows = pa.record_batch({"k": keys})
    return MatchRun(MatchRows(KeyReader(["k"], rows.schema), rows, times, times + random.integers(0, 300, 200)))


@pytest.mark.parametrize("looks", [0, 8, 1000])
def test_rows_let_go_are_counted_alike_looked_through_or_in_order(
    run: MatchRun, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match_run, "_LOOKS", looks)
    for bound in (NO_BOUND, *range(0, 1400, 70), END_OF_TIME):
        gone = len(run) if bound == END_OF_TIME else int((run.untils < bound).sum())
        assert run.gone(bound) == run.gone(bound) == gone
    assert ("leaving" in vars(run)) == (looks < 20)


def test_a_run_made_of_rows_in_order_is_the_same_without_being_moved(run: MatchRun) -> None:
    again = MatchRun(MatchRows(run.reader, run.rows, run.times, run.untils))
    assert run.moved and not again.moved
    assert again.distinct.tolist() == run.distinct.tolist() and again.codes.tolist() == run.codes.tolist()
