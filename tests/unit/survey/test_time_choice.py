from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.survey.column_kinds import column_kind
from millrace.survey.time_choice import time_choices


def chosen(**columns: list[object]) -> list[tuple[str, str]]:
    arrays = {name: pa.chunked_array([pa.array(values)]) for name, values in columns.items()}
    kinds = [column_kind(name, column) for name, column in arrays.items()]
    return [(each.column, each.format) for each in time_choices(arrays, kinds)]


@pytest.mark.parametrize(
    ("values", "format"),
    [
        (["2024-01-02", "2024-01-03"], "iso"),
        (["2024-01-02T03:04:05.123456789Z", "2024-01-02 03:04"], "iso"),
        (["31/12/2024 23:59", "01/01/2025 00:01"], "dd/MM/yyyy HH:mm"),
        (["12/31/2024", "01/01/2025"], "MM/dd/yyyy"),
        (["1.2.2024 7:30", "12.11.2024 17:30"], "d.M.yyyy H:mm"),
        (["20240102 030405", "20240103 030405"], "yyyyMMdd HHmmss"),
        (["20240102T030405", "20240103T030405"], "yyyyMMdd'T'HHmmss"),
        (["02/Jan/2024:03:04:05 +0100", "03/Jan/2024:03:04:05 +0100"], "dd/MMM/yyyy:HH:mm:ss Z"),
        (["01/02/2024 03:04:05 PM", "01/13/2024 03:04:05 AM"], "MM/dd/yyyy hh:mm:ss a"),
        (["1704164645.25", "1704164646"], "epoch_seconds"),
        ([1_704_164_645_000, 1_704_164_646_000], "epoch_millis"),
        ([1_704_164_645_000_000_000, 1_704_164_645_000_000_001], "epoch_nanos"),
    ],
)
def test_times_are_recognised_as_files_write_them(values: list[object], format: str) -> None:
    assert chosen(ts=values) == [("ts", format)]


def test_numbers_are_times_only_if_their_name_or_order_says_so() -> None:
    assert chosen(account=[1_700_000_000, 1_600_000_000, 1_500_000_000, 1_800_000_000, 1_300_000_000]) == []
    assert chosen(price=[1, 2, 3], zip=["01234", "04567", "20001"]) == []


def test_the_time_of_the_event_goes_before_that_of_its_receipt_and_before_one_with_nulls() -> None:
    at = ["2024-01-01 00:00:01", "2024-01-01 00:00:02"]
    assert [name for name, _ in chosen(received_at=at, event_time=at)] == ["event_time", "received_at"]
    assert next(name for name, _ in chosen(event_time=[at[0], None], received_at=at)) == "received_at"
