"""A micro-batch that is run again gives the same rows, though what it goes on from was saved and not at hand.

Sinks rely on it: what they were given the first time may have been seen, or be in a table.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from staged import Staged
from test_update_queries import SECOND, START, rows_of, table

from millrace.hosts.spark.stage import bucket_queues
from millrace.hosts.spark.stage.budget import TriggerPace
from millrace.language import parse_network
from millrace.language.declarations.query_options import spelling
from millrace.testing.hosts import in_memory

COUNTS = "SELECT k, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k"
LATE = "DISORDER INTERVAL 60 SECONDS"
NEARLY = "DISORDER INTERVAL 5 SECONDS"
ON_DEMAND = f"{NEARLY} ETS ON DEMAND SKEW INTERVAL 6 SECONDS"
UPDATES = "UPDATE KEY (k)"
PARTITIONED = f"{NEARLY} PARTITIONED BY (k)"


def network(time: str, key: str, query: str) -> Any:
    streams = "".join(
        f"CREATE STREAM {name} (k STRING, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts {time} {key}"
        " FROM parquet OPTIONS (path 'none');\n"
        for name in ("s", "t")
    )
    return in_memory(parse_network(f"{streams}CREATE QUERY q {query};"))


QUEUES = [
    *((LATE, f"(queue = '{queue}', budget = '7 rows') AS {COUNTS}") for queue in ("append", "append_shed")),
    *(
        (time, f"({spelling('queue', queue)}, update_window = '{window}', budget = '5 rows') AS {COUNTS}")
        for time in (LATE, ON_DEMAND)
        for queue in ("inplace", "update_fifo", "linecutting_as_printed")
        for window in ("eager", "lazy")
    ),
    *((LATE, f"(queue = '{queue}', budget = '7 rows') AS SELECT k, v, ts FROM s") for queue in ("auto", "linecutting")),
]
ORDINARY = [
    "SELECT k, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 4 SECONDS] GROUP BY k",
    "SELECT k, sum(v) AS n FROM s [SESSION 4 SECONDS] GROUP BY k",
    "SELECT x.k, x.v, y.v AS w FROM s [RANGE 8 SECONDS] AS x JOIN t [RANGE 8 SECONDS] AS y ON x.k = y.k",
    "SELECT x.k, x.v, y.v AS w FROM s AS x ASOF JOIN t AS y ON x.k = y.k AND y.ts <= x.ts",
]


def check_runs_again(net: Any, seed: int, folder: Path, pace: TriggerPace | None = None) -> None:
    """Rows come or do not; every micro-batch is run twice."""
    draw, staged = Random(seed), Staged(net, folder, buckets=(3, 5), live=True, pace=pace)
    rows = {stream.name: rows_of(seed + number, 160) for number, stream in enumerate(net.streams())}
    now, given = START * SECOND, 0
    for _ in range(16):
        files = {}
        for name in [name for name in rows if rows[name] and draw.random() < 0.4]:
            size = draw.randrange(5, 60)
            cut, rows[name] = rows[name][:size], rows[name][size:]
            files[name] = [table(cut[: size // 2]), table(cut[size // 2 :])]
        now += draw.randrange(1, 4) * SECOND
        first, again = staged.twice(files, now, control=not files)
        assert _sorted(first) == _sorted(again)
        given += len(first.get("q", []))
    assert given, "there is something to compare"


def _sorted(results: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    return {query: sorted(map(str, rows)) for query, rows in results.items() if rows}


@pytest.mark.parametrize("queue", ["append", "append_shed"])
def test_windows_behind_a_queue_of_all_rows_close_as_they_do_without_one(queue: str, tmp_path: Path) -> None:
    """The bound follows the last rows that the queue lets go, though nothing comes after them."""
    keep = ", keep = 1" if queue == "append_shed" else ""
    queued = network(NEARLY, UPDATES, f"WITH (queue = '{queue}'{keep}) AS {COUNTS}")
    found = []
    for number, net in enumerate([queued, network(NEARLY, "", f"AS {COUNTS}")]):
        (tmp_path / str(number)).mkdir()
        staged = Staged(net, tmp_path / str(number), live=True)
        batches = [staged.batch({"s": [table(rows_of(3)[at : at + 50])]}, START * SECOND) for at in range(0, 300, 50)]
        found.append([_sorted(batch) for batch in batches])
    assert found[0] == found[1]
    assert found[0][-1], "some windows close"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 25])
@pytest.mark.parametrize(("time", "query"), QUEUES)
def test_queues_let_the_same_rows_go_again(time: str, query: str, seed: int, tmp_path: Path) -> None:
    check_runs_again(network(time, UPDATES, f"WITH {query}"), seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("time", [ON_DEMAND, PARTITIONED])
@pytest.mark.parametrize("query", ORDINARY)
def test_other_operators_give_the_same_rows_again(time: str, query: str, tmp_path: Path) -> None:
    check_runs_again(network(time, "", f"AS {query}"), 1, tmp_path)


@pytest.mark.slow
def test_a_budget_of_time_is_shared_alike_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(bucket_queues, "time", SimpleNamespace(perf_counter=lambda: next(ticks) * 0.0011))
    query = f"WITH (queue = 'append') AS {COUNTS}; CREATE QUERY r AS SELECT k, v, ts FROM t"
    check_runs_again(network(LATE, UPDATES, query), 2, tmp_path, TriggerPace(SECOND // 2))
