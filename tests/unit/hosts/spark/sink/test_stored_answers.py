"""Of update queries tasks also write the latest answers, by batch and partition; the driver merges them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from toys import ToyWriter

import millrace as mr
from millrace.connectors.pushed import Pushed
from millrace.hosts.answers.answer_files import folder_of, stored_answers
from millrace.hosts.spark.commit_log.answer_index import kept_answers
from millrace.hosts.spark.commit_log.commit_log import CommitLog
from millrace.hosts.spark.commit_log.plan_log import PlanLog, Version
from millrace.hosts.spark.exchange.rows import pack
from millrace.hosts.spark.sink.destinations import Destinations
from millrace.hosts.spark.sink.network_sink import TaskOutput
from millrace.hosts.spark.source.python_streams import Polls, has_read
from millrace.plan.nodes.query_network import Query, QueryNetwork

REPORT = {"sources": {"a": {"files": 1}}, "wake_at": None, "wants": {}, "metrics": {}, "now": 5, "plan": 1}
SQL = """CREATE STREAM s (k STRING, n BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM iterable;
CREATE QUERY q AS SELECT k, n FROM s"""


def queries(sql: str = SQL) -> tuple[Query, ...]:
    return mr.parse_network(sql).queries


def committed(folder: Path, sinks: Destinations, batch: int, *partitions: list[tuple[str, int]]) -> None:
    """A micro-batch with results (k, n) in each partition."""
    PlanLog(folder / "plans").write(1, Version(QueryNetwork(()), sinks.specs))
    tasks: list[TaskOutput] = []
    schema = pa.schema([("output", pa.string()), ("blob", pa.binary()), ("note", pa.string())])
    for number, rows in enumerate(partitions):
        told: list[dict[str, Any]] = [{"output": "__report", "blob": None, "note": json.dumps(REPORT)}]
        if rows:
            blob = pack(pa.table({"k": [k for k, _ in rows], "n": [n for _, n in rows]}))
            told.append({"output": "q", "blob": blob, "note": ""})
        task = writer(folder).write(iter([pa.RecordBatch.from_pylist(told, schema=schema)]))
        tasks.append(replace(task, partition=number))
    writer(folder).commit(list(tasks), batch)


def writer(folder: Path) -> ToyWriter:
    return ToyWriter({"folder": str(folder)})


def answers(sinks: Destinations, query: str = "q") -> dict[str, int]:
    return {row["k"]: row["n"] for row in sinks.sinks.answers.of(query).table().to_pylist()}


def kept(folder: Path) -> dict[str, int]:
    log = CommitLog(folder / "commits")
    found = stored_answers(folder_of(folder, "q"), kept_answers(folder, log))
    return {} if found is None else {row["k"]: row["n"] for row in found.table().to_pylist()}


def test_answers_stand_when_their_micro_batch_is_committed_and_outlive_the_run(tmp_path: Path) -> None:
    sinks = Destinations(tmp_path, queries(), fresh=True)
    expected: dict[str, int] = {}
    for batch in range(40):
        rows = [[("a", batch), ("a", batch + 100)], [(f"k{batch % 7}", batch)]]
        committed(tmp_path, sinks, batch, *rows)
        sinks.put_answers(CommitLog(tmp_path / "commits").newest() or {})
        expected |= {"a": batch + 100, f"k{batch % 7}": batch}
        assert answers(sinks) == expected
    assert kept(tmp_path) == expected
    assert len(list(folder_of(tmp_path, "q").iterdir())) < 40, "files are merged"
    again = Destinations(tmp_path, queries(), fresh=False)
    assert answers(again) == expected


def test_a_replayed_micro_batch_replaces_what_it_gave(tmp_path: Path) -> None:
    sinks = Destinations(tmp_path, queries(), fresh=True)
    committed(tmp_path, sinks, 0, [("a", 1)], [("b", 1)])
    committed(tmp_path, sinks, 0, [("a", 2)], [])
    assert kept(tmp_path) == {"a": 2}
    committed(tmp_path, sinks, 1, [("a", 3)])
    assert kept(tmp_path) == {"a": 3}
    (tmp_path / "commits" / "00000001.json").unlink()
    assert kept(tmp_path) == {"a": 2}, "what is not committed does not count"


def test_an_aborted_micro_batch_leaves_nothing(tmp_path: Path) -> None:
    sinks = Destinations(tmp_path, queries(), fresh=True)
    PlanLog(tmp_path / "plans").write(1, Version(QueryNetwork(()), sinks.specs))
    schema = pa.schema([("output", pa.string()), ("blob", pa.binary()), ("note", pa.string())])
    told = [
        {"output": "__report", "blob": None, "note": json.dumps(REPORT)},
        {"output": "q", "blob": pack(pa.table({"k": ["a"], "n": [1]})), "note": ""},
    ]
    task = writer(tmp_path).write(iter([pa.RecordBatch.from_pylist(told, schema=schema)]))
    assert task.latest
    writer(tmp_path).abort([task], 0)
    assert list(folder_of(tmp_path, "q").iterdir()) == []


def test_a_query_that_replaces_another_has_none_of_its_answers_also_after_a_restart(tmp_path: Path) -> None:
    sinks = Destinations(tmp_path, queries(), fresh=True)
    committed(tmp_path, sinks, 0, [("a", 1)])
    sinks.put_answers(CommitLog(tmp_path / "commits").newest() or {})
    other = queries(SQL.replace("SELECT k, n FROM s", "SELECT k, n FROM s WHERE n > 5"))
    sinks.prepare(other)()
    assert answers(sinks) == {}
    assert answers(Destinations(tmp_path, other, fresh=False)) == {}


def test_a_renamed_query_keeps_its_answers(tmp_path: Path) -> None:
    sinks = Destinations(tmp_path, queries(), fresh=True)
    committed(tmp_path, sinks, 0, [("a", 1)])
    sinks.put_answers(CommitLog(tmp_path / "commits").newest() or {})
    renamed = queries(SQL.replace("QUERY q", "QUERY r"))
    sinks.prepare(renamed, {"r": "q"})()
    assert answers(sinks, "r") == {"a": 1}
    assert answers(Destinations(tmp_path, renamed, fresh=False), "r") == {"a": 1}
    assert not folder_of(tmp_path, "q").exists()


def test_what_is_pushed_becomes_files_that_sort_after_all_earlier_ones(tmp_path: Path) -> None:
    (stream,) = mr.parse_network(SQL).streams()
    pushed, polls = Pushed(), Polls()
    connector = polls.add(pushed, stream, ["k", "n", "ts"], tmp_path / "feed")
    assert connector.options == {"path": str(tmp_path / "feed")}
    row = {"k": "a", "n": 1, "ts": 5}
    pushed.push([row])
    pushed.push([row, row])
    polls.look()
    assert [path.name for path in (tmp_path / "feed").iterdir()] == ["00000000.parquet"]
    again, after = Polls(), Pushed()
    again.add(after, stream, ["k", "n", "ts"], tmp_path / "feed")
    after.push(row)
    assert again.ask(["s", "t"]) == {"s": 2}
    assert not has_read({"sources": {"s": {"files": 1}}}, {"s": 2}) and has_read({}, {})
    assert not again.closed()
    after.close()
    assert again.closed()
