"""Memory is that of real operators, and does not depend on the machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from millrace.experiments.figures.out_of_order import LateStream, MemoryCase
from millrace.hosts.virtual.clock import Costs

UNION = "FROM (SELECT * FROM a UNION SELECT * FROM b) [RANGE 2 SECONDS SLIDE 2 SECONDS WA ts] GROUP BY src"


def case(delay: float, options: str = "") -> MemoryCase:
    query = f"CREATE QUERY counted {options} AS SELECT src, count(*) AS n {UNION};"
    return MemoryCase(query, (LateStream("a", 1000), LateStream("b", 1000, delay)), seconds=10.0, step=0.5, groups=512)


def test_what_waits_for_a_late_stream_in_order_takes_memory() -> None:
    prompt, late = (case(delay, "WITH (baseline = 'in_order')").measure() for delay in (0.0, 8.0))
    assert late["megabytes"] > prompt["megabytes"] + 4 * 1000 * 16 / 1e6
    assert late["results"] == prompt["results"] == case(8.0).measure()["results"] == 10


def test_a_case_measures_the_same_again() -> None:
    assert case(3.0).measure()["megabytes"] == case(3.0).measure()["megabytes"]


@pytest.mark.parametrize(("slack", "refused"), [(5, 0), (1, 7000)])
def test_rows_that_a_slack_turns_away_are_counted(slack: int, refused: int) -> None:
    assert case(3.0, f"WITH (slack = '{slack} s')").measure()["turned_away"] >= refused


def test_rows_are_spaced_evenly_whatever_the_rate() -> None:
    rows = LateStream("a", 110_000).rows(1.0, 2.0, 4)
    times = rows.column("ts").cast("int64")
    assert (rows.num_rows, times[0].as_py(), times[-1].as_py()) == (110_000, 1_000_000, 1_999_990)


def test_latency_is_the_work_from_the_rows_that_complete_a_window_to_its_result() -> None:
    free, slow, slower = (replace(case(0.0), costs=Costs(row=cost)).measure()["latency"] for cost in (0, 1, 2))
    assert free == 0.0
    # The 1,000 rows of a step go through a selection of columns, the union and the aggregate.
    assert 1000e-6 <= slow <= 3010e-6
    assert slower == pytest.approx(2 * slow)


def test_many_groups_have_as_many_sources_as_destinations() -> None:
    rows = LateStream("a", 100_000).rows(0.0, 1.0, 4096 * 4096)
    assert [max(rows.column(name).to_pylist()) // 4000 for name in ("src", "dst")] == [1, 1]
