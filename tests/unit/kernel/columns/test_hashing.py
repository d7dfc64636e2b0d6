from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.errors import RequestError
from millrace.kernel.columns.hashing import hashes

EXPECTED = [614368454074220721, 16083547131567819688, 10371916507857553547]


def test_the_hash_never_changes() -> None:
    found = hashes([pa.array(["a", None, ""]), pa.array([1, 2, None])])
    assert [int(each) for each in found] == EXPECTED


def test_equal_values_of_different_types_have_equal_hashes() -> None:
    assert hashes([pa.array([5], pa.int8())])[0] == hashes([pa.array([5.0])])[0]
    assert hashes([pa.array(["x"]).dictionary_encode()])[0] == hashes([pa.array(["x"])])[0]


def test_hashes_are_spread_over_all_bits() -> None:
    found = hashes([pa.array(np.arange(20_000))])
    for bit in range(64):
        share = float(((found >> np.uint64(bit)) & np.uint64(1)).mean())
        assert 0.48 < share < 0.52


def test_without_columns_all_rows_have_one_hash() -> None:
    assert len(set(hashes([], 3).tolist())) == 1
    assert len(hashes([], 3)) == 3


def test_nested_values_are_refused() -> None:
    with pytest.raises(RequestError, match="list"):
        hashes([pa.array([[1]])])
