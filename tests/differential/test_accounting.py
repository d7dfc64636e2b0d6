"""One bad clock among many good ones, and rows that are truly late: every row is accounted for, on every host."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from millrace.testing import Host

ROWS = 100_000
LATE = 1_000
AHEAD = 33_333
"""The row whose clock is a day ahead."""
DAY = 86_400_000_000
START = 1_700_000_000_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
SQL = """
CREATE STREAM s (v INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 1 SECOND FROM iterable;
CREATE QUERY q {options} AS SELECT window, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts];
"""


def times() -> npt.NDArray[np.int64]:
    """A row a millisecond; every hundredth comes ten seconds late, and one from tomorrow."""
    found = START + np.arange(ROWS) * 1_000
    found[50 :: ROWS // LATE] -= 10_000_000
    found[AHEAD] += DAY
    return found


def pieces() -> list[pa.Table]:
    rows = pa.table({"v": pa.array(np.arange(ROWS), pa.int32()), "ts": pa.array(times()).cast(TIMESTAMP)})
    return [rows.slice(start, ROWS // 4) for start in range(0, ROWS, ROWS // 4)]


@pytest.mark.slow
def test_one_row_from_tomorrow_makes_no_honest_row_late(host: Host) -> None:
    run = host.open(SQL.format(options="WITH (max_future_skew = '5 minutes')"), {"s": pieces()})
    source = run.run().sources["s"]
    assert (source.received, source.late, source.quarantined, source.buffered) == (ROWS, LATE, 1, 0)
    assert source.processed == ROWS - LATE - 1
    assert source.received == source.processed + source.buffered + source.late + source.quarantined
    honest = np.setdiff1d(np.arange(ROWS), [*range(50, ROWS, ROWS // LATE), AHEAD])
    starts, counts = np.unique(times()[honest] // 10_000_000 * 10_000_000, return_counts=True)
    found = pa.concat_tables(run.memory["q"]).sort_by("window_start")
    assert found.column("window_start").cast(pa.int64()).to_pylist() == starts.tolist()
    assert found.column("n").to_pylist() == counts.tolist()


def test_without_the_guard_the_bad_clock_makes_all_rows_after_it_late() -> None:
    source = Host("local").open(SQL.format(options=""), {"s": pieces()}).run().sources["s"]
    assert source.quarantined == 0
    assert source.late == ROWS - 1 - AHEAD + len(range(50, AHEAD, ROWS // LATE))


@pytest.mark.parametrize(("clause", "quarantined"), [("", 1), ("MAX FUTURE SKEW 2 DAYS", 0)])
def test_a_live_stream_is_measured_by_the_clock_without_being_asked(clause: str, quarantined: int) -> None:
    sql = SQL.format(options="").replace("FROM iterable", f"{clause} FROM iterable")
    now = time.time_ns() // 1_000
    rows = pa.table({"v": pa.array([1, 2, 3], pa.int32()), "ts": pa.array([now, now + DAY, now + 1]).cast(TIMESTAMP)})
    source = Host("local").open(sql, {"s": rows}, ending="stopped").run().sources["s"]
    assert (source.received, source.quarantined) == (3, quarantined)
    assert source.late == (0 if quarantined else 1)


def test_a_replayed_stream_is_not_measured_by_the_clock() -> None:
    sql = SQL.format(options="").replace("FROM iterable", "FROM iterable REPLAY BY ts SPEED 1000000")
    rows = pa.table({"v": pa.array([1, 2], pa.int32()), "ts": pa.array([2**61, 2**61 + DAY]).cast(TIMESTAMP)})
    source = Host("local").open(sql, {"s": rows}, ending="stopped").run().sources["s"]
    assert (source.received, source.quarantined) == (2, 0)
