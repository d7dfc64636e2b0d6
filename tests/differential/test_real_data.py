"""Real DNS traffic, minutes out of order, through the command line on every host, against DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from millrace.runs import HOSTS
from tests.differential.test_q1 import comparable
from tests.e2e.commands import chatter, millrace

duckdb = pytest.importorskip(
    "duckdb", reason="DuckDB is the oracle of these tests; runs wherever the dev extra is installed"
)

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "net_dns.csv.gz"
KEYS = ("qtype_name", "query")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not DATA.exists(), reason="the recorded DNS traffic is not beside the repository; runs where shared/data is"
    ),
]

SCRIPT = """
CREATE STREAM dns (ts TIMESTAMP, qtype_name STRING, query STRING)
  TIMESTAMP BY ts DISORDER INTERVAL 900 SECONDS
  FROM csv OPTIONS (path '{data}', timestamp_format 'epoch_seconds');
CREATE SINK by_qtype_name TO parquet OPTIONS (path '{out}/qtype_name');
CREATE SINK by_query TO parquet OPTIONS (path '{out}/query');
CREATE QUERY count_by_qtype_name INTO by_qtype_name AS
  SELECT qtype_name, count(*) AS n FROM dns [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY qtype_name;
CREATE QUERY count_by_query INTO by_query AS
  SELECT query, count(*) AS n FROM dns [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY query;
"""


@pytest.fixture(scope="module")
def expected() -> dict[str, list[tuple[Any, ...]]]:
    connection = duckdb.connect()
    return {key: connection.execute(_oracle(key)).fetchall() for key in KEYS}


def _oracle(key: str) -> str:
    rows = f"read_csv('{DATA}', header = true, all_varchar = true)"
    # Whole microseconds: a fraction of a second is not exact in binary.
    micros = "CAST(CAST(ts AS DECIMAL(20, 6)) * 1000000 AS BIGINT)"
    return f"SELECT {micros} // 60000000 * 60.0::DOUBLE AS w, {key}, count(*) FROM {rows} GROUP BY w, {key}"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.spark if name == "spark" else ()) for name in HOSTS]
)
def test_counts_of_real_traffic_are_the_batch_answer(
    name: str, tmp_path: Path, expected: dict[str, list[tuple[Any, ...]]]
) -> None:
    script = tmp_path / "dns.sql"
    script.write_text(SCRIPT.format(data=DATA, out=tmp_path / "out"))
    ran = millrace("run", script, "--on", name, "--until-end", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert chatter(ran.stderr) == []
    for key in KEYS:
        rows = pq.read_table(tmp_path / "out" / key).to_pylist()
        found = [(row["window_start"].timestamp(), row[key], row["n"]) for row in rows]
        assert comparable(found) == comparable(expected[key])
