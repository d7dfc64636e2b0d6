from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.errors import RequestError
from millrace.kernel.columns.hashing import hashes, text_words

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


def texts(seed: int, count: int = 400) -> list[str]:
    random = np.random.default_rng(seed)
    return ["".join(random.choice(list("abß\0"), size)) for size in random.integers(0, 30, count)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_equal_texts_have_equal_numbers_and_different_ones_different(kind: pa.DataType) -> None:
    values = texts(0) + texts(1) + texts(0)
    numbers = text_words(pa.array(values).cast(kind))
    assert len(set(numbers.tolist())) == len(set(values))
    assert (numbers[:400] == numbers[800:]).all()


def test_number_of_a_text_depends_on_nothing_around_it() -> None:
    values = texts(2)
    whole = pa.array(values)
    numbers = text_words(whole)
    for start, stop in ((0, 1), (7, 90), (399, 400), (5, 5)):
        assert (text_words(whole[start:stop]) == numbers[start:stop]).all()
        assert (text_words(pa.array(values[start:stop], pa.string())) == numbers[start:stop]).all()


def test_texts_of_one_length_need_no_care_for_their_ends() -> None:
    values = [f"sensor-{number:09d}" for number in range(1000)]
    assert len(set(text_words(pa.array(values)).tolist())) == 1000
    assert (text_words(pa.array([*values, "x"]))[:-1] == text_words(pa.array(values))).all()


def test_texts_without_a_byte_are_all_the_same() -> None:
    assert len(set(text_words(pa.array(["", "", None])).tolist())) == 1
