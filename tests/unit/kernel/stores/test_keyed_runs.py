from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.stores.keyed_runs import HASH, KeyedRuns
from tests.unit.kernel.saved_segments import SavedSegments

Units = dict[int, list[int]]


def table(units: Units) -> pa.Table:
    rows = [(hash, value) for hash, values in units.items() for value in values]
    return pa.table(
        {HASH: pa.array([hash for hash, _ in rows], pa.int64()), "n": pa.array([n for _, n in rows], pa.int64())}
    )


def units_of(tables: list[pa.Table]) -> Units:
    found: Units = {}
    for row in (row for each in tables for row in each.to_pylist()):
        found.setdefault(row[HASH], []).append(row["n"])
    return found


def hashes(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def test_what_was_put_last_is_what_a_hash_holds() -> None:
    runs = KeyedRuns()
    runs.put(hashes(1, 2), table({1: [10, 11], 2: [20]}))
    runs.put(hashes(2), table({2: [21, 22]}))
    assert units_of(runs.get(hashes(1, 2, 3))) == {1: [10, 11], 2: [21, 22]}
    assert len(runs) == 4


def test_a_hash_without_rows_is_forgotten() -> None:
    runs = KeyedRuns()
    runs.put(np.arange(100), table({number: [number] for number in range(100)}))
    runs.put(hashes(5), table({}))
    assert runs.get(hashes(5)) == []
    assert len(runs) == 99


def test_nothing_is_left_when_everything_has_gone() -> None:
    runs = KeyedRuns()
    runs.put(np.arange(100), table({number: [number] for number in range(100)}))
    runs.changes()
    for number in range(100):
        runs.put(hashes(number), table({}))
    assert len(runs) == 0
    assert units_of(runs.whole()) == {}
    runs.clear()
    assert runs.nbytes == 0
    assert runs.changes().removed == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_it_is_a_dictionary_that_survives_restarts(seed: int) -> None:
    random = np.random.default_rng(seed)
    runs, segments, expected = KeyedRuns(), SavedSegments(), Units()
    for _ in range(60):
        touched = random.integers(-8, 8, int(random.integers(1, 6)))
        new = {int(hash): random.integers(0, 9, int(random.integers(0, 4))).tolist() for hash in touched}
        runs.put(touched, table(new))
        expected = {hash: values for hash, values in {**expected, **new}.items() if values}
        asked = random.integers(-8, 8, 5)
        assert units_of(runs.get(asked)) == {h: expected[h] for h in set(asked.tolist()) if h in expected}
        assert len(runs) == sum(map(len, expected.values()))
        if random.random() < 0.3:
            saved = segments.after(runs.changes())
            runs = KeyedRuns()
            runs.restore(saved)
    assert units_of(runs.whole()) == expected


def test_a_save_writes_what_changed_and_not_what_is_held() -> None:
    runs = KeyedRuns()
    written = 0
    for step in range(64):
        numbers = np.arange(step * 100, step * 100 + 100)
        runs.put(numbers, table({int(number): [1] for number in numbers}))
        written += sum(each.num_rows for each in runs.changes().added.values())
    assert len(runs) == 6_400
    assert written < 8 * len(runs)
