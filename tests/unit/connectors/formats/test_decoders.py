"""Values of messages into rows: as plain Python reads them, and what is wrong with the others."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.connectors.formats.decoded import Decoded
from millrace.connectors.formats.decoders import open_decoder
from millrace.errors import RequestError

SCHEMA = pa.schema([("word", pa.string()), ("count", pa.int64()), ("ratio", pa.float64())])
WORDS = st.text(st.characters(codec="utf-8"), max_size=8)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "word": WORDS | st.none(),
        "count": st.integers(-(2**63), 2**63 - 1) | st.none(),
        "ratio": st.floats(allow_nan=False, allow_infinity=False) | st.none(),
        "other": WORDS,
    },
)


def decode(values: Sequence[bytes | None], schema: pa.Schema = SCHEMA, **options: str) -> Decoded:
    return open_decoder(schema, schema, options, 'stream "s"').decode(values)


@given(objects=st.lists(OBJECTS, max_size=20), pretty=st.booleans())
def test_json_is_read_as_python_reads_it(objects: list[dict[str, Any]], pretty: bool) -> None:
    values = [json.dumps(each, indent=1 if pretty else None).encode() for each in objects]
    found = decode(values)
    assert found.rows.to_pylist() == [{name: each.get(name) for name in SCHEMA.names} for each in objects]
    assert found.kept.tolist() == list(range(len(objects)))


@given(kinds=st.lists(st.sampled_from(["good", "torn", "list", "wrong", "bytes", "empty", "none"]), max_size=12))
def test_json_that_cannot_be_read_is_left_out_and_explained(kinds: list[str]) -> None:
    spelled = {
        "good": b'{"count": 7}',
        "torn": b'{"count": ',
        "list": b"[1]",
        "wrong": b'{"count": "x"}',
        "bytes": b'{"word": "\xff"}',
        "empty": b"",
        "none": None,
    }
    found = decode([spelled[kind] for kind in kinds])
    good = [number for number, kind in enumerate(kinds) if kind in ("good", "none")]
    assert found.kept.tolist() == good
    assert found.rows.column("count").to_pylist() == [7 if kinds[number] == "good" else None for number in good]
    for number, kind in enumerate(kinds):
        if number not in good:
            assert found.explain(number).reason == {"wrong": "is not a valid BIGINT"}.get(kind, "is not a JSON object")


@given(rows=st.lists(st.tuples(WORDS, st.integers(-9, 9)), max_size=12), text=st.sampled_from([",", ";"]))
def test_csv_is_read_as_python_reads_it(rows: list[tuple[str, int]], text: str) -> None:
    schema = pa.schema([("word", pa.string()), ("count", pa.int64())])
    values, good = [], []
    for number, row in enumerate(rows):
        out = io.StringIO(newline="")
        csv.writer(out, delimiter=text).writerow(row)
        values.append(out.getvalue().removesuffix("\r\n").encode())
        if "\0" not in row[0]:
            good.append(number)
    found = decode(values, schema, format="csv", delimiter=text)
    assert set(good) <= set(found.kept.tolist())
    read = dict(zip(found.kept.tolist(), found.rows.to_pylist(), strict=True))
    for number in good:
        word, count = rows[number]
        assert read[number] == {"word": word or None, "count": count}


def test_csv_fields_are_those_of_the_declared_columns_whichever_are_read() -> None:
    declared = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.int64())])
    read = pa.schema([declared.field("c"), declared.field("a")])
    decoder = open_decoder(read, declared, {"format": "csv", "null_value": "-"}, 'stream "s"')
    assert decoder.decode([b"1,x,2", b'3,"y,z",-']).rows.to_pylist() == [{"c": 2, "a": 1}, {"c": None, "a": 3}]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"1", "has 1 fields instead of 2"),
        (b"1,2,3", "has 3 fields instead of 2"),
        (b"1,2\n3,4", "is not one record"),
        (b"x,2", "is not a valid BIGINT"),
        (b'1,"2', "is not one record"),
        (b"", "is not one record"),
    ],
)
def test_csv_that_cannot_be_read_is_explained(value: bytes, reason: str) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    found = decode([b"1,2", value, None], schema, format="csv")
    assert found.kept.tolist() == [0, 2]
    assert found.explain(1).reason == reason


@given(values=st.lists(st.none() | st.binary(max_size=6)))
def test_raw_values_are_kept_as_they_are(values: list[bytes | None]) -> None:
    found = decode(values, pa.schema([("value", pa.binary())]), format="raw")
    assert found.rows.column("value").to_pylist() == values


def test_raw_values_that_are_no_text_are_left_out_of_a_text_column() -> None:
    found = decode([b"a", b"\xff", None, "é".encode()], pa.schema([("value", pa.string())]), format="raw")
    assert found.rows.column("value").to_pylist() == ["a", None, "é"]
    assert found.explain(1).reason == "is not text in UTF-8"


def test_raw_values_have_one_column() -> None:
    with pytest.raises(RequestError, match="not one column for the value"):
        decode([], SCHEMA, format="raw")


def test_a_format_that_there_is_not_is_refused() -> None:
    with pytest.raises(RequestError, match='no format of messages "jsn"') as caught:
        decode([], SCHEMA, format="jsn")
    assert caught.value.hint.startswith('Did you mean "json"?')
