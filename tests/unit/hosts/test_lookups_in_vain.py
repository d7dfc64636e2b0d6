"""A stream of changes whose times are all later than the rows that ask: nulls come with a warning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millrace as mr
from millrace.api.console import summary_lines

DAY = 86_400_000_000


def asked(host: Any, known_at: int, checkpoint: Path | None = None) -> mr.Handle:
    net = mr.Network()
    rows = [{"k": "ab"[number % 2], "ts": DAY + number} for number in range(10)]
    asks = net.stream("asks", "k STRING, ts TIMESTAMP", time="ts", source=[rows], replay_by="ts")
    prices = [{"k": key, "price": 1.0, "ts": known_at} for key in "ab"]
    known = net.stream("prices", "k STRING, price DOUBLE, ts TIMESTAMP", time="ts", source=[prices], replay_by="ts")
    net.query("priced", asks.asof_join(known, on="k", how="left"))
    replayed = {} if host == "virtual" else {"checkpoint": checkpoint}
    return net.run(on=host, until="end", **replayed)


@pytest.mark.parametrize(
    "host", ["virtual", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow], id="spark")]
)
def test_rows_that_all_ask_before_the_first_change_are_warned_of(
    host: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if host == "spark":
        request.getfixturevalue("spark_session")
    late = asked(host, 2 * DAY, tmp_path / "late")
    assert late.metrics().in_vain == 10
    [line] = [each for each in summary_lines(late.metrics()) if "warning" in each]
    assert line.strip().startswith("warning: 10 rows of as-of joins met nothing so far")
    if host != "spark":
        assert asked(host, DAY).metrics().in_vain == 0, "some have met a row"
