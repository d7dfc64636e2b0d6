"""Two windows in a chain over an update stream: the last answer of each key is that over all rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.kernel.elements import TIMESTAMP
from millrace.language import parse_network
from millrace.testing import Host
from tests.reference import evaluate, multiset, settled

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64()), ("ts", TIMESTAMP)])
STREAM = """
CREATE STREAM s (k STRING, v BIGINT, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 4 SECONDS UPDATE KEY (k) FROM iterable;
"""
LENGTHS = st.integers(1, 3)


@st.composite
def windows(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Range and slide of the inner and the outer window: the outer ones are made of whole inner ones."""
    slide = draw(LENGTHS)
    return slide * draw(LENGTHS), slide, slide * draw(st.integers(1, 6)), slide * draw(LENGTHS)


@st.composite
def updates(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows of some keys, up to three seconds out of order."""
    found, second = [], 20
    for _ in range(draw(st.integers(1, 30))):
        second += draw(st.integers(0, 5))
        time = EPOCH + timedelta(seconds=second - draw(st.sampled_from([0, 0, 0, 3])))
        found.append({"k": draw(st.sampled_from("abc")), "v": draw(st.integers(0, 9)), "ts": time})
    return found


@pytest.mark.slow
@given(lengths=windows(), rows=updates(), mode=st.sampled_from(["eager", "lazy"]), cut=st.integers(1, 30))
def test_the_last_answer_over_answers_is_exact(
    lengths: tuple[int, int, int, int], rows: list[dict[str, Any]], mode: str, cut: int
) -> None:
    inner = f"SELECT k, sum(v) AS w FROM s [RANGE {lengths[0]} s SLIDE {lengths[1]} s] GROUP BY k"
    outer = (
        f"SELECT k, max(w) AS m, count(*) AS n FROM ({inner}) [RANGE {lengths[2]} s SLIDE {lengths[3]} s] GROUP BY k"
    )
    network = parse_network(f"{STREAM} CREATE QUERY q WITH (update_window = '{mode}') AS {outer}")
    tables = [pa.Table.from_pylist(rows[start : start + cut], SCHEMA) for start in range(0, len(rows), cut)]
    answers = Host("local").run(network, {"s": tables})["q"]
    (query,) = network.queries
    correct = multiset(evaluate(query, {"s": rows}))
    assert set(multiset(answers)) <= set(correct)
    last = {row["k"]: row for row in answers}
    assert multiset(last.values()) == multiset(settled(query, {"s": rows}))
