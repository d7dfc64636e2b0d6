from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from millrace.connectors.files.file_options import read_options
from millrace.connectors.files.times.timestamps import TimeSpelling, timestamps
from millrace.errors import RequestError

BERLIN = TimeSpelling("iso", "Europe/Berlin")


def read(values: pa.Array, spelling: TimeSpelling = BERLIN) -> list[str | None]:
    found = timestamps(values, spelling).to_pylist()
    return [None if each is None else each.astimezone(dt.UTC).strftime("%m-%d %H:%M") for each in found]


def test_text_without_a_zone_is_of_the_streams_and_a_zone_of_its_own_wins() -> None:
    assert read(pa.array(["2024-01-01 12:00", None, "2024-07-01 12:00"])) == ["01-01 11:00", None, "07-01 10:00"]
    assert read(pa.array(["2024-07-01T12:00:00Z", "2024-07-01 12:00:00"])) == ["07-01 12:00", "07-01 10:00"]
    assert read(pa.array(["01.07.2024 12:00"]), TimeSpelling("dd.MM.yyyy HH:mm", "Europe/Berlin")) == ["07-01 10:00"]


def test_an_hour_that_occurs_twice_is_the_earlier_and_one_that_is_skipped_moves_on() -> None:
    assert read(pa.array(["2024-10-27 02:30", "2024-03-31 02:30"])) == ["10-27 00:30", "03-31 01:30"]


def test_times_of_parquet_are_of_the_zone_unless_they_have_one() -> None:
    noon = dt.datetime(2024, 7, 1, 12)
    assert read(pa.array([noon], pa.timestamp("ns"))) == ["07-01 10:00"]
    assert read(pa.array([noon], pa.timestamp("us", tz="UTC"))) == ["07-01 12:00"]


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"time_zone": "Berlin"}, 'there is no time zone "Berlin"'),
        ({"time_zone": "Europe/Berlin", "timestamp_format": "epoch_millis"}, "a time zone has no effect"),
        ({"time_zone": "Europe/Berlin", "timestamp_format": "yyyy-MM-dd HH:mmXXX"}, "a time zone has no effect"),
    ],
)
def test_a_zone_that_is_none_or_does_nothing_is_refused(options: dict[str, str], fact: str) -> None:
    with pytest.raises(RequestError, match=fact):
        read_options("csv", {"path": "x", **options})
