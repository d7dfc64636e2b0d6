"""Times in files by a pattern."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import millrace as mr
from millrace.connectors.files.times.timestamp_patterns import timestamp_pattern
from millrace.errors import MillraceError, RequestError
from millrace.hosts.run_options import HostName

BEGIN = datetime(1969, 12, 30, 23, 58, 59, 250_000)
TIMES = [BEGIN + timedelta(days=37 * number, hours=5 * number, minutes=number) for number in range(50)]


@pytest.mark.parametrize(
    ("pattern", "spelling", "unit"),
    [
        ("dd/MM/yyyy HH:mm:ss.SSSSSS", "%d/%m/%Y %H:%M:%S.%f", timedelta(microseconds=1)),
        ("yyyyMMdd'T'HHmmss", "%Y%m%dT%H%M%S", timedelta(seconds=1)),
        ("d MMM yyyy, h:mm a", "%d %b %Y, %I:%M %p", timedelta(minutes=1)),
        ("uuuu-MM-dd'T'HH:mm:ssXXX", "%Y-%m-%dT%H:%M:%S+00:00", timedelta(seconds=1)),
        ("HH 'o''clock', yyyy-M-d", "%H o'clock, %Y-%m-%d", timedelta(hours=1)),
    ],
)
def test_times_are_read_as_python_writes_them(pattern: str, spelling: str, unit: timedelta) -> None:
    text = pa.array([*(each.strftime(spelling) for each in TIMES), None])
    found = timestamp_pattern(pattern).read(text).cast(pa.timestamp("us")).to_pylist()
    assert found == [*(each - (each - datetime.min) % unit for each in TIMES), None]


@pytest.mark.parametrize("text", ["31/02/2024", "1/2/2024", "01/13/2024", "01/02/2024 x", "x"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid):
        timestamp_pattern("dd/MM/yyyy").read(pa.array(["01/02/2024", text]))


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("HH:mm yyyy", "no month or no day"),
        ("dd/MM/yyyy QQ", '"QQ" is no field'),
        ("dd/MM/yyyy hh:mm", "AM or PM"),
        ("dd/MM/yyyy yyyy", "the year twice"),
    ],
)
def test_a_wrong_pattern_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(RequestError, match=reason):
        timestamp_pattern(pattern)


@pytest.mark.parametrize("host", ["local", "virtual"])
def test_csv_and_json_are_read_by_a_pattern(host: HostName, tmp_path: Path) -> None:
    rows = [f"{day:02}/03/2024 1{day}:30" for day in range(1, 9)]
    (tmp_path / "a.csv").write_text("\n".join(["ts", *rows]))
    (tmp_path / "b.json").write_text("\n".join(json.dumps({"ts": each}) for each in rows))
    net = mr.Network(variables={"folder": tmp_path})
    for format, name in (("csv", "a.csv"), ("json", "b.json")):
        net.sql(
            f"CREATE STREAM {format}_times (ts TIMESTAMP) TIMESTAMP BY ts ORDERED FROM {format} "
            f"OPTIONS (path '${{folder}}/{name}', timestamp_format 'dd/MM/yyyy HH:mm');"
            f"CREATE QUERY {format}_days AS SELECT ts FROM {format}_times"
        )
    handle = net.run(on=host, until="end")
    for query in ("csv_days", "json_days"):
        assert [each["ts"].strftime("%d/%m/%Y %H:%M") for each in handle.results(query).to_pylist()] == rows


def test_a_cell_that_does_not_fit_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts\n01/03/2024\n2024-03-02\n")
    net = mr.Network()
    options = {"path": tmp_path / "a.csv", "timestamp_format": "dd/MM/yyyy"}
    s = net.stream("s", "ts TIMESTAMP", time="ts", source="csv", **options)
    with pytest.raises(MillraceError, match="2024-03-02"):
        net.query("q", s).run(on="local", until="end")
