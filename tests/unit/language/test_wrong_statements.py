"""Wrong statements as new users write them: each is refused at its place, with its cause and a way out.

The corpus is `wrong_statements.txt`: a statement, the text at its place, and how the fact and the hint begin. An entry
is `rated vague` if a new user would not find the way out by it; those are counted, and must stay few.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.errors import QueryError, RequestError
from millrace.language import parse_network

STREAMS = """
CREATE STREAM s (k STRING, v INT, x DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 's.csv');
CREATE STREAM t (k STRING, w INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM csv OPTIONS (path 't.csv');
CREATE SINK out TO csv OPTIONS (path 'out');
CREATE STREAM orders (
  id BIGINT, customer STRING, amount DECIMAL(10, 2), qty INT, price DOUBLE, placed TIMESTAMP, day DATE,
  tags ARRAY<STRING>, address STRUCT<city: STRING, zip: STRING>, paid BOOLEAN
) TIMESTAMP BY placed DISORDER INTERVAL 5 SECONDS FROM json OPTIONS (path 'orders.json');
CREATE STREAM payments (order_id BIGINT, method STRING, paid_at TIMESTAMP)
  TIMESTAMP BY paid_at ORDERED FROM csv OPTIONS (path 'payments.csv');
CREATE STREAM quotes (sym STRING, bid DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UPDATE KEY (sym) FROM csv OPTIONS (path 'quotes.csv');
CREATE TABLE users (id BIGINT PRIMARY KEY, name STRING, country STRING) FROM csv OPTIONS (path 'users.csv');
CREATE VIEW big AS SELECT id, customer, placed FROM orders WHERE qty > 10;
"""
ENTRIES = [
    each.strip("\n").split("\n")
    for each in (Path(__file__).parent / "wrong_statements.txt").read_text().strip("\n").split("\n\n")
]


def test_at_least_eleven_of_twelve_are_right() -> None:
    vague = [text for text, *parts in ENTRIES if "  rated vague" in parts]
    assert len(ENTRIES) >= 120 and 12 * len(vague) <= len(ENTRIES)
    assert len({text for text, *_ in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry[0])
def test_a_wrong_statement_is_refused_with_place_cause_and_way_out(entry: list[str]) -> None:
    text, at, fact, hint = entry[:4]
    with pytest.raises(RequestError) as raised:
        parse_network(STREAMS + text)
    error = raised.value
    assert error.fact.startswith(fact.removeprefix("  fact  "))
    assert error.hint.startswith(hint.removeprefix("  hint  "))
    assert error.place is not None and error.place.text == at.removeprefix("  at    ")
    assert isinstance(error, QueryError) or "not supported yet" in error.fact
