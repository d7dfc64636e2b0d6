"""What a stage gives Spark at once is bounded, however many results a key has; so is what a worker keeps at hand."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

from millrace.hosts.spark.exchange.rows import Row
from millrace.hosts.spark.stage import stage


def test_results_are_cut_into_pieces_that_are_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_MOST_BYTES", 800)
    table = pa.table({"n": pa.array(range(1000), pa.int64())})
    pieces = list(stage._pieces(table))
    assert max(piece.num_rows for piece in pieces) == 100
    assert pa.concat_tables(pieces) == table
    assert list(stage._pieces(table.slice(0, 0))) == []


def test_rows_go_together_as_far_as_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_MOST_BYTES", 10)
    rows = [Row(0, "p", number, b"x" * size) for number, size in enumerate((4, 5, 3, 20, 1))]
    assert [[row.seq for row in together] for together in stage._framed(rows)] == [[0, 1], [2], [3], [4]]
    assert list(stage._framed([])) == [[]]


def test_a_bucket_that_was_not_at_work_for_long_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket: Any = object()
    cached: dict[Any, Any] = {("an earlier run", 1, 0): (time.monotonic() - 301, bucket)}
    monkeypatch.setattr(stage, "_CACHED", cached)
    for number in range(2):
        stage._cache(("this run", 1, number), bucket)
    assert list(cached) == [("this run", 1, 0), ("this run", 1, 1)]
