"""Windows of a zone and computed columns in Python, with restarts, and where rows are late by window."""

from __future__ import annotations

from pathlib import Path

import pytest

import millrace as mr
from millrace.hosts.run_options import HostName

HOUR = 3_600_000_000
BEFORE = 1_711_749_600_000_000
"""29 March 2024, 22:00 UTC; summer time began on the 31st."""
ROWS = [{"day": BEFORE // HOUR + hour, "v": hour} for hour in range(72)]


def network(late_by_window: bool = False) -> mr.Network:
    net = mr.Network()
    rows = [ROWS[at : at + 10] for at in range(0, len(ROWS), 10)]
    columns = "day BIGINT, v INT, ts TIMESTAMP AS timestamp_seconds(day * 3600)"
    s = net.stream("s", columns, time="ts", source=rows, late_by_window=late_by_window)
    days = s.window(range="1 day", zone="Europe/Berlin")
    net.query("days", days.agg(n="count(*)", least="min(v)"))
    return net.query("months", s.window(range="1 month", slide="1 month", offset="30 days").agg(n="count(*)"))


@pytest.mark.parametrize("host", ["local", "virtual"])
@pytest.mark.parametrize("late_by_window", [False, True])
def test_days_of_a_zone_have_its_hours(host: HostName, late_by_window: bool) -> None:
    handle = network(late_by_window).run(on=host, until="end")
    found = sorted(handle.results("days").to_pylist(), key=lambda row: row["window_start"])
    assert [(row["n"], row["least"]) for row in found] == [(1, 0), (24, 1), (23, 25), (24, 48)]
    hours = [(row["window_end"] - row["window_start"]).total_seconds() / 3600 for row in found]
    assert hours == [24, 24, 23, 24]
    # A month that begins on the 31st at midnight, UTC.
    assert sorted(row["n"] for row in handle.results("months").to_pylist()) == [26, 46]


def test_windows_of_a_zone_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    text = """CREATE STREAM s (day BIGINT, ts TIMESTAMP AS timestamp_seconds(day * 3600)) TIMESTAMP BY ts ORDERED
        FROM csv OPTIONS (path '{0}/in'); CREATE SINK o TO csv OPTIONS (path '{0}/out');
        INSERT INTO o SELECT window, count(*) AS n FROM s [RANGE 1 DAY SLIDE 1 DAY AT TIME ZONE 'Europe/Berlin'];"""
    (tmp_path / "in").mkdir()
    for number in range(0, 72, 9):
        lines = ["day", *(str(row["day"]) for row in ROWS[number : number + 9])]
        (tmp_path / "in" / f"{number:02}.csv").write_text("\n".join(lines))
        ends = number == 63
        net = mr.Network().sql(text.format(tmp_path))
        net.run(on="local", until="end" if ends else "available", checkpoint=str(tmp_path / "c"))
    files = [path.read_text().splitlines()[1:] for path in (tmp_path / "out").glob("*.csv")]
    counts = [line.split(",")[-1] for lines in files for line in lines]
    assert sorted(map(int, counts)) == [1, 23, 24, 24]


@pytest.mark.parametrize("host", ["local", "virtual"])
def test_a_row_whose_time_comes_out_as_null_is_set_aside_and_counted(host: HostName) -> None:
    net = mr.Network()
    rows = [{"d": "20240101"}, {"d": "soon"}, {"d": "20240102"}]
    s = net.stream("s", "d STRING, ts TIMESTAMP AS to_timestamp(d, 'yyyyMMdd')", time="ts", source=[rows])
    handle = net.query("q", s.select("d")).run(on=host, until="end")
    assert handle.results("q").column("d").to_pylist() == ["20240101", "20240102"]
    assert handle.metrics().sources["s"].quarantined == 1
