"""Partitions that are declared ahead, from the command line: also on a kept checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.commands import millrace

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE STREAM readings (device INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED PARTITIONED BY (device) {clause}
  FROM csv OPTIONS (path 'in');
CREATE SINK counts TO csv OPTIONS (path 'out');
CREATE QUERY per_minute INTO counts AS
  SELECT count(*) AS n FROM readings [RANGE 1 MINUTE SLIDE 1 MINUTE WA ts];
"""


def write(folder: Path, clause: str, number: int, *rows: tuple[int, str]) -> Path:
    """A file of readings, device and time of each, and the script."""
    (folder / "in").mkdir(exist_ok=True)
    lines = ["device,ts", *(f"{device},2024-01-01 {time}" for device, time in rows)]
    (folder / "in" / f"{number}.csv").write_text("\n".join(lines) + "\n")
    (folder / "readings.sql").write_text(SCRIPT.format(clause=clause))
    return folder / "readings.sql"


def counted(folder: Path) -> int:
    texts = (path.read_text().splitlines()[1:] for path in (folder / "out").glob("part-*.csv"))
    return sum(int(line.rpartition(",")[2]) for lines in texts for line in lines)


def test_a_device_is_declared_on_a_kept_checkpoint(tmp_path: Path) -> None:
    run = ["--on", "local", "--checkpoint", "state", "--available-now"]
    script = write(tmp_path, "VALUES (1)", 0, (1, "00:10:00"), (1, "00:11:30"))
    assert millrace("run", script, *run, folder=tmp_path).returncode == 0
    assert counted(tmp_path) == 1, "the bound is at 00:11:30"
    # The slow device is waited for: of those that follow none is late.
    write(tmp_path, "VALUES (1, 2)", 1, (1, "00:14:00"), (2, "00:11:40"), (2, "00:13:00"))
    ran = millrace("run", script, *run, folder=tmp_path)
    assert (ran.returncode, counted(tmp_path)) == (0, 3), ran.stderr
    assert "late" not in ran.stderr
