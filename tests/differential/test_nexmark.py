"""Nexmark's queries over published streams give the published answers, on every host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from millrace.testing.hosts import Host

CASES = Path(__file__).parents[3] / "shared" / "cases" / "nexmark"

pytestmark = pytest.mark.skipif(
    not CASES.exists(), reason="the Nexmark cases are not beside the repository; runs where shared/cases is"
)

BIDS = f"""CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
    date_time TIMESTAMP, extra STRING)
  TIMESTAMP BY date_time ORDERED FROM csv OPTIONS (path '{CASES / "bid.csv"}');
"""

AUCTIONS = f"""CREATE STREAM auction (id BIGINT, item_name STRING, description STRING, initial_bid BIGINT,
    reserve BIGINT, date_time TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT)
  TIMESTAMP BY date_time ORDERED FROM csv OPTIONS (path '{CASES / "auction.csv"}');
"""
PERSONS = f"""CREATE STREAM person (id BIGINT, name STRING, city STRING, state STRING, date_time TIMESTAMP)
  TIMESTAMP BY date_time ORDERED FROM csv OPTIONS (path '{CASES / "person.csv"}');
"""

BY_PRICE = """
    count(*) AS total_bids,
    count(*) FILTER (WHERE price < 10000) AS rank1_bids,
    count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    count(*) FILTER (WHERE price >= 1000000) AS rank3_bids"""

DISTINCT_BY_PRICE = ",".join(
    f"""
    count(DISTINCT {column}) AS total_{column}s,
    count(DISTINCT {column}) FILTER (WHERE price < 10000) AS rank1_{column}s,
    count(DISTINCT {column}) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_{column}s,
    count(DISTINCT {column}) FILTER (WHERE price >= 1000000) AS rank3_{column}s"""
    for column in ("bidder", "auction")
)

QUERIES = {
    "q0": "SELECT auction, bidder, price, date_time FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, date_time FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction IN (1007, 1020, 2001, 2019, 2087)",
    "q5": """SELECT auction, num
        FROM (SELECT window, auction, count(*) AS num FROM bid [RANGE 10 SECONDS SLIDE 2 SECONDS WA date_time]
              GROUP BY auction)
        QUALIFY rank() OVER (PARTITION BY window_start, window_end ORDER BY num DESC) = 1""",
    "q15": f"""SELECT date_format(date_time, 'yyyy-MM-dd') AS day, {BY_PRICE}, {DISTINCT_BY_PRICE}
        FROM bid GROUP BY date_format(date_time, 'yyyy-MM-dd')""",
    # The answers were made with PostgreSQL's HH and mm: the hour of twelve, and the month.
    "q16": f"""SELECT channel, date_format(date_time, 'yyyy-MM-dd') AS day,
        max(to_char(date_time, 'HH:mm')) AS minute, {BY_PRICE}, {DISTINCT_BY_PRICE}
        FROM bid GROUP BY channel, date_format(date_time, 'yyyy-MM-dd')""",
    "q17": f"""SELECT auction, date_format(date_time, 'yyyy-MM-dd') AS day, {BY_PRICE},
        min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
        FROM bid GROUP BY auction, date_format(date_time, 'yyyy-MM-dd')""",
}

IN_TIME = "a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires"
TEN_SECONDS = "[RANGE 10 SECONDS SLIDE 10 SECONDS]"
JOINS = {
    # Without a window the join would keep every person and every auction for ever.
    "q3": """SELECT p.name, p.city, p.state, a.id FROM auction AS a, person AS p
        WHERE a.seller = p.id AND a.category = 10 AND p.state IN ('or', 'id', 'ca') WINDOW 1 HOUR""",
    "q4": f"""SELECT category, avg(final) AS price
        FROM (SELECT a.date_time AS opened, a.id AS id, a.category AS category, max(b.price) AS final
              FROM auction AS a JOIN bid AS b ON {IN_TIME} GROUP BY a.date_time, a.id, a.category) AS closed
        GROUP BY date_trunc('day', opened), category""",
    "q7": f"""SELECT b.auction, b.price, b.bidder, b.date_time
        FROM bid AS b JOIN (SELECT window_end, max(price) AS price FROM bid {TEN_SECONDS}) AS w ON b.price = w.price
        AND b.date_time BETWEEN w.window_end - INTERVAL 10 SECONDS AND w.window_end""",
    "q8": f"""SELECT p.id, p.name, p.window_start AS start
        FROM (SELECT window, id, name, count(*) AS n FROM person {TEN_SECONDS} GROUP BY id, name) AS p
        JOIN (SELECT window, seller, count(*) AS n FROM auction {TEN_SECONDS} GROUP BY seller) AS a
        ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end""",
    "q9": f"""SELECT id, item_name, description, initial_bid, reserve, opened, expires, seller, category,
        auction, bidder, price, bid_at
        FROM (SELECT a.id AS id, item_name, description, initial_bid, reserve, a.date_time AS opened, expires, seller,
                category, auction, bidder, price, b.date_time AS bid_at,
                row_number() OVER (PARTITION BY a.id, a.date_time ORDER BY price DESC, b.date_time ASC) AS place
              FROM auction AS a, bid AS b WHERE {IN_TIME}) AS won
        WHERE place <= 1""",
}


def test_all_queries_of_one_network_give_the_published_answers(host: Host) -> None:
    queries = "".join(f"CREATE QUERY {name} AS {text};\n" for name, text in (QUERIES | JOINS).items())
    answers = host.run(BIDS + AUCTIONS + PERSONS + queries, {})
    for name in QUERIES:
        assert sorted([cell(value) for value in row.values()] for row in answers[name]) == published(name), name
    for name in JOINS:
        rows = answers[name]
        # Names hold blanks, and so do the lines of answers: word by word they are the same.
        found = [[cell(word) for value in row.values() for word in cells(cell(value))] for row in rows]
        words = [[cell(word) for text in line for word in cells(text)] for line in published(name)]
        assert sorted(found) == sorted(words), name


def published(name: str) -> list[list[str]]:
    """The rows of a file of answers, in one order."""
    lines = (CASES / f"{name}.expected.txt").read_text().splitlines()
    return sorted([cell(text) for text in cells(line)] for line in lines if line and not line.startswith("#"))


def cells(line: str) -> list[str]:
    """The cells of a line, set apart by tabs or by blanks; a time is one of them."""
    if "\t" in line:
        return line.split("\t")
    return re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*|\S+", line)


def cell(value: Any) -> str:
    """A value as text: numbers to twelve digits, times without the zeros that end a fraction."""
    if hasattr(value, "isoformat"):
        value = value.replace(tzinfo=None).isoformat(sep=" ")
    try:
        return f"{float(value):.12g}"
    except ValueError:
        return re.sub(r"(:\d\d\.\d*?)0+$", r"\1", str(value))
