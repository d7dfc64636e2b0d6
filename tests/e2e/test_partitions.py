"""Partitions that are declared ahead: on a kept checkpoint, and in a table that changes while the run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millrace as mr
from tests.e2e.commands import millrace, wait_for

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
    (folder / "in" / ".draft").write_text("\n".join(lines) + "\n")
    (folder / "in" / ".draft").rename(folder / "in" / f"{number}.csv")
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


@pytest.mark.parametrize("host", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_table_of_devices_is_refreshed_through_restarts(
    host: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if host == "spark":
        request.getfixturevalue("spark_session")
    devices = f"CREATE TABLE devices (id INT PRIMARY KEY) FROM csv OPTIONS (path '{tmp_path}/devices.csv');"
    clause = "VALUES FROM devices (id)"

    def run(**options: Any) -> mr.Handle:
        script = (devices + SCRIPT.format(clause=clause)).replace("path '", f"path '{tmp_path}/")
        return (
            mr.Network()
            .sql(script.replace(f"{tmp_path}/{tmp_path}", str(tmp_path)))
            .run(on=host, checkpoint=tmp_path / "state", **options)
        )

    (tmp_path / "devices.csv").write_text("id\n1\n")
    write(tmp_path, clause, 0, (1, "00:10:00"), (1, "00:11:30"))
    handle = run()
    wait_for(lambda: counted(tmp_path) == 1)
    (tmp_path / "devices.csv").write_text("id\n1\n2\n3\n")
    handle.refresh_table("devices")
    handle.stop()
    # What the table lists now was not read: devices 2 and 3 are waited for.
    (tmp_path / "devices.csv").write_text("id\n1\n2\n")
    write(tmp_path, clause, 1, (1, "00:14:00"), (1, "00:15:30"))
    run(until="available")
    assert counted(tmp_path) == 1
    # Device 3 has sent nothing and is listed no longer.
    write(tmp_path, clause, 2, (2, "00:11:40"), (2, "00:13:00"))
    handle = run()
    wait_for(lambda: handle.metrics().sources["readings"].received == 6)
    assert counted(tmp_path) == 1
    handle.refresh_table("devices")
    write(tmp_path, clause, 3, (2, "00:13:10"))
    wait_for(lambda: counted(tmp_path) == 3)
    assert handle.metrics().sources["readings"].late == 0
    handle.stop()
