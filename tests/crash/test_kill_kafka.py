"""Runs over a topic are killed at random moments, and so is the broker: each message counts once."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from random import Random
from threading import Thread

import pyarrow.parquet as pq
import pytest

from tests.e2e.commands import COMMAND, environment, millrace_process
from tests.e2e.kafka_streams import message, stream_text
from tests.kafka_broker import Broker, running

pytestmark = pytest.mark.long

_PARTITIONS = 3


def _write(broker: Broker, topic: str, count: int, seconds: float) -> None:
    """Put messages into the topic over a while; a broker that is killed takes them later."""
    for first in range(0, count, 100):
        broker.send(topic, (message(n % _PARTITIONS, n / 100, n=n) for n in range(first, first + 100)))
        time.sleep(seconds * 100 / count)


@pytest.mark.parametrize(
    ("host", "kills", "least"), [("local", 12, 1.0), pytest.param("spark", 4, 20.0, marks=pytest.mark.spark)]
)
def test_each_message_counts_once_however_often_runs_and_broker_are_killed(
    tmp_path: Path, host: str, kills: int, least: float
) -> None:
    random = Random(host)
    with running(tmp_path / "broker") as broker:
        topic = broker.create("killed", _PARTITIONS)
        paths = {"o": tmp_path / "all", "w": tmp_path / "windows"}
        sinks = "".join(f"CREATE SINK {name} TO parquet OPTIONS (path '{path}');" for name, path in paths.items())
        queries = (
            "CREATE QUERY q INTO o AS SELECT n FROM s; CREATE QUERY v INTO w AS "
            "SELECT window_start, count(*) AS k FROM s [RANGE 1 SECOND SLIDE 1 SECOND WA ts];"
        )
        (tmp_path / "q.sql").write_text(stream_text(broker, topic) + sinks + queries)
        run = ["run", "q.sql", "--on", host, "--checkpoint", "c"]
        count = 3000
        writer = Thread(target=_write, args=(broker, topic, count, kills * least))
        writer.start()
        for number in range(kills):
            with (tmp_path / "log").open("ab") as log:
                process = subprocess.Popen(
                    [*COMMAND, *run], cwd=tmp_path, env=environment(), stdout=log, stderr=log, start_new_session=True
                )
            time.sleep(random.uniform(least, 3 * least))
            if number == kills // 2:
                broker.restart()
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        writer.join()
        ended = millrace_process(*run, "--until-end", folder=tmp_path)
        assert ended.returncode == 0, ended.stderr
    found = Counter(pq.read_table(tmp_path / "all").column("n").to_pylist())
    assert found == Counter(range(count))
    windows = pq.read_table(tmp_path / "windows").column("k").to_pylist()
    assert windows == [100] * (count // 100)
