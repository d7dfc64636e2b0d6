"""The distance of texts over columns is that of the table filled in by hand, whatever their lengths and letters."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from millrace.kernel.columns.functions.edit_distance import levenshtein

TEXTS = st.one_of(st.none(), st.text("aé日😀\0b", max_size=5))
LONG = "a" * 70


def by_hand(one: str | None, other: str | None) -> int | None:
    if one is None or other is None:
        return None
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        above, row = row, [place]
        for column, second in enumerate(other, 1):
            row.append(min(above[column] + 1, row[-1] + 1, above[column - 1] + (letter != second)))
    return row[-1]


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6), st.booleans())
def test_a_distance_is_that_of_the_table(pairs: list[tuple[str | None, str | None]], long: bool) -> None:
    pairs = [*pairs, (LONG, "b")] if long else pairs
    one, other = (pa.array(each, pa.string()) for each in zip(*pairs, strict=True))
    assert levenshtein(one, other).to_pylist() == [by_hand(*pair) for pair in pairs]


def test_a_distance_beyond_the_most_is_minus_one() -> None:
    texts = pa.array(["kitten", "", None, "sitting"])
    assert levenshtein(texts, pa.scalar("sitting"), pa.scalar(3)).to_pylist() == [3, -1, None, 0]
