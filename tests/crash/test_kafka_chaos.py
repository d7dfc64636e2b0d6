"""Kafka in, Kafka and PostgreSQL out, while the run and the broker are killed at random: equal to DuckDB over the same.

On Spark Python workers are killed too, each before the whole run. Six partitions: one gets little, one nothing,
the others are skewed; rows are out of order by up to three seconds.
`python -m tests.crash.test_kafka_chaos --on local --messages 1000000 --kills 20` runs the whole proof.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests.e2e.commands import COMMAND, environment
from tests.kafka_broker import Broker, running
from tests.postgres import fetched, server

_PARTITIONS = 6
_SHARES = [0.6, 0.25, 0.1, 0.049, 0.001, 0.0]
"""Of each partition: the fifth is slow, the sixth is dead."""
_BATCH = 500
_FIRST = 1_767_225_600_000_000
"""2026-01-01, in microseconds."""
_SPACING = 1_000
"""Microseconds of event time per message."""
_STREAM = """
CREATE STREAM {name} ({columns}, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 4 SECONDS
  ETS ON DEMAND LULL INTERVAL 4 SECONDS {key}
  FROM kafka OPTIONS (bootstrap_servers '{servers}', topic '{topic}', timestamp_format 'epoch_micros');
"""
_COUNT = """SELECT window_start, word, count(*) AS n, sum(amount) AS total
  FROM events [RANGE 10 SECONDS SLIDE 10 SECONDS WA ts] GROUP BY word;
"""
_QUERIES = f"""
CREATE SINK counted TO kafka OPTIONS (bootstrap_servers '{{servers}}', topic 'counted');
CREATE SINK priced TO kafka OPTIONS (bootstrap_servers '{{servers}}', topic 'priced', key 'number');
CREATE SINK board TO postgres OPTIONS (dsn '{{dsn}}', table 'board', mode 'upsert', version 'ts');
CREATE SINK stored TO postgres OPTIONS (dsn '{{dsn}}', table 'stored', mode 'upsert');
CREATE QUERY counted INTO counted AS {_COUNT}
CREATE QUERY stored INTO stored AS {_COUNT}
CREATE QUERY priced INTO priced AS
  SELECT e.number, e.amount, p.price FROM events e ASOF JOIN prices p ON p.ts <= e.ts AND p.word = e.word
  WHERE e.amount >= 90;
CREATE QUERY board INTO board AS SELECT word, amount, ts FROM latest;
"""
_WINDOWS = """
SELECT (ts // 10000000) * 10000000 AS window_start, word, count(*) AS n, sum(amount)::BIGINT AS total
FROM events GROUP BY ALL
"""
_PRICED = """
SELECT e.number, e.amount, p.price FROM events e ASOF JOIN prices p ON p.word = e.word AND p.ts <= e.ts
WHERE e.amount >= 90
"""
_BOARD = "SELECT word, arg_max(amount, ts) AS amount, max(ts) AS ts FROM events GROUP BY word"


def proof(on: str, messages: int, kills: int, pauses: tuple[float, float], seconds: float, folder: Path) -> None:
    """Feed, kill, run to the end, and compare."""
    random = Random(f"{on} {messages} {kills}")
    events, prices = _events(messages), _prices(messages)
    with running(folder / "broker") as broker, server() as dsn:
        broker.create("events", _PARTITIONS)
        for topic, partitions in (("prices", 1), ("counted", 3), ("priced", 3)):
            broker.create(topic, partitions)
        (folder / "q.sql").write_text(_script(broker, dsn))
        feeder = Thread(target=_feed, args=(broker, events, prices, seconds))
        feeder.start()
        for number in range(kills):
            process, pause = _started(on, folder), random.uniform(*pauses)
            time.sleep(pause / 2)
            workers = _workers(process.pid)
            if workers and number % 2:
                with suppress(ProcessLookupError):
                    os.kill(random.choice(workers), signal.SIGKILL)
                print("a worker is killed", flush=True)
            time.sleep(pause / 2)
            if number % 7 == 3:
                broker.restart()
            alive = process.poll() is None
            os.killpg(process.pid, signal.SIGKILL) if alive else None
            process.wait()
            print(f"kill {number + 1} of {kills}: {'struck' if alive else 'had ended'}", flush=True)
        feeder.join()
        ended = _started(on, folder, "--until-end")
        assert ended.wait() == 0, (folder / "log").read_text()[-3000:]
        _compare(broker, dsn, events, prices)


def _script(broker: Broker, dsn: str) -> str:
    servers, wide = broker.bootstrap_servers, "number BIGINT, word STRING, amount BIGINT"
    streams = (
        ("events", wide, "events", ""),
        ("latest", wide, "events", "UPDATE KEY (word)"),
        ("prices", "word STRING, price BIGINT", "prices", ""),
    )
    made = [
        _STREAM.format(name=name, columns=columns, topic=topic, key=key, servers=servers)
        for name, columns, topic, key in streams
    ]
    return "".join(made) + _QUERIES.format(servers=servers, dsn=dsn)


def _started(on: str, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    run = [*COMMAND, "run", "q.sql", "--on", on, "--checkpoint", "state", *more]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(run, cwd=folder, env=environment(), stdout=log, stderr=log, start_new_session=True)


def _workers(session: int) -> list[int]:
    """The Python processes that Spark has started in the session of a run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            own = int((process / "stat").read_text().rpartition(")")[2].split()[3])
            if own == session and b"pyspark.daemon" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def _events(count: int) -> pa.Table:
    """Messages in the order in which they are sent: words are skewed, no two times are equal."""
    random, numbers = np.random.default_rng(7), np.arange(count)
    back = random.integers(0, 3_000, count) * 1_000
    return pa.table(
        {
            "number": numbers,
            "word": [f"w{each}" for each in np.minimum(random.zipf(1.3, count), 1_000).tolist()],
            "amount": random.integers(0, 100, count),
            "ts": _FIRST + 3_000_000 + numbers * _SPACING - back + numbers % 1_000,
            "partition": random.choice(_PARTITIONS, count, p=_SHARES),
        }
    )


def _prices(count: int) -> pa.Table:
    random, some = np.random.default_rng(8), max(count // 50, 1)
    return pa.table(
        {
            "word": [f"w{each}" for each in random.integers(1, 30, some).tolist()],
            "price": random.integers(0, 1_000, some),
            "ts": _FIRST + 500 + np.arange(some) * 50 * _SPACING + np.arange(some) % 400,
            "partition": np.zeros(some, np.int64),
        }
    )


def _feed(broker: Broker, events: pa.Table, prices: pa.Table, seconds: float) -> None:
    """Send both topics side by side, over a while; while the broker is down, the sender waits."""
    began = time.monotonic()
    for start in range(0, events.num_rows, _BATCH):
        broker.send("prices", _sent(prices.slice(start // 50, _BATCH // 50)))
        broker.send("events", _sent(events.slice(start, _BATCH)))
        time.sleep(max(0.0, began + seconds * start / events.num_rows - time.monotonic()))


def _sent(rows: pa.Table) -> list[dict[str, Any]]:
    return [{"partition": row.pop("partition"), "value": json.dumps(row)} for row in rows.to_pylist()]


def _compare(broker: Broker, dsn: str, events: pa.Table, prices: pa.Table) -> None:
    oracle = duckdb.connect()
    oracle.register("events", events)
    oracle.register("prices", prices)
    windows = oracle.execute(_WINDOWS).fetchall()
    written = [json.loads(message.value()) for message in broker.messages("counted")]
    same("windows in Kafka", [(_micros(r["window_start"]), r["word"], r["n"], r["total"]) for r in written], windows)
    moment = "(extract(epoch FROM {}) * 1000000)::BIGINT"
    stored = f"SELECT {moment.format('window_start')}, word, n, total FROM stored"
    same("windows in PostgreSQL", fetched(dsn, stored), windows)
    joined = [json.loads(message.value()) for message in broker.messages("priced")]
    same("as-of pairs", [(r["number"], r["amount"], r["price"]) for r in joined], oracle.execute(_PRICED).fetchall())
    board = fetched(dsn, f"SELECT word, amount, {moment.format('ts')} FROM board")
    same("latest rows", board, oracle.execute(_BOARD).fetchall())


def _micros(text: str) -> int:
    return int(np.datetime64(text.removesuffix("Z"), "us").astype(np.int64))


def same(what: str, found: list[Any], expected: list[Any]) -> None:
    """Compare as multisets; says how many are lost and how many are there twice, or wrong."""
    lost, more = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    print(
        f"{what}: {len(found):,} of {len(expected):,}, lost {lost.total()}, twice or wrong {more.total()}", flush=True
    )
    assert not lost and not more, (list(lost)[:3], list(more)[:3])


@pytest.mark.long
@pytest.mark.parametrize(
    ("on", "kills", "pauses"), [("local", 6, (2.0, 8.0)), pytest.param("spark", 2, (25, 60), marks=pytest.mark.spark)]
)
def test_what_leaves_equals_duckdb_however_often_run_and_broker_are_killed(
    on: str, kills: int, pauses: tuple[float, float], tmp_path: Path
) -> None:
    proof(on, 20_000, kills, pauses, kills * pauses[0], tmp_path)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", choices=("local", "spark"), default="local")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--pauses", type=float, nargs=2, default=(2.0, 8.0), help="seconds until a kill, from and to")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="millrace-chaos-") as folder:
        pauses = (given.pauses[0], given.pauses[1])
        proof(given.on, given.messages, given.kills, pauses, given.kills * sum(pauses) / 2, Path(folder))


if __name__ == "__main__":
    _main()
