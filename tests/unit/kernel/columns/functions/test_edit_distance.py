"""The distance of texts over columns is that of the table filled in by hand, whatever their lengths and letters."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from millrace.kernel.columns.functions.edit_distance import levenshtein

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


@pytest.mark.parametrize("more", [[], [(LONG, "b")]], ids=["short", "long"])
def test_a_distance_is_that_of_the_table(more: list[tuple[str, str]]) -> None:
    draw = random.Random(19)

    def text() -> str | None:
        return draw.choice([None, *("".join(draw.choices("aé日😀\0", k=draw.randint(0, 6))) for _ in range(9))])

    pairs = [*((text(), text()) for _ in range(200)), *more]
    one, other = (pa.array(each, pa.string()) for each in zip(*pairs, strict=True))
    assert levenshtein(one, other).to_pylist() == [by_hand(*pair) for pair in pairs]


def test_a_distance_beyond_the_most_is_minus_one() -> None:
    texts = pa.array(["kitten", "", None, "sitting"])
    assert levenshtein(texts, pa.scalar("sitting"), pa.scalar(3)).to_pylist() == [3, -1, None, 0]
