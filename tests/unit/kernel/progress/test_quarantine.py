from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.kernel.columns.integers import Integers
from millrace.kernel.metrics import AsideRow
from millrace.kernel.progress.quarantine import (
    PLACES,
    Aside,
    AsideBook,
    UnreadRows,
    as_unread,
    merged,
    places,
    quarantine_rows,
    reasons_of,
)


def unread(*reasons: str) -> UnreadRows:
    def locate(positions: Integers) -> pa.RecordBatch:
        return places([f"text {each}" for each in positions], "a.csv", positions.tolist())

    return UnreadRows(pa.array(reasons, pa.string()), locate)


def test_rows_set_aside_have_their_text_place_and_reason() -> None:
    rows = pa.RecordBatch.from_pydict({"n": [1, 2, None], "__time": [1, 2, 3]})
    asides = [Aside("b", np.array([2])), Aside("a", np.array([0, 1]))]
    found = quarantine_rows(as_unread(asides, rows, None)).to_pylist()
    assert found == [
        {"raw": '{"n":null}', "file": None, "line": None, "reason": "b"},
        {"raw": '{"n":1}', "file": None, "line": None, "reason": "a"},
        {"raw": '{"n":2}', "file": None, "line": None, "reason": "a"},
    ]
    located = as_unread(asides, rows, lambda wanted: places(map(str, wanted), "f", wanted.tolist()))
    assert quarantine_rows(located).column("line").to_pylist() == [2, 0, 1]


def test_only_examples_are_looked_up() -> None:
    asked: list[int] = []

    def locate(positions: Integers) -> pa.RecordBatch:
        asked.extend(positions.tolist())
        return places(["x" * 1000] * len(positions), None, [None] * len(positions))

    book = AsideBook()
    for _ in range(5):
        book.note(UnreadRows(pa.array(["bad"] * 2, pa.string()), locate))
    (rows,) = book.reasons().values()
    assert rows.count == 10 and asked == [0, 1, 0]
    assert [len(each.raw or "") for each in rows.examples] == [203] * 3


def test_reasons_are_bounded_and_none_is_lost() -> None:
    book = AsideBook()
    book.note(unread(*(f"has {number} fields" for number in range(100))))
    found = book.reasons()
    assert len(found) == 21 and sum(each.count for each in found.values()) == 100
    assert found["other reasons"].count == 80 and len(found["other reasons"].examples) == 3


@settings(max_examples=40)
@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1), max_size=5), st.integers(0, 5))
def test_books_of_parts_add_up_to_the_book_of_all(batches: list[list[str]], cut: int) -> None:
    """Batches in one book, or in two of which the second goes on after the first was saved."""
    whole, first, second = AsideBook(), AsideBook(), AsideBook()
    for number, batch in enumerate(batches):
        whole.note(unread(*batch))
        (first if number < cut else second).note(unread(*batch))
    assert merged(first.save(), second.save()).reasons() == whole.reasons() == reasons_of(whole.save())
    counted = {reason: sum(batch.count(reason) for batch in batches) for reason in set().union(*batches)}
    assert {reason: each.count for reason, each in whole.reasons().items()} == counted


def test_examples_are_the_first_rows() -> None:
    book = AsideBook()
    book.note(unread("a", "b", "a", "a", "a"))
    assert book.reasons()["a"].examples == tuple(AsideRow(f"text {each}", "a.csv", each) for each in (0, 2, 3))
    assert PLACES.names == ["raw", "file", "line"]
