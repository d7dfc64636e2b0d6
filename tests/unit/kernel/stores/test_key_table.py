from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.columns import hashing
from millrace.kernel.state import Changes
from millrace.kernel.stores.key_table import KeyTable
from tests.unit.kernel.saved_segments import SavedSegments

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAN = float("nan")


def rows_of(values: Iterable[Any], kind: pa.DataType | None = None, name: str = "k") -> pa.RecordBatch:
    return pa.record_batch({name: pa.array(list(values), kind)})


def many(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.RecordBatch:
    """The same values often enough to be looked up as columns, not one by one."""
    return rows_of(list(values) * 200, kind)


def whole(*saves: Changes) -> Changes:
    """All segments that several saves leave, with the note of the last."""
    segments = SavedSegments()
    return [segments.after(save) for save in saves][-1]


def test_keys_are_numbered_as_they_are_first_seen() -> None:
    table = KeyTable(["k"])
    assert table.numbers(rows_of(["b", "a", "b"])).tolist() == [0, 1, 0]
    assert table.numbers(rows_of(["c", "a", "d", "c"])).tolist() == [2, 1, 3, 2]
    assert table.keys().column("k").to_pylist() == ["b", "a", "c", "d"]
    assert table.keys(np.array([3, 0, 3])).column("k").to_pylist() == ["d", "b", "d"]
    assert len(table) == 4


KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["", "a", None, "ab", "b"]),
    "large text": (pa.large_string(), ["x", None, "xx"]),
    "bytes": (pa.binary(), [b"", None, b"\x00", b"\x00\x00"]),
    "whole": (pa.int32(), [0, -1, None, 7]),
    "unsigned": (pa.uint64(), [0, 2**63 + 1, None]),
    "fraction": (pa.float64(), [0.5, NAN, None, 0.0, 5.0]),
    "short fraction": (pa.float32(), [0.5, NAN, None]),
    "yes or no": (pa.bool_(), [True, None, False]),
    "decimal": (pa.decimal128(10, 2), [Decimal("1.50"), None, Decimal("-2.00")]),
    "instant": (pa.timestamp("us", "UTC"), [NOON, None, NOON + timedelta(microseconds=1)]),
    "fine instant": (pa.timestamp("ns"), [1, None, 2, 1001]),
    "day": (pa.date32(), [date(2026, 1, 1), None, date(1960, 1, 1)]),
    "time of day": (pa.time64("us"), [time(1), None, time(2)]),
    "length": (pa.duration("us"), [timedelta(1), None, timedelta(0)]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", None, "b"]),
    "nothing": (pa.null(), [None]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_of_any_kind_has_one_number_alone_and_among_many(kind: str) -> None:
    typed, values = KINDS[kind]
    expected = list(range(len(values)))
    table = KeyTable(["k"])
    assert table.numbers(many(values, typed)).tolist() == expected * 200
    assert [int(table.numbers(rows_of([value], typed))[0]) for value in values] == expected
    assert table.find(rows_of(values, typed)).tolist() == expected
    one_by_one = KeyTable(["k"])
    assert [int(one_by_one.numbers(rows_of([value], typed))[0]) for value in values] == expected
    assert one_by_one.numbers(many(values, typed)).tolist() == expected * 200
    assert len(table) == len(one_by_one) == len(values)


def test_zeros_are_equal_whatever_their_sign_and_so_are_all_nans() -> None:
    for repeat in (1, 200):
        table = KeyTable(["k"])
        odd = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
        assert table.numbers(rows_of([0.0, -0.0, NAN, odd] * repeat)).tolist() == [0, 0, 1, 1] * repeat
        assert [int(table.numbers(rows_of([value]))[0]) for value in (-0.0, 0.0, odd, NAN)] == [0, 0, 1, 1]
        assert len(table._recent) == 2
        assert str(table.keys(np.array([0])).column("k")[0]) == "0.0"


def test_several_columns_make_one_key() -> None:
    table = KeyTable(["a", "b"])
    rows = pa.record_batch({"b": ["x", "y", None, "x"], "v": [1, 2, 3, 4], "a": [1, 1, 1, 1]})
    assert table.numbers(rows).tolist() == [0, 1, 2, 0]
    assert table.numbers(pa.concat_batches([rows] * 100)).tolist() == [0, 1, 2, 0] * 100
    assert table.keys().to_pylist() == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 1, "b": None}]


def test_without_columns_there_is_one_key() -> None:
    table = KeyTable([])
    assert table.find(rows_of([1])).tolist() == [-1] and len(table) == 0
    assert table.numbers(rows_of([])).tolist() == [] and len(table) == 0
    assert table.numbers(rows_of([5, 6, 7])).tolist() == [0, 0, 0]
    assert (len(table), table.keys().num_rows, table.keys().num_columns) == (1, 1, 0)
    restored = KeyTable([])
    restored.restore(whole(table.changes()))
    assert len(restored) == 1


def test_an_empty_table_has_its_columns() -> None:
    table = KeyTable(["a", "b"])
    assert table.keys().column_names == ["a", "b"] and table.keys().num_rows == 0
    assert (
        table.numbers(pa.record_batch({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})).tolist() == []
    )


def test_looking_for_keys_adds_none() -> None:
    table = KeyTable(["k"])
    table.numbers(rows_of([1]))
    assert table.find(rows_of([2, 1])).tolist() == [-1, 0]
    assert table.find(many([1, 2])).tolist() == [0, -1] * 200
    assert len(table) == 1
    assert table.numbers(rows_of([3, 2])).tolist() == [1, 2]


@pytest.mark.parametrize("different", [1, 2, 7])
def test_keys_that_share_a_hash_have_different_numbers(monkeypatch: pytest.MonkeyPatch, different: int) -> None:
    exact = hashing.hashes
    monkeypatch.setattr(hashing, "hashes", lambda columns, count=None: exact(columns, count) % np.uint64(different))
    values = [f"key {number}" for number in range(300)]
    table = KeyTable(["k"])
    table.numbers(rows_of(values[:40]))
    assert table.numbers(rows_of(values)).tolist() == list(range(300))
    assert table.numbers(rows_of(values[::-1])).tolist() == list(range(300))[::-1]
    assert table.find(rows_of(["other"])).tolist() == [-1]
    restored = KeyTable(["k"])
    restored.restore(whole(table.changes()))
    assert restored.find(rows_of(values)).tolist() == list(range(300))


def test_the_index_grows_with_the_keys() -> None:
    table = KeyTable(["k"])
    numbers = np.arange(20_000)
    for some in np.array_split(numbers, 37):
        assert table.numbers(rows_of(some * 1_000_003)).tolist() == some.tolist()
    assert np.array_equal(table.find(rows_of(numbers[::-1] * 1_000_003)), numbers[::-1])
    assert table.nbytes < 20_000 * 100


def test_a_table_that_goes_on_from_saves_gives_the_same_numbers() -> None:
    table, saves = KeyTable(["k"]), []
    for start in range(0, 400, 40):
        table.numbers(rows_of([f"key {number}" for number in range(start, start + 40)]))
        saves.append(table.changes())
    restored = KeyTable(["k"])
    restored.restore(whole(*saves))
    asked = rows_of([f"key {number}" for number in range(450)])
    assert restored.numbers(asked).tolist() == table.numbers(asked).tolist() == list(range(450))
    assert restored.keys().to_pydict() == table.keys().to_pydict()


def test_a_save_writes_what_is_new() -> None:
    table = KeyTable(["k"])
    table.numbers(rows_of(range(10_000)))
    assert sum(added.num_rows for added in table.changes().added.values()) == 10_000
    table.numbers(rows_of(range(10_000)))
    assert not table.changes().added
    written = 0
    for number in range(10_000, 11_000):
        table.numbers(rows_of([number]))
        save = table.changes()
        written += sum(added.num_rows for added in save.added.values())
    assert written < 1000 * 14


def test_more_keys_than_are_remembered_by_value_keep_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millrace.kernel.stores.key_table._RECENT", 5)
    table = KeyTable(["k"])
    for _ in range(3):
        assert [int(table.numbers(rows_of([value]))[0]) for value in range(20)] == list(range(20))


def test_keys_do_not_keep_the_rows_that_they_were_cut_from() -> None:
    table = KeyTable(["k"])
    table.numbers(rows_of(range(100_000)).slice(500, 1))
    assert table.keys().get_total_buffer_size() < 1000
