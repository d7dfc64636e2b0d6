from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.testing import Host, table

STREAM = "CREATE STREAM s (k STRING, n INT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 10 SECONDS FROM iterable;"
COUNT = (
    f"{STREAM} CREATE QUERY q AS SELECT window, k, sum(n) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY k;"
)
SCHEMA = {"k": pa.string(), "n": pa.int32(), "ts": pa.timestamp("us", tz="UTC")}
ROWS = table(
    """
    arrive | k | n | ts
    0s     | a | 1 | 00:00:05
    1s     | b | 2 | 00:00:03
    2s     | a | 4 | 00:01:05
    """,
    SCHEMA,
)


def test_every_host_takes_rows_with_arrivals(host: Host) -> None:
    rows = host.run(COUNT, {"s": ROWS})["q"]
    assert sorted((row["window_start"].minute, row["k"], row["n"]) for row in rows) == [
        (0, "a", 1),
        (0, "b", 2),
        (1, "a", 4),
    ]


@pytest.mark.parametrize("name", ["local", "virtual"])
def test_an_available_run_leaves_windows_open(name: str) -> None:
    rows = Host(name).run(COUNT, {"s": [ROWS.table.slice(0, 1), ROWS.table.slice(1)]}, ending="available")["q"]  # type: ignore[arg-type]
    assert rows == []


@pytest.mark.parametrize("name", ["local", "virtual"])
def test_a_stream_without_times_of_its_own_arrives_row_by_row(name: str) -> None:
    sql = "CREATE STREAM s (n INT) INTERNAL TIMESTAMP AS ts FROM iterable; CREATE QUERY q AS SELECT n FROM s;"
    assert Host(name).run(sql, {"s": pa.table({"n": [1, 2, 3]})}) == {"q": [{"n": 1}, {"n": 2}, {"n": 3}]}  # type: ignore[arg-type]
