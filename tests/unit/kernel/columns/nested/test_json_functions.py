from __future__ import annotations

import pyarrow as pa
import pytest

from millrace.kernel.columns.nested.json_functions import JSON_FUNCTIONS, MALFORMED

ODD = [
    '{"a":"x","a":"y"}', '{"a":"1"},"v":{"a":"2"}', '{"a":"x"}/**/', '{"a":"x",}', '{"a":"\\u0000"}', '{"a":"x"} ',
    "null", '{"a":{"b":1}}', '{"a":"x"}}{"v":{"a":"q"}', '\n{"a":"x"}\n', '{"a":"x"}\n{"a":"y"}',
    '{"b":Infinity,"a":"x"}',
    '{"b":0123,"a":"x"}', '{"b":1e999,"a":"x"}', "",
    '{"a":12345678901234567890}', '{"a":-0}', '{"a":1.50}', '{"a":"7"}',
]  # fmt: skip


def part(texts: list[str]) -> list[str | None]:
    path, takes = pa.scalar("$.a"), pa.scalar("any")
    found: list[str | None] = JSON_FUNCTIONS["json_part"](pa.array(texts, pa.string()), path, takes).to_pylist()
    return found


@pytest.mark.parametrize("beside", ['{"a":"z"}', '{"a":7}', "[1]"], ids=["texts", "numbers", "neither"])
def test_a_part_of_a_text_does_not_depend_on_the_texts_beside_it(beside: str) -> None:
    assert [part([text, beside])[0] for text in ODD] == [part(["[1]", text])[1] for text in ODD]


def test_types_without_rows_count_nothing() -> None:
    before = MALFORMED.get()
    JSON_FUNCTIONS["from_json"](pa.scalar("{oops"), pa.scalar(None, pa.list_(pa.int32())), pa.scalar(False))
    assert MALFORMED.get() == before


def from_json(texts: list[str], kind: pa.DataType) -> list[object]:
    values: list[object] = JSON_FUNCTIONS["from_json"](
        pa.array(texts), pa.scalar(None, kind), pa.scalar(False)
    ).to_pylist()
    return values


@pytest.mark.parametrize("beside", ['{"a":"z"}', "bad"])
def test_texts_in_single_quotes_are_read_as_spark_does(beside: str) -> None:
    texts = ["{'a':'x'}", """{'a':'it\\'s "x" \\\\ y', "b":'q'}""", """{"a":"it's"}""", "{'a':'open}", beside]
    found = from_json(texts, pa.struct([("a", pa.string())]))[:4]
    assert found == [{"a": "x"}, {"a": 'it\'s "x" \\ y'}, {"a": "it's"}, {"a": None}]
    assert part([*texts, "[1]"])[:4] == ["x", 'it\'s "x" \\ y', "it's", None]


def test_an_object_is_an_array_of_one_struct() -> None:
    structs = pa.list_(pa.struct([("a", pa.int32())]))
    assert from_json(['{"a":1}', '[{"a":2}]', "3"], structs) == [[{"a": 1}], [{"a": 2}], None]
    assert from_json(['{"a":1}'], pa.list_(pa.int32())) == [None]


def test_names_of_what_is_no_number_are_fractions() -> None:
    texts = [f'{{"a":"{each}"}}' for each in ("NaN", "-INF", "+Infinity", "nan", "inf")]
    found = [str(each) for each in from_json(texts, pa.struct([("a", pa.float64())]))]
    assert found == ["{'a': nan}", "{'a': -inf}", "{'a': inf}", "{'a': None}", "{'a': None}"]
