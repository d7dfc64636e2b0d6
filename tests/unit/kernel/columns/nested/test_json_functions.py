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
