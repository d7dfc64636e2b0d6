"""Functions of text and bytes that are computed for whole columns give what Python gives value by value."""

from __future__ import annotations

import base64
from urllib.parse import unquote_plus

import pyarrow as pa
import pytest

from millrace.language import bind_expression

TEXTS = [None, "", "a", "ab", "abc", "äbé", "\0x", "banana", "日本語"]
ROWS = pa.record_batch({"s": TEXTS, "b": [None if each is None else each.encode() for each in TEXTS]})


@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize(
    ("given", "wanted"), [("ab", "xy"), ("aé", "x"), ("ab", "ba"), ("aab", "12x"), ("", "x"), ("abn", "x\0y")]
)
def test_letters_are_translated_one_by_one(given: str, wanted: str, start: int) -> None:
    rows = ROWS.slice(start)
    table = {ord(letter): wanted[place : place + 1] for place, letter in reversed(list(enumerate(given)))}
    found = bind_expression(f"translate(s, '{given}', '{wanted}')", rows.schema).over(rows)
    assert found.to_pylist() == [each if each is None else each.translate(table) for each in TEXTS[start:]]


@pytest.mark.parametrize("start", [0, 3])
def test_bytes_are_written_in_base_64_and_in_hexadecimal_digits(start: int) -> None:
    rows = ROWS.slice(start)
    given = rows.column("b").to_pylist()
    found = bind_expression("base64(b)", rows.schema).over(rows).to_pylist()
    assert found == [each if each is None else base64.b64encode(each).decode() for each in given]
    digits = bind_expression("hex(b)", rows.schema).over(rows).to_pylist()
    assert digits == [each if each is None else each.hex().upper() for each in given]


@pytest.mark.parametrize("start", [0, 3])
def test_a_text_is_written_for_an_address(start: int) -> None:
    rows = ROWS.slice(start)
    found = bind_expression("url_encode(concat(s, ' ~*-._&'))", rows.schema).over(rows).to_pylist()
    assert all(each is None or each.endswith("+%7E*-._%26") for each in found)
    assert [each if each is None else unquote_plus(each)[:-7] for each in found] == TEXTS[start:]


def test_a_pattern_of_texts_and_whole_numbers_is_filled_in_over_columns() -> None:
    rows = pa.record_batch({"i": pa.array([1, None, -7], pa.int32()), "s": ["a", None, "%d"]})
    for text in ("format_string('%s: %d!', s, i)", "format_string('%1$s: %2$d!', s, i)"):
        found = bind_expression(text, rows.schema).over(rows)
        assert found.to_pylist() == ["a: 1!", "null: null!", "%d: -7!"]
    assert bind_expression("format_string('%d%%', i)", rows.schema).over(rows).to_pylist() == ["1%", "null%", "-7%"]
