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


@pytest.mark.parametrize("beside", [None, "a", "\u0130"])
def test_letters_that_become_several_change_their_case_as_in_java(beside: str | None) -> None:
    rows = pa.record_batch({"s": ["ß", "ŉ ΐ", "ﬁx", "ᾳ", "Straße", "İ", "ΑΣ ΑΣΑ Σ", None, beside]})
    texts = rows.column("s").to_pylist()
    for function, case in (("upper", str.upper), ("lower", str.lower)):
        found = bind_expression(f"{function}(s)", rows.schema).over(rows)
        assert found.to_pylist() == [each if each is None else case(each) for each in texts]
    assert bind_expression("initcap('İa ΑΣ ß')", rows.schema).over(rows)[0].as_py() == "İa Ας Ss"


def test_nothing_is_located_at_once() -> None:
    rows = pa.record_batch({"s": ["", "abc"], "k": [2, 0]})
    found = bind_expression("array(locate('', s), locate('', s, 9), locate('', s, k), locate('', s, -1))", rows.schema)
    assert found.over(rows).to_pylist() == [[1, 1, 1, 0], [1, 1, 0, 0]]


def test_hexadecimal_digits_of_a_negative_number_are_those_of_its_type() -> None:
    rows = pa.record_batch({"n": pa.array([-1]), "i": pa.array([-1], pa.int32()), "k": pa.array([-1], pa.int8())})
    found = bind_expression("format_string('%x %X %o', n, i, k)", rows.schema).over(rows)
    assert found.to_pylist() == ["ffffffffffffffff FFFFFFFF 377"]
