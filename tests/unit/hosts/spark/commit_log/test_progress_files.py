"""What a micro-batch says and keeps of partitions and groups is what has changed in it, and nothing is forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from staged import Staged

from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.progress_files import ProgressFiles
from millrace.hosts.spark.source.stream_files import FileScan
from millrace.hosts.spark.stage.stage import _CACHED
from millrace.kernel.progress.partition_progress import PartitionProgress
from millrace.kernel.progress.partitioned_order import PerGroup
from millrace.language import parse_network
from millrace.plan.nodes.query_network import QueryNetwork
from millrace.testing.hosts import in_memory

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
ORDERS = {"groups": "PUNCTUATED BY until PER (k)", "partitions": "ORDERED PARTITIONED BY (k)"}
COUNTS = "SELECT k, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k"


def network(order: str, *queries: str) -> QueryNetwork:
    columns = "(k STRING, ts TIMESTAMP, until TIMESTAMP)"
    streams = [
        f"CREATE STREAM s {columns} TIMESTAMP BY ts {ORDERS[order]} FROM parquet OPTIONS (path 'none');",
        f"CREATE STREAM t {columns} TIMESTAMP BY ts ORDERED FROM parquet OPTIONS (path 'none');",
    ]
    named = [f"CREATE QUERY q{number} AS {query};" for number, query in enumerate(queries or (COUNTS,))]
    return in_memory(parse_network("\n".join([*streams, *named])))


def rows(*pairs: tuple[str, int]) -> pa.Table:
    """Rows of a group and a second each, which is also what they promise."""
    times = pa.array([second * SECOND for _, second in pairs], pa.int64()).cast(TIMESTAMP)
    return pa.table({"k": [key for key, _ in pairs], "ts": times, "until": times})


def devices(count: int, second: int) -> pa.Table:
    return rows(*((f"device {number}", second) for number in range(count)))


def after(folder: Path, order: str, groups: int) -> tuple[int, int, int, int]:
    """Bytes of the notes, manifests and record of a micro-batch in which two of many groups change, and of its run."""
    staged = Staged(network(order), folder)
    staged.batch({"s": [devices(groups, 1)]}, now=1)
    staged.batch({"s": [devices(2, 2)]}, now=2)
    notes = sum(len(row.note) for row in staged._exchanged("s", [devices(2, 3)], FileScan(3, 3, 3, all=True)))
    staged.read["s"] -= 1
    before = set((folder / "commits" / "progress").iterdir())
    staged.batch({"s": [devices(2, 3)]}, now=3)
    written = sum(path.stat().st_size for path in set((folder / "commits" / "progress").iterdir()) - before)
    manifests = sum(len(each["", 0][0]) for state in staged.states for each in state.values.values())
    return notes, manifests, len(json.dumps(staged.record)), written


@pytest.mark.parametrize("order", ORDERS)
def test_a_micro_batch_costs_what_has_changed_however_many_groups_there_are(order: str, tmp_path: Path) -> None:
    few, many = (after(tmp_path / str(groups), order, groups) for groups in (20, 2000))
    for less, more in zip(few, many, strict=True):
        # Numbers have more digits, and there may be one run more.
        assert more < less + 500


def test_a_worker_that_restores_a_bucket_tells_of_the_groups_that_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    news = PerGroup.group_promises

    def counted(order: PerGroup) -> Any:
        told.append(0 if (found := news(order)) is None else found.keys.num_rows)
        return found

    monkeypatch.setattr(PerGroup, "group_promises", counted)
    staged = Staged(network("groups"), tmp_path)
    staged.batch({"s": [devices(500, 1)]}, now=1)
    assert max(told) == 500
    told.clear()
    staged.restart()
    staged.batch({"s": [devices(2, 2)]}, now=2)
    assert max(told) == 2


@pytest.mark.parametrize("order", ORDERS)
def test_a_replayed_micro_batch_begins_where_the_first_attempt_did(order: str, tmp_path: Path) -> None:
    staged = Staged(network(order), tmp_path)
    for second in (1, 2, 3):
        staged.batch({"s": [devices(30, second)]}, now=second)
    saved = staged.saved()
    first = staged.batch({"s": [devices(3, 14), devices(30, 15)]}, now=4)
    known = answers(staged)
    staged.back_to(saved)
    assert staged.batch({"s": [devices(3, 14), devices(30, 15)]}, now=4) == first
    assert answers(staged) == known
    assert first["q0"], "promises of all groups close windows"


def answers(staged: Staged) -> dict[str, int]:
    """What the record says of each group."""
    progress_files = PartitionProgress()
    known = ProgressFiles(staged.folder / "commits").whole(staged.record["sources"]["s"])
    progress_files.restore(known["order"]["partitions"])
    return dict(zip(progress_files.names, progress_files.allowed.tolist(), strict=True))


@pytest.mark.slow
def test_a_partition_that_is_silent_for_long_still_holds_the_bound(tmp_path: Path) -> None:
    staged = Staged(network("partitions"), tmp_path)
    staged.batch({"s": [rows(("slow", 1), ("a", 1), ("b", 1))]}, now=1)
    for number in range(2, 40):
        staged.batch({"s": [rows(("ab"[number % 2], number))]}, now=number)
        if number % 5 == 0:
            staged.restart()
        if number % 7 == 0:
            assert staged.batch({}, now=number, control=True) == {}
    assert staged.record["sources"]["s"]["bound"] == SECOND
    assert answers(staged) == {'["slow"]': SECOND, '["a"]': 38 * SECOND, '["b"]': 39 * SECOND}
    assert len(staged.record["sources"]["s"]["order"]["runs"]) < 4, "runs of similar size are merged"


@pytest.mark.parametrize("woken", [False, True], ids=["with rows", "woken first"])
def test_a_level_that_comes_to_read_a_stream_learns_of_all_its_partitions(tmp_path: Path, woken: bool) -> None:
    counts = "(SELECT k, count(*) AS n FROM t [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k)"
    later = f"""
        SELECT c.n, count(*) AS m FROM {counts} AS c [RANGE 10 SECONDS], s [RANGE 10 SECONDS]
        WHERE c.n = length(s.k) GROUP BY c.n, date_trunc('minute', s.ts)
    """
    before, both = network("partitions"), network("partitions", COUNTS, later)
    staged = Staged(before, tmp_path, stages=2)
    staged.batch({"s": [rows(("slow", 1), ("a", 1))]}, now=1)
    staged.change(both)
    assert {each.level for each in staged.plan.exchanges() if each.stream.name == "s"} == {1, 2}
    if woken:
        staged.batch({}, now=2, control=True)
    staged.batch({"s": [rows(("a", 500))], "t": [rows(("a", 500))]}, now=3)
    edges = [bucket.edges["s"] for (folder, _, _), (_, bucket) in _CACHED.items() if folder == str(tmp_path)]
    assert len(edges) == 2 * len(staged.buckets)
    for edge in edges:
        assert [(part.values, part.bound) for part in edge.order.slowest(9)] == [
            (("slow",), SECOND),
            (("a",), 500 * SECOND),
        ]


def test_pruning_drops_the_runs_on_which_no_record_stands(tmp_path: Path) -> None:
    log, order = CommitLog(tmp_path), {"runs": [], "partitions": []}
    for batch in range(6):
        progress_files = PartitionProgress()
        progress_files.see(progress_files.numbers_of([f"k{batch}"]), pa.array([batch]).to_numpy(), now=batch)
        known = {"files": batch + 1, "order": {**order, "partitions": [progress_files.whole()]}}
        sources = log.progress_files.save_changed({"s": known, "t": {"files": 1}})
        order = sources["s"]["order"]
        log.write(batch, {"sources": sources})
    log.prune(keep=2)
    kept = [record["sources"]["s"]["order"] for _, record in log.records()]
    needed = {run for each in kept for run in (*each["runs"], *each["from"])}
    assert {path.name for path in log.progress_files.folder.iterdir()} == needed
    whole = PartitionProgress()
    whole.restore(log.progress_files.whole(log.source("s", 6))["order"]["partitions"])
    assert sorted(whole.names) == [f"k{batch}" for batch in range(6)]
