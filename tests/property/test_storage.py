"""What update queues are stored in does what plain dictionaries and sets do, saved and restored anywhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.kernel.columns import hashing
from millrace.kernel.state import Changes
from millrace.kernel.stores import key_table, row_blocks, row_gather
from millrace.kernel.stores.key_table import KeyTable
from millrace.kernel.stores.row_blocks import RowBlocks

pytestmark = pytest.mark.slow

Key = tuple[float | None, str | None]

fractions = st.sampled_from([None, 0.0, -0.0, math.nan, 1.0, 2.5, -7.0]) | st.integers(0, 60).map(float)
texts = st.sampled_from([None, "", "a", "b", "ab"])
batches_of_keys = st.lists(st.lists(st.tuples(fractions, texts), max_size=40), max_size=12)


class Saved:
    """The segments of one store, as a host keeps them."""

    def __init__(self) -> None:
        self.live: dict[int, pa.Table] = {}

    def save(self, changes: Changes) -> Changes:
        """All that is saved by now."""
        for number in changes.removed:
            del self.live[number]
        assert not self.live.keys() & changes.added.keys()
        self.live.update(changes.added)
        return Changes(dict(self.live), (), changes.note)


def canonical(key: Key) -> tuple[object, str | None]:
    number, text = key
    return ("NaN" if number is not None and math.isnan(number) else number), text


def key_rows(keys: list[Key]) -> pa.RecordBatch:
    numbers, texts = [key[0] for key in keys], [key[1] for key in keys]
    return pa.record_batch({"a": pa.array(numbers, pa.float64()), "b": pa.array(texts, pa.string())})


@given(
    batches=batches_of_keys,
    few=st.sampled_from([0, 3, 128]),
    recent=st.sampled_from([1, 100]),
    hashes=st.sampled_from([1, 3, 2**63]),
    data=st.data(),
)
def test_keys_are_numbered_as_a_dictionary_would(
    batches: list[list[Key]], few: int, recent: int, hashes: int, data: st.DataObject
) -> None:
    exact = hashing.hashes
    table, saved, model = KeyTable(["a", "b"]), Saved(), dict[object, int]()
    with (
        patch.object(key_table, "_FEW", few),
        patch.object(key_table, "_RECENT", recent),
        patch.object(hashing, "hashes", lambda columns, count=None: exact(columns, count) % np.uint64(hashes)),
    ):
        for keys in batches:
            found = table.find(key_rows(keys)).tolist()
            assert found == [model.get(canonical(key), -1) for key in keys]
            expected = [model.setdefault(canonical(key), len(model)) for key in keys]
            assert table.numbers(key_rows(keys)).tolist() == expected
            assert len(table) == len(model)
            if data.draw(st.booleans()):
                whole = saved.save(table.changes())
                if data.draw(st.booleans()):
                    table = KeyTable(["a", "b"])
                    table.restore(whole)
        known = table.keys()
        named = zip(known.column("a").to_pylist(), known.column("b").to_pylist(), strict=True)
        assert [canonical(key) for key in named] == list(model)


@contextmanager
def small_blocks(enough: int, most: int, small: int) -> Iterator[None]:
    with (
        patch.object(row_blocks, "ENOUGH", enough),
        patch.object(row_blocks, "MOST", most),
        patch.object(row_gather, "_SMALL", small),
    ):
        yield


def value_rows(values: list[int]) -> pa.RecordBatch:
    return pa.record_batch({"__time": pa.array(values, pa.int64()), "s": pa.array([f"v{value}" for value in values])})


@given(
    steps=st.integers(0, 50),
    enough=st.sampled_from([1, 4, 16]),
    most=st.sampled_from([8, 64]),
    small=st.sampled_from([0, 5, 2**14]),
    data=st.data(),
)
def test_rows_are_found_under_their_entries_until_released(
    steps: int, enough: int, most: int, small: int, data: st.DataObject
) -> None:
    with small_blocks(enough, most, small):
        blocks, saved, model, following = RowBlocks(), Saved(), dict[int, int](), 0
        for _ in range(steps):
            step = data.draw(st.sampled_from(["add", "add", "one", "take", "release", "release", "save", "restore"]))
            if step in ("add", "one"):
                count = data.draw(st.integers(0, 25)) if step == "add" else 1
                values = [1000 + following + place for place in range(count)]
                entries = blocks.add(value_rows(values)).tolist()
                assert entries == list(range(following, following + count))
                following += count
                model.update(zip(entries, values, strict=True))
            elif step == "take" and model:
                wanted = data.draw(st.lists(st.sampled_from(sorted(model)), max_size=12))
                rows = blocks.take(np.array(wanted, np.int64))
                assert rows.to_pydict().get("__time", []) == [model[entry] for entry in wanted]
            elif step == "release" and model:
                gone = data.draw(st.lists(st.sampled_from(sorted(model)), unique=True))
                blocks.release(np.array(gone, np.int64))
                model = {entry: value for entry, value in model.items() if entry not in gone}
            elif step in ("save", "restore"):
                whole = saved.save(blocks.changes())
                if step == "restore":
                    blocks = RowBlocks()
                    blocks.restore(whole, np.array(list(model), np.int64))
            assert len(blocks) == len(model)
        everything = np.array(list(model), np.int64)[::-1]
        if len(model):
            assert blocks.take(everything).column("s").to_pylist() == [
                f"v{model[entry]}" for entry in everything.tolist()
            ]
