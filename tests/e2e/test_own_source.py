"""A source of a user's own: named by a stream, and found by the entry point of a package, on both hosts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import RunOn, millrace, millrace_process

_PACKAGE = '''
import pyarrow as pa
from millrace import PartitionSpan, Source, SourcePiece, UnreadPlace


class Squares(Source):
    """Squares of numbers, in two partitions; the number 3 cannot be read."""

    def spans(self):
        span = PartitionSpan(0, int(self.options["count"]))
        return {"even": span, "odd": span}

    def read(self, partition, start, stop):
        numbers = [2 * place + (partition == "odd") for place in range(start, stop)]
        good = [number for number in numbers if number != 3]
        columns = {
            "n": pa.array([number**2 for number in good], pa.int64()),
            "ts": pa.array([number * 1_000_000 for number in good], pa.timestamp("us", "UTC")),
        }
        arrays = [columns[field.name].cast(field.type) for field in self.schema]
        rows = pa.record_batch(arrays, schema=self.schema)
        yield SourcePiece(partition, rows, stop, tuple(UnreadPlace(1, "3", "is three") for n in numbers if n == 3))
'''
_QUERY = """
CREATE STREAM s (n BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM {source};
CREATE SINK o TO csv OPTIONS (path 'out');
CREATE QUERY q INTO o AS
  SELECT window_start, count(*) AS k, sum(n) AS total FROM s [RANGE 4 SECONDS SLIDE 4 SECONDS WA ts];
"""
_EXPECTED = ["0,3,5", "4,4,126", "8,2,145"]


def _results(folder: Path) -> list[str]:
    lines = [line for path in folder.glob("out/*.csv") for line in path.read_text().splitlines()[1:]]
    return sorted(f"{int(line[17:19])},{line.partition(',')[2]}" for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_source_that_a_stream_names_is_read(run_on: RunOn, host: str, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "squares.py").write_text(_PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    source = "python OPTIONS (source 'squares:Squares', count '5')"
    (tmp_path / "q.sql").write_text(_QUERY.format(source=source))
    ran = run_on(host, "q.sql", "--until-end", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert _results(tmp_path) == _EXPECTED
    assert "1 set aside" in ran.stderr or "1 quarantined" in ran.stderr or "is three" in ran.stderr


@pytest.mark.slow
def test_a_source_of_an_installed_package_is_found_by_its_entry_point(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "squares-1.dist-info").mkdir(parents=True)
    (site / "squares.py").write_text(_PACKAGE)
    (site / "squares-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: squares\nVersion: 1\n")
    (site / "squares-1.dist-info" / "entry_points.txt").write_text("[millrace.sources]\nsquares = squares:Squares\n")
    (tmp_path / "q.sql").write_text(_QUERY.format(source="squares OPTIONS (count '5')"))
    around = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2] / "src"), str(site)])}
    ran = millrace_process("run", "q.sql", "--on", "local", "--until-end", folder=tmp_path, settings=around)
    assert ran.returncode == 0, ran.stderr
    assert _results(tmp_path) == _EXPECTED
    # Without the package only Spark could know the format.
    refused = millrace("run", "q.sql", "--on", "local", "--until-end", folder=tmp_path)
    assert refused.returncode == 2
    assert 'comes from "squares", which only Spark can read' in refused.stderr
