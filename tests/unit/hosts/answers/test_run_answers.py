"""The latest answers of a run: what is removed when, as queries leave and come back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from millrace.hosts.answers.run_answers import RunAnswers
from millrace.kernel.elements import TIME, Batch
from millrace.language.script import parse_network

QUERIES = parse_network(
    "CREATE STREAM s (k STRING, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM iterable;"
    "CREATE QUERY q AS SELECT k, v FROM s;"
).queries


def test_a_query_that_leaves_and_comes_back_within_an_epoch_keeps_its_files(tmp_path: Path) -> None:
    answers = committed(tmp_path)
    answers.prepare([])()
    answers.prepare(QUERIES)()
    answers.put("q", [batch("a", 2)])
    answers.stage(1)
    answers.sweep()
    again = RunAnswers(QUERIES, tmp_path, answers.kept())
    assert again.of("q").table().to_pylist() == [{"k": "a", "v": 2}]


def test_answers_of_a_query_that_a_run_does_not_have_stay_until_its_first_commit(tmp_path: Path) -> None:
    kept = committed(tmp_path).kept()
    without = RunAnswers([], tmp_path, kept)
    assert RunAnswers(QUERIES, tmp_path, kept).of("q").table().num_rows == 1
    without.stage(1)
    without.sweep()
    assert not list((tmp_path / "latest").iterdir())


def committed(folder: Path) -> RunAnswers:
    answers = RunAnswers(QUERIES, folder)
    answers.put("q", [batch("a", 1)])
    answers.stage(0)
    answers.sweep()
    return answers


def batch(key: str, value: int) -> Batch:
    return Batch(pa.record_batch({"k": [key], "v": [value], TIME: [value]}))
