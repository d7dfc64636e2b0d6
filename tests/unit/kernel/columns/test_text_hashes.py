from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millrace.kernel.columns.text_hashes import text_words


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
