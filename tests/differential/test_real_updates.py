"""Recorded quotes as an update stream by the command line on every host, and DuckDB's last quote of every feed.

How many answers come before the last depends on the host. Each of them is a quote that was recorded, none is older than
one before it, and the last is the last; with an append queue they are all of them. Where times are those of the
exchanges several quotes of a feed have the same: then the one that came last holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.language.declarations.query_options import spelling
from tests.differential.test_q1 import pieces
from tests.differential.test_real_data import DATA, long_on_spark, needs_data
from tests.e2e.commands import RunOn, millrace

duckdb = pytest.importorskip(
    "duckdb", reason="DuckDB is the oracle of these tests; runs wherever the dev extra is installed"
)

pytestmark = [pytest.mark.slow, needs_data]
MOST = {"local": 300_000, "spark": 60_000, "virtual": 1_500}
"""How many rows of each stream are enough; in virtual time every row is an event of its own."""
OPTIONS = {
    "local": [],
    "spark": ["--master", "local[2]"],
    # Quotes come 1.7 milliseconds apart, so that half of the work must be left out.
    "virtual": ["--cost", "600 microseconds"],
}
EXAMPLES = Path(__file__).parents[2] / "examples"

COLUMNS = "venue STRING, symbol STRING, n BIGINT, bid DOUBLE, ask DOUBLE, ts TIMESTAMP"
STREAMS = {"quotes": "ORDERED", "stamped": "DISORDER INTERVAL 1 SECOND", "trades": "ORDERED"}
UPDATES = ("update_fifo", "inplace", "linecutting", "linecutting_as_printed", "auto")
JOIN = (
    "SELECT t.venue, t.symbol, t.n AS trade, q.n AS quote FROM trades AS t JOIN quotes AS q"
    " ON t.venue = q.venue AND t.symbol = q.symbol"
)
QUERIES = {
    **{policy: (spelling("queue", policy), "SELECT venue, symbol, n, bid, ask, ts FROM quotes") for policy in UPDATES},
    "append": ("queue = 'append'", "SELECT venue, symbol, n, bid, ask, ts FROM quotes"),
    "in_turns": ("budget = '200 rows'", "SELECT venue, symbol, n, bid, ask, ts FROM quotes"),
    "by_exchange": ("queue = 'inplace'", "SELECT venue, symbol, n, bid, ask, ts FROM stamped"),
    "traded": ("queue = 'inplace'", JOIN),
}
Row = dict[str, Any]
Key = tuple[str, str]


@long_on_spark
def test_the_last_answer_of_every_feed_is_its_last_quote(host: str, run_on: RunOn, tmp_path: Path) -> None:
    rows = recorded(MOST[host])
    found, summary = run(run_on, host, rows, tmp_path)
    quotes, stamped = (distinct(rows[name].to_pylist()) for name in ("quotes", "stamped"))
    for query in (*UPDATES, "in_turns"):
        check_updates(quotes, last_of(rows["quotes"]), found[query])
    check_updates(stamped, last_of(rows["stamped"]), found["by_exchange"])
    check_join(rows["trades"], rows["quotes"], found["traded"])
    assert distinct(found["append"]) == quotes
    superseded = [summary["queues"][query]["superseded"] for query in (*UPDATES[:-1], "by_exchange", "traded")]
    assert min(superseded) > 0, "the queues are to be overloaded"
    check_accounts(summary, rows)


def check_updates(known: set[tuple[Any, ...]], last: dict[Key, int], results: list[Row]) -> None:
    """Every result is a row that was read, of a key none goes back, and the last is the last."""
    assert distinct(results) <= known, "each is a row, and none is there twice"
    newest: dict[Key, tuple[Any, int]] = {}
    for row in results:
        at = row["ts"], row["n"]
        assert at > newest.get(key_of(row), (row["ts"], -1)), "a key does not go back"
        newest[key_of(row)] = at
    assert {key: number for key, (_, number) in newest.items()} == last


def check_join(trades: pa.Table, quotes: pa.Table, results: list[Row]) -> None:
    """Each result is of a trade and a quote of one key, neither goes back, and the last is of the last of both."""
    known = [{(key_of(row), row["n"]) for row in table.to_pylist()} for table in (trades, quotes)]
    newest: dict[Key, tuple[int, int]] = {}
    for row in results:
        key, pair = key_of(row), (row["trade"], row["quote"])
        assert all((key, number) in each for number, each in zip(pair, known, strict=True))
        before = newest.setdefault(key, (-1, -1))
        assert pair != before and pair[0] >= before[0] and pair[1] >= before[1]
        newest[key] = pair
    first, second = last_of(trades), last_of(quotes)
    assert newest == {key: (first[key], second[key]) for key in first.keys() & second.keys()}


def check_accounts(summary: Row, rows: Mapping[str, pa.Table]) -> None:
    """No row is lost on the way."""
    for name, source in summary["sources"].items():
        elsewhere = ("late", "quarantined", "shed", "superseded", "buffered")
        assert (
            source["received"] == rows[name].num_rows == source["processed"] + sum(source[each] for each in elsewhere)
        )
        assert (source["late"], source["buffered"]) == (0, 0)
    for queue in summary["queues"].values():
        assert queue["entered"] == queue["let_go"] + queue["superseded"]


def last_of(rows: pa.Table) -> dict[Key, int]:
    """The number of the last row of each key, as DuckDB finds it: of equal times the one that came last."""
    connection = duckdb.connect()
    connection.register("rows", rows)
    text = "SELECT venue, symbol, max_by(n, (ts, n)) FROM rows GROUP BY ALL"
    return {(venue, symbol): number for venue, symbol, number in connection.execute(text).fetchall()}


def key_of(row: Row) -> Key:
    return row["venue"], row["symbol"]


def distinct(rows: list[Row]) -> set[tuple[Any, ...]]:
    """All rows, of which none may be there twice: their numbers tell them apart."""
    found = {tuple(row[name] for name in ("n", "venue", "symbol", "bid", "ask", "ts")) for row in rows}
    assert len(found) == len(rows)
    return found


def recorded(most: int) -> dict[str, pa.Table]:
    """The first rows of every stream in order of arrival, numbered; `stamped` has the times of the exchanges."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    received = "make_timestamptz(recv_ns // 1000)"
    texts = {
        "quotes": ("crypto_quotes", "bid, ask", received, "true"),
        "stamped": ("crypto_quotes", "bid, ask", "make_timestamptz(tx_ms::BIGINT * 1000)", "tx_ms IS NOT NULL"),
        "trades": ("crypto_trades", "price AS bid, price AS ask", received, "true"),
    }
    return {
        name: connection.sql(
            f"""SELECT venue, symbol, row_number() OVER (ORDER BY recv_ns) AS n, {columns}, {time} AS ts
                FROM read_csv('{DATA / file}.csv.gz') WHERE {condition} ORDER BY n LIMIT {most}"""
        ).to_arrow_table()
        for name, (file, columns, time, condition) in texts.items()
    }


def run(run_on: RunOn, host: str, rows: Mapping[str, pa.Table], folder: Path) -> tuple[dict[str, list[Row]], Row]:
    """The results of each query in the order in which they came, and the summary."""
    for name, table in rows.items():
        (folder / name).mkdir()
        for number, piece in enumerate(pieces(table, 4)):
            pq.write_table(piece, folder / name / f"{number}.parquet")
    (folder / "script.sql").write_text(script())
    ran = run_on(host, "script.sql", "--until-end", "--json", *OPTIONS[host], folder=folder)
    assert ran.returncode == 0, ran.stderr
    found = {query: pq.read_table(folder / "out" / query).to_pylist() for query in QUERIES}
    return found, json.loads(ran.stdout.splitlines()[-1])["summary"]


def script() -> str:
    declared = [
        f"CREATE STREAM {name} ({COLUMNS}) TIMESTAMP BY ts {order} UPDATE KEY (venue, symbol)"
        f" FROM parquet OPTIONS (path '{name}', max_files_per_trigger '1');"
        for name, order in STREAMS.items()
    ]
    asked = [
        f"CREATE SINK into_{name} TO parquet OPTIONS (path 'out/{name}');"
        f" CREATE QUERY {name} WITH ({options}) INTO into_{name} AS {text};"
        for name, (options, text) in QUERIES.items()
    ]
    return "\n".join([*declared, *asked])


def test_the_example_values_every_feed_by_its_last_quote(tmp_path: Path) -> None:
    # Faster than the example itself, so that it takes three seconds instead of seventeen.
    text = (EXAMPLES / "quotes_overload.sql").read_text().replace("SPEED 20", "SPEED 120")
    (tmp_path / "slow_quotes.py").write_text((EXAMPLES / "slow_quotes.py").read_text())
    (tmp_path / "example.sql").write_text(text.replace("../shared/data", str(DATA)))
    ran = millrace("run", "example.sql", "--on", "local", "--until-end", "--json", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    *results, last = map(json.loads, ran.stdout.splitlines())
    worth = {key_of(row): row["worth"] for row in results if row["query"] == "worth"}
    traded = {key_of(row): row["price"] for row in results if row["query"] == "traded"}
    connection = duckdb.connect()
    for found, file, value in ((worth, "crypto_quotes", "(bid + ask) / 2"), (traded, "crypto_trades", "price")):
        text = f"SELECT venue, symbol, arg_max({value}, recv_ns) FROM read_csv('{DATA / file}.csv.gz') GROUP BY ALL"
        expected = {(venue, symbol): last for venue, symbol, last in connection.execute(text).fetchall()}
        assert found == pytest.approx(expected)
    queues = last["summary"]["queues"]
    assert queues["worth"]["superseded"] > queues["worth"]["let_go"] > 0
