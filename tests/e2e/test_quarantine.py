"""Rows that are set aside: kept with their reason and place, and explained at the end of a run, on every host."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.e2e.commands import RunOn

SQL = """
CREATE STREAM orders (id INT, amount INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED MAX FUTURE SKEW INTERVAL 1 DAY QUARANTINE INTO bad
  FROM csv OPTIONS (path '{folder}/orders.csv') {replay};
CREATE SINK good TO csv OPTIONS (path '{folder}/good');
CREATE SINK bad TO csv OPTIONS (path '{folder}/bad');
CREATE QUERY good INTO good AS SELECT id FROM orders;
"""
ORDERS = """id,amount,ts
1,10,2024-01-01 00:00:00
2,ten,2024-01-01 00:00:01
3,30,
4,40

"5",50,2034-01-01 00:00:00
x,60,2024-01-01 00:00:02
7,70,2024-01-01 00:00:03
9,"90,2024-01-01 00:00:04
10,100,2024-01-01 00:00:05
"""
BAD = [
    ("2,ten,2024-01-01 00:00:01", 3, 'column "amount" is not a valid INT'),
    ("3,30,", 4, 'column "ts" is null'),
    ("4,40", 5, "has 2 fields instead of 3"),
    ('"5",50,2034-01-01 00:00:00', 7, 'column "ts" is too far in the future'),
    ("x,60,2024-01-01 00:00:02", 8, 'column "id" is not a valid INT'),
    ('9,"90,2024-01-01 00:00:04', 10, "opens a quote that is not closed"),
]


def rows_of(folder: Path) -> list[dict[str, str]]:
    return [row for path in sorted(folder.glob("*.csv")) for row in csv.DictReader(path.open(newline=""))]


@pytest.mark.slow
@pytest.mark.parametrize("host", ["local", "virtual", pytest.param("spark", marks=pytest.mark.spark)])
def test_bad_rows_are_kept_with_text_file_line_and_reason_and_counted(host: str, tmp_path: Path, run_on: RunOn) -> None:
    orders = tmp_path / "orders.csv"
    orders.write_text(ORDERS)
    script = tmp_path / "orders.sql"
    # Virtual time needs arrivals; a row without one would arrive with the row before it.
    script.write_text(SQL.format(folder=tmp_path, replay="REPLAY BY ts" if host == "virtual" else ""))
    done = run_on(host, script, "--until-end", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = sorted((row["raw"], int(row["line"]), row["reason"]) for row in rows_of(tmp_path / "bad"))
    assert found == sorted(BAD)
    assert {row["file"] for row in rows_of(tmp_path / "bad")} == {str(orders)}
    assert sorted(int(row["id"]) for row in rows_of(tmp_path / "good")) == [1, 7, 10]
    source = json.loads(done.stdout.splitlines()[-1])["summary"]["sources"]["orders"]
    assert (source["received"], source["processed"], source["quarantined"]) == (9, 3, 6)
    assert {reason: rows["count"] for reason, rows in source["aside"].items()} == {reason: 1 for _, _, reason in BAD}
    examples = [each for rows in source["aside"].values() for each in rows["examples"]]
    assert sorted((each["raw"], each["line"]) for each in examples) == sorted((raw, line) for raw, line, _ in BAD)
