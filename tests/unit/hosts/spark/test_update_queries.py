"""Update queries cut for Spark, without starting it: queues take all in, let go by budget, and keep the rest."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from staged import Staged

from millrace.errors import RequestError
from millrace.hosts.spark.stage import bucket_queues
from millrace.hosts.spark.stage.budget import FIRST_ROWS, TriggerPace
from millrace.language import parse_network
from millrace.language.declarations.query_options import spelling
from millrace.testing.hosts import in_memory

SECOND = 1_000_000
START = 100_000
"""Seconds on the clock of the first micro-batch: no row is ahead of it."""
TIMESTAMP = pa.timestamp("us", tz="UTC")
POLICIES = ("update_fifo", "inplace", "linecutting", "linecutting_as_printed", "auto")
QUERY = "SELECT k, v * 10 AS w, ts FROM s"
Row = dict[str, Any]


def network(query: str = QUERY, declared: str = "", **options: str) -> Any:
    """A query over the update streams s and t."""
    streams = "".join(
        f"CREATE STREAM {name} (k STRING, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts DISORDER INTERVAL 60 SECONDS"
        " UPDATE KEY (k) FROM parquet OPTIONS (path 'none');\n"
        for name in ("s", "t")
    )
    chosen = ", ".join(spelling(name, value) for name, value in options.items())
    return in_memory(
        parse_network(f"{declared}{streams} CREATE QUERY q {f'WITH ({chosen})' if chosen else ''} AS {query};")
    )


def rows_of(seed: int, count: int = 300, keys: int = 23) -> list[Row]:
    """Updates of some keys that come a little out of order; `v` tells them apart."""
    draw, clock, rows = Random(seed), 0, []
    for number in range(count):
        clock += draw.randrange(3)
        time = max(0, clock - draw.choice([0, 0, 0, 2, 5]))
        rows.append({"k": f"k{draw.randrange(keys)}", "v": number, "ts": time})
    return rows


def table(rows: list[Row]) -> pa.Table:
    times = pa.array([row["ts"] * SECOND for row in rows], pa.int64()).cast(TIMESTAMP)
    values = pa.array([row["v"] for row in rows], pa.int64())
    return pa.table({"k": pa.array([row["k"] for row in rows], pa.string()), "v": values, "ts": times})


def files(rows: list[Row], seed: int) -> Iterator[list[pa.Table]]:
    """The rows in micro-batches of a few files each, cut at random."""
    draw, at = Random(seed), 0
    while at < len(rows):
        batch = []
        for _ in range(draw.randrange(1, 4)):
            size = draw.randrange(1, 40)
            batch.append(table(rows[at : at + size]))
            at += size
        yield [each for each in batch if each.num_rows]


def newest(rows: list[Row]) -> dict[str, int]:
    """By key the value of the latest time; of equal times that which came last."""
    found: dict[str, Row] = {}
    for row in rows:
        if row["k"] not in found or row["ts"] >= found[row["k"]]["ts"]:
            found[row["k"]] = row
    return {key: row["v"] * 10 for key, row in found.items()}


def check(rows: list[Row], results: list[Row]) -> None:
    """Every result is correct for some row, no key goes back in time, and the last ones are exact."""
    known = {(row["k"], row["v"] * 10, row["ts"]) for row in rows}
    last: dict[str, Row] = {}
    for result in results:
        assert (result["k"], result["w"], result["ts"].timestamp()) in known
        assert result["k"] not in last or last[result["k"]]["ts"] <= result["ts"]
        last[result["k"]] = result
    assert {key: result["w"] for key, result in last.items()} == newest(rows)


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True], ids=["at hand", "restored"])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_last_value_of_every_key_is_exact_and_none_goes_back(policy: str, restarts: bool, tmp_path: Path) -> None:
    rows, results = rows_of(1), []
    staged = Staged(network(queue=policy, budget="7 rows"), tmp_path, live=True)
    for now, batch in enumerate(files(rows, 2), start=START):
        given = staged.batch({"s": batch}, now=now * SECOND).get("q", [])
        assert len(given) <= 7
        results += given
        if restarts:
            staged.restart()
    assert staged.record["queued"] > 0, "the budget leaves rows in queues"
    results += staged.drain(now=2 * START * SECOND)["q"]
    check(rows, results)
    assert len(results) < len(rows), "some were superseded"


def test_auto_updates_if_its_budget_would_take_long_for_what_waits(tmp_path: Path) -> None:
    """240 rows of 12 keys at once, a micro-batch in 160 ms: every row would take 80 of them, in place it is four."""
    rows, batches = rows_of(1, 240, 12), {}
    for policy in ("auto", "inplace"):
        staged = Staged(network(queue=policy, budget="3 rows"), tmp_path / policy, buckets=(3,), live=True)
        now, count = START * SECOND, 1
        results = staged.batch({"s": [table(rows)]}, now).get("q", [])
        while staged.record["queued"]:
            now, count = now + 160_000, count + 1
            results += staged.batch({}, now, control=True).get("q", [])
        check(rows, results)
        batches[policy] = count
    assert batches["auto"] <= batches["inplace"] + 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_micro_batch_that_is_run_again_lets_the_same_rows_go(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes the second time."""
    draw = Random(seed)
    moments = itertools.accumulate(draw.choice([0.000_01, 0.05, 10.0]) for _ in itertools.count())
    monkeypatch.setattr(bucket_queues, "time", SimpleNamespace(perf_counter=lambda: next(moments)))
    rows, results, sizes = rows_of(seed, 1500, keys=600), [], set()
    staged = Staged(network(queue="linecutting"), tmp_path, live=True, pace=TriggerPace(SECOND))
    for now, batch in enumerate(files(rows, seed), start=START):
        before = staged.saved()
        first = staged.batch({"s": batch}, now=now * SECOND).get("q", [])
        staged.back_to(before)
        staged.pace = TriggerPace(draw.choice([1, 5]) * SECOND)
        assert staged.batch({"s": batch}, now=now * SECOND).get("q", []) == first
        results += first
        sizes.add(len(first))
    assert staged.record["queued"] > 0
    results += staged.batch({}, now=2 * START * SECOND, end=True)["q"]
    check(rows, results)
    assert len(sizes) > 5


def test_buckets_share_a_budget_of_rows(tmp_path: Path) -> None:
    staged = Staged(network(budget="10 rows"), tmp_path)
    rows = [{"k": f"k{number}", "v": number, "ts": 0} for number in range(90)]
    sizes = [len(staged.batch({"s": [table(rows)]}, now=1)["q"])]
    while staged.record["queued"]:
        sizes.append(len(staged.batch({}, now=2, control=True).get("q", [])))
    assert sum(sizes) == 90
    assert sizes[:6] == [10] * 6, "while all buckets have rows"


def test_a_run_that_ends_by_itself_lets_everything_go_at_once(tmp_path: Path) -> None:
    rows = [{"k": f"k{number}", "v": number, "ts": 0} for number in range(2000)]
    staged = Staged(network(), tmp_path)
    assert len(staged.batch({"s": [table(rows)]}, now=1)["q"]) == 2000
    assert staged.record["queued"] == 0


def test_the_first_rows_of_a_run_that_goes_on_are_few(tmp_path: Path) -> None:
    rows = [{"k": f"k{number}", "v": number, "ts": 0} for number in range(2000)]
    staged = Staged(network(), tmp_path, live=True)
    assert len(staged.batch({"s": [table(rows)]}, now=1)["q"]) == 3 * FIRST_ROWS


def test_the_end_lifts_the_budget(tmp_path: Path) -> None:
    rows = [{"k": f"k{number}", "v": number, "ts": 0} for number in range(100)]
    staged = Staged(network(budget="1 rows"), tmp_path)
    first = staged.batch({"s": [table(rows)]}, now=1)["q"]
    check(rows, first + staged.batch({}, now=2, end=True)["q"])
    assert len(first) == 1


class Slow:
    """A clock that only the function below moves on, by two milliseconds a row."""

    seconds = 0.0


def slow(value: int) -> int:
    Slow.seconds += 0.002
    return 10 * value


def test_rows_follow_the_pace_by_what_they_have_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four fifths of a second have room for 400 rows in each of three buckets, if each has a core of its own."""
    monkeypatch.setattr(bucket_queues, "time", SimpleNamespace(perf_counter=lambda: Slow.seconds))
    declared = f"CREATE FUNCTION slow(BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS '{__name__}:slow';"
    staged = Staged(network("SELECT k, slow(v) AS w, ts FROM s", declared, queue="append"), tmp_path, live=True)
    staged.pace = TriggerPace.of(SECOND, cores=3, buckets=3)
    rows = [{"k": f"k{number}", "v": number, "ts": 0} for number in range(9000)]
    sizes = [len(staged.batch({"s": [table(rows)]}, now=1)["q"])]
    sizes += [len(staged.batch({}, now, control=True)["q"]) for now in range(2, 5)]
    assert sizes == [3 * FIRST_ROWS, 1200, 1200, 1200]
    staged.pace = TriggerPace.of(SECOND, cores=1, buckets=3)
    sizes = [len(staged.batch({}, now, control=True)["q"]) for now in range(5, 7)]
    assert sizes == [1200, 3 * 133], "what is said in a micro-batch counts from the next one on"
    staged.restart()
    assert len(staged.batch({}, 2 * SECOND, control=True)["q"]) == 3 * 93, "the one before took two seconds"


def test_nothing_is_lost_of_what_is_counted(tmp_path: Path) -> None:
    rows = rows_of(5)
    staged = Staged(network(queue="inplace", budget="9 rows"), tmp_path, live=True)
    results: list[Row] = []
    entered = 0
    for now, batch in enumerate(files(rows, 3), start=START):
        entered += sum(each.num_rows for each in batch)
        results += staged.batch({"s": batch}, now=now * SECOND).get("q", [])
        counts = bucket_queues.counts_of("s", staged.record["queues"])
        assert counts.entered == entered == counts.let_go + counts.superseded + counts.shed + counts.waiting
        assert counts.let_go == len(results)
        assert counts.waiting == staged.record["queued"]


def test_the_inputs_of_a_union_are_counted_each(tmp_path: Path) -> None:
    staged = Staged(network("SELECT k, v * 10 AS w, ts FROM s UNION t", budget="5 rows"), tmp_path)
    first, second = rows_of(1, 40), rows_of(2, 60)
    results = staged.batch({"s": [table(first)], "t": [table(second)]}, now=1)["q"]
    counts = {name: bucket_queues.counts_of(name, staged.record["queues"]) for name in ("s", "t")}
    assert {name: each.entered for name, each in counts.items()} == {"s": 40, "t": 60}
    assert sum(each.let_go for each in counts.values()) == len(results) == 5
    results += staged.drain(now=2)["q"]
    times: dict[str, int] = defaultdict(int)
    for row in first + second:
        times[row["k"]] = max(times[row["k"]], row["ts"])
    assert {row["k"]: row["ts"].timestamp() for row in results} == times


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True], ids=["at hand", "restored"])
def test_the_queues_of_a_join_share_its_budget_and_the_last_match_is_exact(restarts: bool, tmp_path: Path) -> None:
    query = "SELECT s.k, s.v * 10 AS w, t.v * 10 AS x FROM s JOIN t ON s.k = t.k"
    staged = Staged(network(query, budget="8 rows"), tmp_path)
    inputs = {"s": rows_of(3, 150), "t": rows_of(4, 200)}
    results, left = [], 0
    for at in range(0, 200, 25):
        batch = {name: [table(rows[at : at + 25])] for name, rows in inputs.items() if rows[at : at + 25]}
        results += staged.batch(batch, now=at).get("q", [])
        before, left = left, sum(told["let_go"] for told in staged.record["queues"].values())
        assert left - before <= 8
        if restarts:
            staged.restart()
    assert set(staged.record["queues"]) == {"q", "q#2"}
    results += staged.drain(now=300)["q"]
    first, second = newest(inputs["s"]), newest(inputs["t"])
    expected = {key: (value, second[key]) for key, value in first.items() if key in second}
    assert {row["k"]: (row["w"], row["x"]) for row in results} == expected


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True], ids=["at hand", "restored"])
@pytest.mark.parametrize("mode", ["lazy", "eager"])
def test_windows_that_are_let_go_in_pieces_are_whole(mode: str, restarts: bool, tmp_path: Path) -> None:
    query = "SELECT window, k, count(*) AS n, sum(v) AS total FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY k"
    staged = Staged(network(query, update_window=mode, budget="8 rows"), tmp_path, live=True)
    rows, results = rows_of(6), []
    for now, batch in enumerate(files(rows, 7), start=START):
        results += staged.batch({"s": batch}, now=now * SECOND).get("q", [])
        if restarts:
            staged.restart()
    results += staged.drain(now=2 * START * SECOND).get("q", [])
    assert results, "some windows close by the stream's own bound"
    results += staged.batch({}, now=3 * START * SECOND, end=True)["q"]
    last = {row["k"]: row["ts"] for row in sorted(rows, key=lambda row: row["ts"])}
    found: dict[str, float] = {}
    for result in results:
        key, start = result["k"], result["window_start"].timestamp()
        own = [row["v"] for row in rows if row["k"] == key and start <= row["ts"] < start + 20]
        assert (result["n"], result["total"]) == (len(own), sum(own))
        assert start > found.get(key, -100)
        found[key] = start
    assert found == {key: time // 10 * 10 for key, time in last.items()}


def test_queries_have_queues_and_budgets_of_their_own(tmp_path: Path) -> None:
    both = f"{QUERY}; CREATE QUERY r WITH (budget = '30 rows') AS {QUERY}"
    staged = Staged(network(both, budget="9 rows"), tmp_path)
    rows = [{"k": f"k{number}", "v": number, "ts": 0} for number in range(90)]
    given = staged.batch({"s": [table(rows)]}, now=1)
    assert (len(given["q"]), len(given["r"])) == (9, 30)
    rest = staged.drain(now=2)
    check(rows, given["q"] + rest["q"])
    check(rows, given["r"] + rest["r"])


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [("append", "inplace"), ("inplace", "append"), ("update_fifo", "auto")])
def test_another_queue_while_rows_wait(before: str, after: str, tmp_path: Path) -> None:
    rows = rows_of(7)
    staged = Staged(network(queue=before, budget="6 rows"), tmp_path, live=True)
    results: list[Row] = []
    for now, batch in enumerate(files(rows, 8), start=START):
        results += staged.batch({"s": batch}, now=now * SECOND).get("q", [])
        if now == START + 4:
            assert staged.record["queued"] > 0
            staged.change(network(queue=after, budget="6 rows"))
    results += staged.drain(now=2 * START * SECOND)["q"]
    assert staged.record["queues"]["q"]["policy"] == after
    assert {row["k"]: row["w"] for row in sorted(results, key=lambda row: row["ts"])}.keys() == newest(rows).keys()
    counts = bucket_queues.counts_of("s", staged.record["queues"])
    assert counts.entered == len(rows) == counts.let_go + counts.superseded
    if "append" not in (before, after):
        check(rows, results)


def test_rows_wait_for_the_budget_not_for_ever(tmp_path: Path) -> None:
    """A budget smaller than the number of buckets goes round."""
    rows = [{"k": f"k{number}", "v": number, "ts": 0} for number in range(30)]
    staged = Staged(network(budget="1 rows"), tmp_path)
    results = staged.batch({"s": [table(rows)]}, now=1).get("q", []) + staged.drain(now=2)["q"]
    check(rows, results)


def test_buckets_tell_of_their_most_stale_keys(tmp_path: Path) -> None:
    rows = [{"k": f"k{number}", "v": number, "ts": 0} for number in range(90)]
    staged = Staged(network(budget="3 rows"), tmp_path, live=True)
    staged.batch({"s": [table(rows)]}, now=1 * SECOND)
    staged.batch({}, now=3 * SECOND, control=True)
    told = staged.record["queues"]
    stale = bucket_queues.staleness_of("q", told, has_queue=True)
    assert set(stale.column("application_now").to_pylist()) == {2 * SECOND}
    assert stale.num_rows == 3 * bucket_queues.STALEST
    metrics = bucket_queues.queue_metrics_of(told["q"])
    assert (metrics.keys, metrics.waiting, metrics.let_go, metrics.oldest) == (90, 84, 6, 2 * SECOND)
    # Of 90 keys three left at once, and the others after two seconds or not yet.
    assert metrics.application_now == pytest.approx(2 * SECOND * 84 / 90)
    with pytest.raises(RequestError, match='query "r" has no queue'):
        bucket_queues.staleness_of("r", told, has_queue=False)
