from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.errors import RequestError
from millrace.hosts.spark.exchange.buckets import assign, bucket_ids

IDS = bucket_ids(16)


def buckets(*columns: pa.Array) -> list[int]:
    return [int(bucket) for bucket in assign(list(columns), IDS)]


def test_the_hash_is_the_one_that_checkpoints_were_written_with() -> None:
    assert buckets(pa.array(["", "a", "srcIP", "日本", None])) == [0, 37, 2, 4, 7]
    assert buckets(pa.array([0, 1, -1, 2**62, None])) == [0, 4, 35, 37, 7]
    assert buckets(pa.array(["a", "b"]), pa.array([1, 2])) == [16, 2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([5, -7, None], pa.int32()), pa.array([5, -7, None], pa.int64())),
        (pa.array([5, 7], pa.uint8()), pa.array([5.0, 7.0])),
        (pa.array([0.0, float("nan")]), pa.array([-0.0, -float("nan")])),
        (pa.array([Decimal("5.00"), Decimal("1.25")]), pa.array([5.0, 1.25])),
        (pa.array(["a", None, "bc"]), pa.array(["a", None, "bc"], pa.large_string())),
        (pa.array(["a", None, "bc"]), pa.array(["a", None, "bc"]).dictionary_encode()),
        (pa.array(["x", "a", "bc"]).slice(1), pa.array(["a", "bc"])),
        (pa.array([None, None], pa.string()), pa.array([None, None], pa.int64())),
        (pa.array([None, None], pa.null()), pa.array([None, None], pa.string())),
        (pa.array([datetime(2024, 1, 1)], pa.timestamp("ms")), pa.array([datetime(2024, 1, 1, tzinfo=UTC)])),
    ],
    ids=str,
)
def test_equal_keys_meet_whatever_type_they_come_in(one: pa.Array, other: pa.Array) -> None:
    assert buckets(one) == buckets(other)


@given(st.lists(st.one_of(st.none(), st.text())), st.integers(0, 20))
def test_a_row_s_bucket_does_not_depend_on_the_rows_around_it(values: list[str | None], cut: int) -> None:
    whole = pa.array(values, pa.string())
    assert buckets(whole) == [*buckets(whole[:cut]), *buckets(whole[cut:])]


@pytest.mark.parametrize("values", [range(32_000), [f"10.0.{n // 256}.{n % 256}" for n in range(32_000)]])
def test_keys_spread_evenly(values: object) -> None:
    _, counts = np.unique(assign([pa.array(values)], IDS), return_counts=True)
    assert len(counts) == len(IDS)
    assert counts.min() > 0.9 * 2000
    assert counts.max() < 1.1 * 2000


def test_without_keys_all_rows_go_to_the_first_bucket() -> None:
    assert assign([], IDS, rows=3).tolist() == [IDS[0]] * 3


def test_dates_and_booleans_can_be_keys() -> None:
    assert len(buckets(pa.array([date(2024, 1, 1), None]), pa.array([True, False]))) == 2


def test_a_nested_key_is_refused() -> None:
    with pytest.raises(RequestError, match='a key of type "struct'):
        buckets(pa.array([{"a": 1}]))
