"""One hot key: two-level aggregation takes the heat before rows of a key meet in one bucket."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.hosts.spark.exchange.rows import STREAM_PORT, unpack
from millrace.hosts.spark.source.low_level import StreamLowLevel
from millrace.hosts.spark.source.stream_files import FileScan
from millrace.language import parse_network
from millrace.plan.physical.stages import physical

ROWS, KEYS, BUCKETS = 100_000, 1_000, (3, 5, 8, 9)
SQL = """CREATE STREAM s (k BIGINT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM parquet OPTIONS (path '{}');
CREATE QUERY q {} AS
  SELECT k, count(*) AS n, sum(v) AS total FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY k;
"""


def exchanged(folder: Path, keys: np.ndarray, options: str = "") -> Counter[int]:
    """How many tuples each bucket is sent, for a file of rows with these keys."""
    times = pa.array(np.arange(len(keys)) * 100, pa.timestamp("us", tz="UTC"))
    table = pa.table({"k": keys, "v": np.ones(len(keys), np.int64), "ts": times})
    pq.write_table(table, folder / "0.parquet")
    low = StreamLowLevel(physical(parse_network(SQL.format(folder, options))), "s", BUCKETS)
    given = low.read([str(folder / "0.parquet")], 0, FileScan(0, 0, 0, all=True), {}, alone=True)
    rows = [row for each in given for row in each.to_pylist() if row["port"] != STREAM_PORT]
    found: Counter[int] = Counter()
    for row in rows:
        found[row["bucket"]] += unpack(row["blob"]).num_rows
    return found


@pytest.mark.parametrize("hot", [0.0, 0.6, 0.99])
def test_a_bucket_is_sent_partials_however_hot_a_key_is(tmp_path: Path, hot: float) -> None:
    draws = np.random.default_rng(1)
    keys = np.where(draws.random(ROWS) < hot, 7, draws.integers(0, KEYS, ROWS))
    assert max(exchanged(tmp_path, keys).values()) < 2 * KEYS / len(BUCKETS)


def test_a_hot_key_among_many_that_come_once_weighs_no_more_than_they_do(tmp_path: Path) -> None:
    draws = np.random.default_rng(2)
    keys = np.where(draws.random(ROWS) < 0.6, -1, np.arange(ROWS))
    sent = exchanged(tmp_path, keys)
    assert max(sent.values()) < 1.1 * min(sent.values())
    assert sum(sent.values()) < 0.42 * ROWS


def test_the_table_of_the_low_level_can_be_bounded(tmp_path: Path) -> None:
    draws = np.random.default_rng(3)
    keys = np.where(draws.random(ROWS) < 0.6, -1, np.arange(ROWS))
    sent = exchanged(tmp_path, keys, "WITH (low_level_groups = 64)")
    assert max(sent.values()) < 1.2 * min(sent.values()), "the hot key keeps its place in the table"
