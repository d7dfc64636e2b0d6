"""Nested JSON files, arrays exploded, decimals summed per window: killed in between, and equal to DuckDB."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds
import pytest

from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.language import parse_network
from tests.crash.kills import Kill, killing
from tests.crash.spark_by_hand import Disk, SparkByHand, forget, killing_here
from tests.crash.test_matrix import LOG, STAGE
from tests.e2e.commands import RunOn, Started, millrace, millrace_process

SCRIPT = """
CREATE STREAM orders (
    id INT, customer STRUCT<name: STRING, home: STRUCT<city: STRING>>,
    lines ARRAY<STRUCT<item: STRING, price: DECIMAL(9, 2), qty: INT>>, note STRING, ts TIMESTAMP)
  TIMESTAMP BY ts DISORDER INTERVAL 5 SECONDS
  FROM json OPTIONS (path 'in', max_files_per_trigger '1');
CREATE SINK spent TO json OPTIONS (path 'out/spent');
CREATE SINK bought TO parquet OPTIONS (path 'out/bought');
CREATE QUERY spending INTO spent AS
  SELECT window, customer.home AS home, l.item, sum(l.price * l.qty) AS spent, count(*) AS n
  FROM orders [RANGE 2 MINUTES SLIDE 1 MINUTE] LATERAL VIEW inline(lines) l AS item, price, qty
  GROUP BY customer.home, l.item;
CREATE QUERY buying INTO bought AS
  SELECT id, customer, explode(lines) AS line, from_json(note, 'gift BOOLEAN').gift AS gift, ts FROM orders;
"""
ORACLE = """
CREATE TABLE orders AS SELECT * FROM read_json('{folder}/in/*.json', format='newline_delimited', columns={{
    id: 'INT', customer: 'STRUCT(name VARCHAR, home STRUCT(city VARCHAR))',
    lines: 'STRUCT(item VARCHAR, price DECIMAL(9, 2), qty INT)[]', note: 'VARCHAR', ts: 'TIMESTAMP'}});
CREATE TABLE lines AS SELECT id, customer, unnest(lines) AS line, note, ts FROM orders;
"""
SPENT = """
SELECT epoch_us(start) AS start, customer.home AS home, line.item AS item,
  sum(line.price * line.qty) AS spent, count(*) AS n
FROM (SELECT *, unnest([date_trunc('minute', ts) - INTERVAL 1 MINUTE, date_trunc('minute', ts)]) AS start FROM lines)
GROUP BY ALL
"""
BOUGHT = """
SELECT id, customer, line, CASE WHEN json_valid(note) THEN (note ->> '$.gift')::BOOLEAN END AS gift, epoch_us(ts) AS ts
FROM lines
"""
NOTES = ['{"gift": true}', '{"gift": false}', "{broken", None, "{}"]
FILES = 4


def project(folder: Path) -> Path:
    """The script, and a file of orders per minute."""
    draw = random.Random(7)
    (folder / "in").mkdir()
    for number in range(FILES):
        lines = [json.dumps(order(draw, 20 * number + place, number)) for place in range(20)]
        (folder / "in" / f"{number}.json").write_text("\n".join(lines) + "\n")
    (folder / "orders.sql").write_text(SCRIPT)
    return folder / "orders.sql"


def order(draw: random.Random, number: int, minute: int) -> dict[str, Any]:
    def line() -> dict[str, Any]:
        price = draw.randint(1, 99999) / 100
        return {"item": draw.choice(["tea", "pen", "ü"]), "price": price, "qty": draw.randint(1, 9)}

    home = draw.choice([{"city": "Ulm"}, {"city": None}, None])
    return {
        "id": number,
        "customer": draw.choice([{"name": "Ann", "home": home}, None]),
        "lines": draw.choice([None, [], [line()], [line(), line(), line()]]),
        "note": draw.choice(NOTES),
        "ts": f"2026-01-01T00:0{minute}:{2 * (number % 20):02d}",
    }


def check(folder: Path) -> None:
    """Hold that each result is there once, and is what DuckDB makes of the finished input."""
    with duckdb.connect() as oracle:
        oracle.execute(ORACLE.format(folder=folder))
        spent, bought = (counted(oracle.sql(text).fetchall()) for text in (SPENT, BOUGHT))
    lines = [line for path in sorted(folder.glob("out/spent/part-*")) for line in path.read_text().splitlines()]
    rows = [json.loads(line, parse_float=str) for line in lines]
    found = [(row["window_start"], row["home"], row["item"], row["spent"], row["n"]) for row in rows]
    with duckdb.connect() as oracle:
        micros = {text: oracle.sql(f"SELECT epoch_us(TIMESTAMP '{text}')").fetchall()[0][0] for text, *_ in found}
    assert counted((micros[text], *rest) for text, *rest in found) == spent
    table = ds.dataset(sorted(map(str, folder.glob("out/bought/part-*"))), format="parquet").to_table()
    kept = [(row["id"], row["customer"], row["line"], row["gift"], micros_of(row["ts"])) for row in table.to_pylist()]
    assert counted(kept) == bought


def counted(rows: Any) -> Counter[str]:
    """Rows, and how often each is there; a decimal is as its text."""
    return Counter(json.dumps(row, default=str, sort_keys=True) for row in rows)


def micros_of(time: Any) -> int:
    return round(time.timestamp() * 1_000_000)


def malformed(folder: Path) -> int:
    """How many lines have a note that is no JSON: it is read above the lines."""
    orders = [json.loads(line) for path in folder.glob("in/*.json") for line in path.read_text().splitlines()]
    return sum(len(each["lines"] or ()) for each in orders if each["note"] == "{broken")


ON_HOSTS = {
    "local": Kill("millrace.hosts.checkpoint.checkpoint:Checkpoint.save", "after", call=2),
    "spark": Kill(f"{LOG}.write", call=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])])
def test_a_killed_run_over_nested_files_gives_what_duckdb_does(on: str, tmp_path: Path) -> None:
    script = project(tmp_path)
    run = ["run", script.name, "--on", on, "--checkpoint", "state", "--until-end"]
    run += ["--commit-interval", "1 millisecond"] if on == "local" else []
    # With its Java process it is killed as a group, so it has one of its own.
    with killing(ON_HOSTS[on]) as struck, Started(*run, folder=tmp_path) as killed:
        killed.process.communicate(timeout=300)
    assert struck()
    ended = millrace(*run, folder=tmp_path) if on == "local" else millrace_process(*run, folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert f"buying: {malformed(tmp_path)} malformed in from_json" in ended.stderr
    check(tmp_path)


@pytest.mark.slow
def test_nested_files_give_what_duckdb_does_in_virtual_time(tmp_path: Path) -> None:
    ended = millrace("run", project(tmp_path).name, "--on", "virtual", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    check(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kill", [Kill(f"{STAGE}._save", "after", call=3), Kill(f"{LOG}.write", call=3)])
def test_micro_batches_over_nested_files_that_are_killed_give_what_duckdb_does(kill: Kill, tmp_path: Path) -> None:
    forget()
    text = project(tmp_path).read_text()
    for path in ("in", "out/spent", "out/bought"):
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
        text = text.replace(f"'{path}'", f"'{tmp_path / path}'")
    network, disk = parse_network(text), Disk()
    formats = {"spending": ("json", "spent"), "buying": ("parquet", "bought")}
    sinks = {query: {"format": form, "path": str(tmp_path / "out" / sink)} for query, (form, sink) in formats.items()}
    with killing_here(kill):
        SparkByHand(network, sinks, tmp_path / "state", disk).run()
    forget()
    SparkByHand(network, sinks, tmp_path / "state", disk).run_to_the_end()
    check(tmp_path)
    record = CommitLog(tmp_path / "state" / "commits").newest() or {}
    assert record["sources"]["orders"]["malformed"] == {"buying": malformed(tmp_path)}


@pytest.mark.slow
@pytest.mark.spark
def test_nested_files_give_what_duckdb_does_on_spark(run_on: RunOn, tmp_path: Path) -> None:
    script = project(tmp_path)
    script.write_text(script.read_text().replace("trigger '1'", "trigger '2'"))
    ended = run_on("spark", "orders.sql", "--until-end", "--checkpoint", tmp_path / "state", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert f"buying: {malformed(tmp_path)} malformed in from_json" in ended.stderr
    check(tmp_path)
