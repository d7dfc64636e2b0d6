"""The sinks memory and console keep the last rows, and say how many were dropped."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

import millrace as mr
from millrace.errors import RequestError
from millrace.hosts.sinks import kept_rows
from millrace.hosts.sinks.kept_rows import KeptRows

ROWS = [{"a": number, "ts": "2026-01-01 00:00:00"} for number in range(100)]


def handle_of(sink: str = "memory", **options: object) -> mr.Handle:
    network = mr.Network()
    stream = network.stream("s", "a BIGINT, ts TIMESTAMP", time="ts", source=[ROWS[:70], ROWS[70:]])
    network.query("q", stream.select("a"), sink=sink, **options)
    return network.run(on="local", until="end")


@pytest.mark.parametrize("sink", ["memory", "console"])
def test_the_last_rows_are_kept_and_the_others_counted(sink: str, capsys: pytest.CaptureFixture[str]) -> None:
    handle = handle_of(sink, keep=40)
    with pytest.warns(UserWarning, match='the first 60 rows of query "q" are not kept any more'):
        assert handle.results("q").column("a").to_pylist() == list(range(60, 100))
    assert handle.dropped("q") == 60


def test_so_many_rows_are_kept_if_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept_rows.MOST_ROWS == 1_000_000
    monkeypatch.setattr(kept_rows, "MOST_ROWS", 30)
    assert handle_of().dropped("q") == 70
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert handle_of(keep="all").results("q").num_rows == 100


@pytest.mark.parametrize(
    ("options", "said"), [("keep 'some'", 'not "some"'), ("keep 0", 'not "0"'), ("path 'x'", "does not take path x")]
)
def test_wrong_options_are_refused_before_the_run(options: str, said: str) -> None:
    network = mr.Network()
    network.stream("s", "a BIGINT, ts TIMESTAMP", time="ts", source=ROWS)
    network.sql(f"CREATE SINK k TO memory OPTIONS ({options}); CREATE QUERY q INTO k AS SELECT a FROM s")
    with pytest.raises(RequestError, match=said):
        network.run(on="local", until="end")


def test_many_small_tables_are_dropped_whole_and_in_part() -> None:
    kept = KeptRows(5)
    for number in range(10):
        kept.append(pa.table({"n": [number, number]}))
    assert [row for each in kept for row in each.column("n").to_pylist()] == [7, 8, 8, 9, 9]
    assert kept.dropped == 15
