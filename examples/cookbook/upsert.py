"""Upsert into PostgreSQL: the last departure and the mean delay of every airport, a row each, always the newest.

pip install 'millrace[postgres]' pgserver
python examples/cookbook/upsert.py                                           # with a server of its own
python examples/cookbook/upsert.py "host=localhost user=me dbname=airports"
"""

from __future__ import annotations

import sys
from tempfile import TemporaryDirectory

import psycopg

import millrace as mr

QUERIES = """
CREATE STREAM departures (flight STRING, origin STRING, delay INT, departed TIMESTAMP)
  TIMESTAMP BY departed ORDERED
  FROM csv OPTIONS (path 'examples/cookbook/data/departures.csv');

CREATE SINK airports TO postgres OPTIONS (
  dsn '${dsn}', table 'airports', mode 'upsert', key 'origin', version 'window_end'
);

CREATE QUERY newest INTO airports AS
  SELECT origin, window_end, max_by(flight, departed) AS last, round(avg(delay), 1) AS delay
  FROM departures [RANGE 1 HOUR SLIDE 1 HOUR]
  GROUP BY origin;
"""


def main(dsn: str) -> None:
    handle = mr.Network(variables={"dsn": dsn}).sql(QUERIES).run(on="local", until="end")
    print("results:", handle.metrics().results["newest"])
    with psycopg.connect(dsn) as connection:
        for origin, hour, last, delay in connection.execute("SELECT * FROM airports ORDER BY origin"):
            print(origin, f"{hour:%d %H:%M}", last, delay)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        import pgserver

        with TemporaryDirectory() as folder, pgserver.get_server(folder) as server:
            main(server.get_uri())
