"""A thousand keys at five times what is served, a tenth of the rows out of order, on the hosts where work is real.

Time is counted in rows: a turn reads one file, and each queue lets go of a fifth as many rows. On the local host and on
a network that is cut for Spark, without starting it, the clock moves with the turns, so that runs are the same each
time; they are long enough for what LINECUTTING tries to be a small part. A run on Spark itself is short. On virtual
time it is the figure `overload`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.experiments.figures.updates.update_queues import keys_of
from millrace.hosts.local import host
from millrace.hosts.report import Listeners, Report
from millrace.hosts.run_options import RunOptions
from millrace.language import parse_network
from millrace.testing.hosts import in_memory
from tests.unit.hosts.spark.staged import Staged

KEYS, LOAD = 1000, 5
POLICIES = ("inplace", "linecutting", "update_fifo", "append")
THETAS = {"uniform": 0.0, "zipf 0.5": 0.5, "zipf 0.9": 0.9}
KINDS = (*THETAS, "mixed")
BEGIN = 10**15
"""On the clock, where it moves with the turns: a millisecond a row."""


@dataclass(frozen=True)
class Size:
    """How many files of how many rows each."""

    files: int
    rows: int

    @property
    def served(self) -> int:
        """The rows that a queue lets go in a turn."""
        return self.rows // LOAD


SHORT, LONG = Size(12, 2000), Size(120, 500)


def updates(kind: str, size: Size) -> pa.Table:
    """Updates of keys at random; `v` counts them. One in ten is as old as one up to 5,000 rows before it.

    Of the mix half of the keys have 30 times as many as the others.
    """
    random, count = np.random.default_rng(11), size.files * size.rows
    values = np.arange(count)
    late = (random.random(count) < 0.1) * random.integers(1, 5000, count)
    # No two rows are of the same time.
    times = pa.array(np.maximum(values - late, 0) * 2_000_000 + values).cast(pa.timestamp("us", tz="UTC"))
    shares = np.where(np.arange(KEYS) < KEYS // 2, 30.0, 1.0)
    keys = (
        keys_of(KEYS, count, THETAS[kind])
        if kind in THETAS
        else random.choice(KEYS, count, p=shares / shares.sum()).astype(np.int64)
    )
    return pa.table({"k": keys, "v": values, "ts": times})


def script(folder: Path | str, size: Size, policies: Sequence[str], stream: str = "s") -> str:
    """A stream, and a query of the same work for each kind of queue, called by the stream and the kind."""
    declared = f"""
CREATE STREAM {stream} (k BIGINT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 3 HOURS UPDATE KEY (k)
  FROM parquet OPTIONS (path '{folder}', max_files_per_trigger '1');"""
    return declared + "".join(
        f"CREATE QUERY {stream}_{policy} WITH (queue = '{policy}', budget = '{size.served} rows') AS "
        f"SELECT k, v, ts FROM {stream};"
        for policy in policies
    )


def write(rows: pa.Table, folder: Path, size: Size) -> None:
    folder.mkdir()
    for number in range(size.files):
        pq.write_table(rows.slice(number * size.rows, size.rows), folder / f"{number:04d}.parquet")


class Watched:
    """What each query was given, and how many rows had been read by then; the most rows that waited."""

    def __init__(self) -> None:
        self.given: dict[str, list[tuple[int, int, int]]] = {}
        """Key, value, and the rows that had been read, by query."""
        self.most: dict[str, int] = {}
        self._new: list[tuple[str, pa.Table]] = []

    def results(self, query: str, rows: pa.Table) -> None:
        self._new.append((query, rows))

    def progress(self, report: Report) -> None:
        read = {stream: source.received for stream, source in report.sources.items()}
        for query, rows in self._new:
            self.give(query, rows.to_pylist(), read[query[0]])
        self._new.clear()
        self.wait({query: queue.waiting for query, queue in report.queues.items()})

    def give(self, query: str, rows: Sequence[dict[str, Any]], read: int) -> None:
        self.given.setdefault(query, []).extend((row["k"], row["v"], read) for row in rows)

    def wait(self, waiting: dict[str, int]) -> None:
        self.most |= {query: max(self.most.get(query, 0), rows) for query, rows in waiting.items()}


def on_local(
    rows: pa.Table, size: Size, policies: Sequence[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Watched:
    """The local host, whose clock moves with each turn."""
    moment, watched = [BEGIN], Watched()
    monkeypatch.setattr(host.SystemClock, "now", lambda self: moment[0])

    def progress(report: Report) -> None:
        watched.progress(report)
        moment[0] += size.rows * 1000

    write(rows, folder / "s", size)
    network = parse_network(script(folder / "s", size, policies))
    listeners = Listeners(results=watched.results, progress=progress)
    host.LocalRun(network, RunOptions("local", "available", commit_interval=0), listeners=listeners).run()
    return watched


def cut_for_spark(
    rows: pa.Table, size: Size, policies: Sequence[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Watched:
    """The stages of the Spark host, called by hand; a micro-batch is committed just before the next one looks."""
    network, watched = in_memory(parse_network(script("none", size, policies))), Watched()
    staged = Staged(network, folder, buckets=(3, 5), live=True, took=size.rows * 1000)
    for number in range(size.files + 1):
        piece, now = rows.slice(number * size.rows, size.rows), BEGIN + number * size.rows * 1000
        given = staged.batch({"s": [piece]} if piece.num_rows else {}, now, end=not piece.num_rows)
        for query, some in given.items():
            watched.give(query, some, min((number + 1) * size.rows, len(rows)))
        watched.wait({query: told["waiting"] for query, told in staged.record["queues"].items()})
    return watched


def newest(rows: pa.Table) -> dict[int, int]:
    """The value of the newest row of each key."""
    found, times = {}, rows.column("ts").cast(pa.int64()).to_numpy()
    keys, values = rows.column("k").to_pylist(), rows.column("v").to_pylist()
    for key, value in zip(keys, values, strict=True):
        if key not in found or times[value] > times[found[key]]:
            found[key] = value
    return found


def check_answers(rows: pa.Table, watched: Watched, stream: str, policies: Sequence[str]) -> None:
    """No key goes back, its last value is exact, and no more rows wait than there are keys; or else no row is lost."""
    times, last_values = rows.column("ts").cast(pa.int64()).to_numpy(), newest(rows)
    for policy in policies:
        given = watched.given[f"{stream}_{policy}"]
        if policy == "append":
            assert sorted(value for _, value, _ in given) == list(range(len(rows))), "each row once"
            continue
        last: dict[int, int] = {}
        for key, value, _ in given:
            assert key not in last or times[value] > times[last[key]], "a key never goes back"
            last[key] = value
        assert last == last_values
        assert watched.most[f"{stream}_{policy}"] <= KEYS


def stale(given: Sequence[tuple[int, int, int]], rows: pa.Table) -> tuple[float, float]:
    """How stale keys are as one sees it who is given the results while rows come, in rows: on average over keys and
    time, and when a key is given a result, all but one in a hundred times at most."""
    keys, times = rows.column("k").to_numpy(), rows.column("ts").cast(pa.int64()).to_numpy()
    own = {key: np.flatnonzero(keys == key) for key in range(KEYS)}
    since = {key: int(numbers[0]) for key, numbers in own.items() if len(numbers)}
    reached = dict.fromkeys(own, -1)
    waits, area, end = [], 0.0, len(rows)
    for key, value, read in given:
        if read == end:
            break
        waits.append(max(read - since[key], 0))
        reached[key] = max(reached[key], int(times[value]))
        newer = own[key][times[own[key]] > reached[key]]
        since[key] = int(newer[0]) if len(newer) else end
        area += (waits[-1] ** 2 - max(read - since[key], 0) ** 2) / 2
    area += sum((end - first) ** 2 / 2 for first in since.values())
    return area / end / len(since), float(np.quantile(waits, 0.99))


def found(rows: pa.Table, watched: Watched, stream: str, policies: Sequence[str]) -> dict[str, tuple[float, float]]:
    """What `stale` says of each kind of queue."""
    return {policy: stale(watched.given[f"{stream}_{policy}"], rows) for policy in policies}


Host = Callable[[pa.Table, Size, Sequence[str], Path, pytest.MonkeyPatch], Watched]
HOSTS: dict[str, Host] = {"local": on_local, "cut for spark": cut_for_spark}
OFTEN = {("local", "uniform"), ("local", "zipf 0.9"), ("local", "mixed"), ("cut for spark", "mixed")}


# What holds of equal keys and of very unequal ones holds between them; and each queue is the same one on every host:
# where a network is cut for Spark, buckets share its budget, whatever the keys.
CASES = [
    pytest.param(host, kind, id=f"{name}-{kind}", marks=() if (name, kind) in OFTEN else pytest.mark.long)
    for name, host in HOSTS.items()
    for kind in KINDS
]


@pytest.mark.slow
@pytest.mark.parametrize(("host", "kind"), CASES)
def test_what_waits_and_how_long_stays_bounded_and_linecutting_is_no_worse(
    host: Host, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = POLICIES if kind == "uniform" else POLICIES[:3]
    rows = updates(kind, LONG)
    watched = host(rows, LONG, policies, tmp_path, monkeypatch)
    check_answers(rows, watched, "s", policies)
    means, high = ({policy: each[at] for policy, each in found(rows, watched, "s", policies).items()} for at in (0, 1))
    assert high["inplace"] <= KEYS * LOAD, "a thousand keys by the rows served"
    assert means["linecutting"] <= (1.0 if kind == "mixed" else 1.02) * means["inplace"]
    assert means["update_fifo"] > means["inplace"], "who is updated often waits for ever"
    if "append" in policies:
        assert high["append"] > 2 * high["inplace"]
        assert watched.most["s_append"] > 10 * KEYS


@pytest.mark.spark
@pytest.mark.long
def test_the_same_on_spark(tmp_path: Path) -> None:
    """Three streams in one run. It is short, and on a clock that nobody winds: the first trial of LINECUTTING is a
    tenth of it, so it may be worse by some hundredths (1.03 to 1.04 where the clock moves with the turns)."""
    from millrace.hosts.spark.host import SparkRun

    streams = {"s": ("uniform", POLICIES), "z": ("zipf 0.9", POLICIES[:2]), "m": ("mixed", POLICIES[:2])}
    rows, text, watched = {}, "", Watched()
    for stream, (kind, policies) in streams.items():
        rows[stream] = updates(kind, SHORT)
        write(rows[stream], tmp_path / stream, SHORT)
        text += script(tmp_path / stream, SHORT, policies, stream)
    listeners = Listeners(results=watched.results, progress=watched.progress)
    run = SparkRun(
        parse_network(text), RunOptions("spark", "available", checkpoint=tmp_path / "state"), listeners=listeners
    )
    try:
        run.run()
    finally:
        run.close()
    for stream, (_, policies) in streams.items():
        check_answers(rows[stream], watched, stream, policies)
        staleness = found(rows[stream], watched, stream, policies)
        # A thousand keys by the rows served, and the file in which a row comes.
        assert staleness["inplace"][1] <= KEYS * LOAD + SHORT.rows
        assert staleness["linecutting"][0] <= 1.1 * staleness["inplace"][0]
        if "append" in policies:
            assert staleness["append"][1] > 2 * staleness["inplace"][1]
