"""What comes from Python becomes files, whole ones, that stay as long as they may be needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millrace as mr
from millrace.hosts.spark import feed_files
from millrace.hosts.spark.feeds import write_feed
from millrace.plan.nodes import Stream

SQL = """CREATE STREAM s (k STRING, n BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UPDATE KEY (k) FROM iterable;
CREATE QUERY q AS SELECT k, n FROM s"""
COLUMNS = ["k", "n", "ts"]


def stream() -> Stream:
    (found,) = mr.parse_network(SQL).streams()
    return found


def row(number: int) -> dict[str, Any]:
    return {"k": "a", "n": number, "ts": number}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_a_feed_that_is_cut_off_leaves_no_file_that_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_off(path: Path, format: str, rows: pa.Table) -> None:
        path.write_bytes(b"PAR1")
        raise KeyboardInterrupt

    write_feed([[row(1)]], stream(), COLUMNS, tmp_path)
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(feed_files, "write_file", cut_off)
        write_feed([[row(1)], [row(2)]], stream(), COLUMNS, tmp_path)
    assert names(tmp_path) == ["00000000.parquet"]
    assert pq.read_table(tmp_path / "00000000.parquet").column("n").to_pylist() == [1]
    write_feed([[row(1)], [row(2)]], stream(), COLUMNS, tmp_path)
    assert [pq.read_table(tmp_path / name).column("n").to_pylist() for name in names(tmp_path)] == [[1], [2]]
