"""Orders counted per item and minute, upserted into PostgreSQL, with the names of items looked up there.

pip install 'millrace[postgres]' pgserver
python examples/postgres.py                       # a server of its own, in a folder that goes with it
python examples/postgres.py "host=localhost user=me dbname=shop"
"""

from __future__ import annotations

import sys
from tempfile import TemporaryDirectory

import psycopg

import millrace as mr

QUERIES = """
CREATE STREAM orders (id INT, item STRING, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM csv OPTIONS (path 'examples/data/orders.csv');

CREATE TABLE items (item STRING PRIMARY KEY, maker STRING)
  FROM postgres OPTIONS (dsn '${dsn}', table 'items') REFRESH EVERY INTERVAL 1 MINUTE;

CREATE SINK minutes TO postgres OPTIONS (dsn '${dsn}', table 'item_minutes', mode 'upsert');

CREATE QUERY per_minute INTO minutes AS
  SELECT window_start, window_end, o.item, i.maker, count(*) AS n
  FROM orders [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts] AS o LEFT JOIN items AS i ON o.item = i.item
  GROUP BY o.item, i.maker;
"""


def main(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS items (item text PRIMARY KEY, maker text)")
        connection.execute("INSERT INTO items VALUES ('mill', 'Huber'), ('sack', 'Bauer') ON CONFLICT DO NOTHING")
    net = mr.Network(variables={"dsn": dsn})
    net.sql(QUERIES)
    net.run(on="local", until="end")
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT item, maker, n FROM item_minutes ORDER BY window_start, item")
        print(*(f"{item}\t{maker}\t{n}" for item, maker, n in found), sep="\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        import pgserver

        with TemporaryDirectory() as folder, pgserver.get_server(folder) as server:
            main(server.get_uri())
