"""Queues of updates on the hosts of one process: kept over commits, changes and restarts, empty when a run ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from millrace.connectors.stream_input import CHUNK_ROWS
from millrace.hosts.control.live_changes import LiveChanges
from millrace.hosts.local.host import LocalRun
from millrace.hosts.report import Ending, Listeners, Report
from millrace.hosts.run_options import RunOptions
from millrace.hosts.virtual.clock import Costs
from millrace.hosts.virtual.host import VirtualRun
from millrace.kernel.elements import Batch, Element
from millrace.kernel.metrics import SourceMetrics
from millrace.language import bind_changes, parse_network, read_file
from tests.background import running
from tests.e2e.commands import wait_for

SECOND = 1_000_000
STREAM = "CREATE STREAM s (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM {};\n"
QUERY = "CREATE QUERY q WITH (queue = 'inplace'{}) AS SELECT k, v * 2 AS v, ts FROM s WHERE v >= 0;\n"
SQL = STREAM.format("iterable") + QUERY
SLOW = ", budget = '1 rows'"


def updates(count: int, keys: int, first: int = 0) -> pa.Table:
    """Updates of keys in turn, one a second."""
    numbers = pa.array(range(first, first + count), pa.int32())
    return pa.table(
        {
            "k": pa.array([number % keys for number in range(first, first + count)], pa.int32()),
            "v": numbers,
            "ts": pc.multiply(numbers.cast(pa.int64()), SECOND).cast(pa.timestamp("us", tz="UTC")),
        }
    )


def latest(tables: Iterable[pa.Table]) -> dict[int, int]:
    """The last answer of each key; checks that no key ever goes back."""
    found: dict[int, int] = {}
    for row in (row for table in tables for row in table.to_pylist()):
        assert row["v"] > found.get(row["k"], -1)
        found[row["k"]] = row["v"]
    return found


def exact(count: int, keys: int) -> dict[int, int]:
    """The last answer of each key over all updates."""
    return {number % keys: number * 2 for number in range(count)}


def adds_up(source: SourceMetrics) -> bool:
    others = source.late + source.quarantined + source.shed + source.superseded + source.buffered
    return source.received == source.processed + others and source.processed >= 0


def changing(sql: str) -> LiveChanges:
    return LiveChanges(parse_network(sql), sql, bind_changes, read_file)


def endless(*tables: pa.Table) -> Iterator[Any]:
    yield from tables
    while True:
        yield []


@pytest.mark.parametrize("ending", ["available", "end", "stopped"])
@pytest.mark.parametrize("budget", ["", ", budget = '3 rows'", ", budget = '1 milliseconds'"])
def test_queues_are_empty_when_a_run_ends_by_itself(ending: Ending, budget: str) -> None:
    feeds = {"s": [updates(300, 50), updates(700, 50, 300)]}
    run = LocalRun(parse_network(SQL.format(budget)), RunOptions("local", ending), feeds=feeds)
    report = run.run()
    assert latest(run.memory["q"]) == exact(1000, 50)
    queue, source = report.queues["q"], report.sources["s"]
    assert queue.waiting == 0 and queue.entered == 1000 == queue.let_go + queue.superseded
    assert adds_up(source) and (source.superseded, source.buffered) == (queue.superseded, 0)
    assert source.processed == queue.let_go == report.results["q"]


def test_a_commit_does_not_empty_a_queue() -> None:
    reports: list[Report] = []
    run = LocalRun(
        parse_network(SQL.format(SLOW)),
        RunOptions("local", "available", commit_interval=0),
        feeds={"s": [updates(100, 100)]},
        listeners=Listeners(progress=reports.append),
    )
    run.run()
    left = [report.queues["q"].let_go for report in reports]
    assert left[0] <= 1 and max(after - before for before, after in pairwise(left)) <= 1
    assert all(adds_up(report.sources["s"]) for report in reports)
    assert latest(run.memory["q"]) == exact(100, 100)


def test_a_stream_is_read_at_full_speed_while_its_queue_is_slow() -> None:
    tables = [updates(100, 100, first) for first in range(0, 5000, 100)]
    with running(LocalRun(parse_network(SQL.format(SLOW)), feeds={"s": endless(*tables)})) as run:
        wait_for(lambda: run.report().queues["q"].entered == 5000)
        found = run.report().queues["q"]
        # A turn reads several items and lets a row go.
        assert found.let_go <= 150 and found.superseded >= 4700


@pytest.mark.slow
def test_a_flood_does_not_keep_a_queue_from_letting_go() -> None:
    """What is read enters its queue first, and that alone takes longer than a moment."""
    keys = 20_000

    def flood() -> Iterator[pa.Table]:
        first = 0
        while True:
            yield updates(CHUNK_ROWS, keys, first)
            first += CHUNK_ROWS

    others = "".join(f"CREATE QUERY q{number} AS SELECT k, v + {number} AS v FROM s;" for number in range(3))
    run = LocalRun(parse_network(SQL.format("") + others), feeds={"s": flood()})
    slow_down(run)
    with running(run):
        wait_for(lambda: run.report().received >= 5 * CHUNK_ROWS)
        assert all(queue.let_go for queue in run.report().queues.values())


def slow_down(run: LocalRun) -> None:
    """Make a row's way into the queue cost something."""
    for queue in run.executor.queue_gate.queues().values():
        queue.on_batch = slowly(queue.on_batch)  # type: ignore[assignment, method-assign]


def slowly(take: Callable[[int, Batch], Iterator[Element]]) -> Callable[[int, Batch], Iterator[Element]]:
    def slow(port: int, batch: Batch) -> Iterator[Element]:
        time.sleep(0.02)
        return take(port, batch)

    return slow


@pytest.mark.parametrize("ending", ["available", "end"])
@pytest.mark.parametrize("budget", ["", ", budget = '1 milliseconds'"])
def test_slow_work_gives_its_first_answers_row_by_row(ending: Ending, budget: str) -> None:
    run, sizes = (
        LocalRun(parse_network(SQL.format(budget)), RunOptions("local", ending), feeds={"s": [updates(20, 20)]}),
        list[int](),
    )
    [queue] = run.executor.queue_gate.queues().values()
    let_go = queue.on_more

    def slow(limit: int | None) -> Iterator[Element]:
        for element in let_go(limit):
            sizes.append(len(element) if isinstance(element, Batch) else 0)
            time.sleep(0.02 * sizes[-1])
            yield element

    queue.on_more = slow  # type: ignore[method-assign]
    run.run()
    assert sizes == [1] * 20


def files(folder: Path, *tables: pa.Table) -> str:
    """A folder of CSV files as what a stream reads."""
    folder.mkdir(exist_ok=True)
    before = len(list(folder.iterdir()))
    for number, table in enumerate(tables, before):
        plain = table.set_column(2, "ts", table.column("ts").cast(pa.timestamp("us")))
        pyarrow.csv.write_csv(plain, folder / f"{number:03}.csv")
    return f"csv OPTIONS (path '{folder}')"


def into_files(tmp_path: Path, options: str, policy: str = "inplace") -> str:
    sink = f"CREATE SINK out TO parquet OPTIONS (path '{tmp_path / 'out'}');\n"
    query = QUERY.format(options).replace("QUERY q", "QUERY q INTO out").replace("inplace", policy)
    return STREAM.format(f"csv OPTIONS (path '{tmp_path / 'in'}')") + sink + query


def written(tmp_path: Path) -> list[pa.Table]:
    return [pq.read_table(path) for path in sorted((tmp_path / "out").glob("part-*.parquet"))]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["append", "update_fifo", "inplace", "linecutting", "auto"])
def test_a_run_that_is_stopped_keeps_its_queue_in_the_checkpoint(policy: str, tmp_path: Path) -> None:
    files(tmp_path / "in", updates(5000, 5000))
    sql, state = into_files(tmp_path, SLOW, policy), tmp_path / "state"
    changes = changing(sql)
    with running(
        LocalRun(changes.network, RunOptions("local", checkpoint=state, commit_interval=50_000), changes=changes)
    ) as run:
        wait_for(lambda: run.report().queues["q"].waiting > 0)
    stopped = run.report().queues["q"]
    assert stopped.waiting > 0 and stopped.let_go + stopped.waiting == 5000
    files(tmp_path / "in", updates(10, 5000, 5000))
    changes = changing(into_files(tmp_path, "", policy))
    report = LocalRun(changes.network, RunOptions("local", "available", checkpoint=state), changes=changes).run()
    assert latest(written(tmp_path)) == exact(5010, 5000)
    assert adds_up(report.sources["s"]) and report.sources["s"].received == 5010
    queue = report.queues["q"]
    assert queue.entered == 5010 == queue.let_go + queue.superseded


def test_a_change_does_not_empty_a_queue_and_a_new_budget_holds_at_once() -> None:
    changes = changing(SQL.format(SLOW))
    run = LocalRun(changes.network, feeds={"s": endless(updates(5000, 5000))}, changes=changes)
    with running(run):
        wait_for(lambda: run.report().queues["q"].entered == 5000)
        changes.ask("ADD QUERY other AS SELECT k, v FROM s")
        assert run.report().queues["q"].waiting > 0
        changes.ask("ALTER QUERY q SET (budget = '100000 rows')")
        wait_for(lambda: run.report().queues["q"].waiting == 0)
    assert latest(run.memory["q"]) == exact(5000, 5000)


def test_why_says_which_queue_is_behind() -> None:
    with running(LocalRun(parse_network(SQL.format(SLOW)), feeds={"s": endless(updates(20000, 20000))})) as run:
        wait_for(lambda: run.report().queues["q"].waiting > 0)
        time.sleep(0.15)
        said = str(run.lag())
    assert "keys wait in the queue of q, the oldest for" in said
    assert "the work behind it is slower than the updates come" in said


# Virtual time


def arriving(*arrivals: tuple[float, int, int]) -> pa.Table:
    """Updates (second of arrival and time, key, value)."""
    times = pa.array([int(second * SECOND) for second, _, _ in arrivals], pa.timestamp("us", tz="UTC"))
    return pa.table(
        {
            "k": pa.array([key for _, key, _ in arrivals], pa.int32()),
            "v": pa.array([value for _, _, value in arrivals], pa.int32()),
            "ts": times,
            "__arrived": times.cast(pa.int64()),
        }
    )


def virtual(sql: str, rows: pa.Table, **options: Any) -> VirtualRun:
    stream = STREAM.format("iterable REPLAY BY ts")
    network = parse_network(stream + sql)
    run = VirtualRun(network, feeds={"s": [rows.drop_columns(["__arrived"])]}, rows_per_step=1, **options)
    run.run()
    return run


def test_work_behind_a_queue_costs_what_its_label_says() -> None:
    """002 Fig. 2: an update every 2 ticks, and 3 ticks of work on each that is taken."""
    rows = arriving(*((second, 1, second) for second in range(2, 14, 2)))
    run = virtual(QUERY.format(""), rows, cost=Costs(of={"project": 3 * SECOND}))
    found = [(each.now / SECOND, row["v"] // 2) for each in run.deliveries for row in each.rows.to_pylist()]
    # At 2, 5, 8, 11 it is free again; at 5 the update of 4 waits, at 8 that of 8 has just come in place of that of 6.
    assert found == [(5, 2), (8, 4), (11, 8), (14, 10), (17, 12)]


def test_a_run_says_how_its_queue_was_until_the_input_ended() -> None:
    rows = arriving(*((1 + number * 0.1, number % 20, number) for number in range(200)))
    run = virtual(QUERY.format(""), rows, cost=Costs(of={"project": SECOND}), sample_every=SECOND)
    watched = run.samples("q")
    assert latest(run.memory["q"]) == exact(200, 20), "what was left has been worked off"
    assert watched.metrics is not None and watched.metrics.waiting > 0 and watched.metrics.entered == 200
    assert [look.time / SECOND for look in watched.samples] == list(range(2, 22))
    assert watched.peak_waiting == 20 and 10 < sum(look.waiting for look in watched.samples) / 20 <= 20
    assert watched.queue.count == watched.application.count > 19 * 18, "a sample a key and look"
    assert 0 < watched.queue.mean < watched.queue.quantile(0.99) <= 20 * SECOND
    assert run.report().queues["q"].waiting == 0
    assert watched.keys is not None and len(watched.keys) == 20


def test_a_change_in_virtual_time_does_not_empty_a_queue() -> None:
    changes = changing(STREAM.format("iterable REPLAY BY ts") + QUERY.format(""))
    rows = arriving(*((1, key, key) for key in range(10)), (20, 0, 10))
    run = VirtualRun(
        changes.network,
        feeds={"s": [rows.drop_columns(["__arrived"])]},
        rows_per_step=1,
        cost=Costs(of={"project": SECOND}),
        changes=changes,
        scripted=[(3 * SECOND, "ADD QUERY other AS SELECT k FROM s")],
    )
    run.run()
    times = [each.now / SECOND for each in run.deliveries if each.query == "q"]
    assert times[:10] == list(range(2, 12)) and times[10] > 20
