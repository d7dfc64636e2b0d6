"""Records of Avro into rows, with one schema and with those of a registry, which is a stub that speaks its HTTP."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.connectors.formats.decoded import Decoded
from millrace.connectors.formats.decoders import open_decoder
from millrace.connectors.source import Unreachable
from millrace.errors import RequestError, RunError
from tests.schema_registry import registry

fastavro = pytest.importorskip("fastavro", reason="fastavro is not installed: pip install 'millrace[avro]'")

COLUMNS = pa.schema([("word", pa.string()), ("count", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
FIELDS = [
    {"name": "word", "type": ["null", "string"]},
    {"name": "count", "type": "long"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
]
OLD = {"type": "record", "name": "Word", "fields": FIELDS[:2]}
NEW = {"type": "record", "name": "Word", "fields": FIELDS}
AT = datetime(2026, 1, 1, tzinfo=UTC)


def record(schema: Any, values: dict[str, Any], number: int | None = None) -> bytes:
    """A message: a record, after the number of its schema if it names one."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), values)
    return (b"" if number is None else b"\0" + number.to_bytes(4, "big")) + out.getvalue()


def decode(values: list[bytes | None], **options: str) -> Decoded:
    return open_decoder(COLUMNS, COLUMNS, {"format": "avro", **options}, 'stream "s"').decode(values)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a registry with the schemas 1 and 2; refuses a login, unless it is "me" with the password "pw"."""
    with registry({1: OLD, 2: NEW}, login="Basic bWU6cHc=") as found:
        yield found


@given(rows=st.lists(st.tuples(st.text(max_size=5) | st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=10))
def test_records_of_one_schema_are_read(rows: list[tuple[str | None, int]]) -> None:
    wanted = [{"word": word, "count": count, "at": AT} for word, count in rows]
    found = decode([record(NEW, each) for each in wanted], schema=json.dumps(NEW))
    assert found.rows.to_pylist() == wanted
    assert found.kept.tolist() == list(range(len(rows)))


def test_a_schema_may_stand_in_a_file_and_lack_columns(tmp_path: Path) -> None:
    (tmp_path / "word.avsc").write_text(json.dumps(OLD))
    found = decode([record(OLD, {"word": "a", "count": 1}), None], schema_file=str(tmp_path / "word.avsc"))
    assert found.rows.to_pylist() == [{"word": "a", "count": 1, "at": None}, dict.fromkeys(COLUMNS.names)]


def test_each_message_is_read_by_the_schema_that_it_names(address: str) -> None:
    values = [record(OLD, {"word": "a", "count": 1}, 1), record(NEW, {"word": None, "count": 2, "at": AT}, 2)]
    assert decode([*values, values[0]], schema_registry=address).rows.column("count").to_pylist() == [1, 2, 1]
    given = {"registry_username": "me", "registry_password": "pw"}
    assert decode(values[:1], schema_registry=address, **given).rows.num_rows == 1


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "names no schema of a registry"),
        (b"{}", "names no schema of a registry"),
        (b"\0\0\0\0\x09x", "names schema 9, which the registry does not have"),
        (b"\0\0\0\0\x01\xff", "is not a record of its schema"),
        (record(OLD, {"word": "a", "count": 1}, 1) + b"more", "is not a record of its schema"),
    ],
)
def test_what_is_no_record_is_set_aside_with_the_reason(address: str, value: bytes, reason: str) -> None:
    good = record(OLD, {"word": "a", "count": 1}, 1)
    found = decode([good, value, good], schema_registry=address)
    assert found.kept.tolist() == [0, 2]
    assert found.explain(1).reason == reason


def test_a_value_that_does_not_fit_its_column_is_set_aside() -> None:
    text = {**OLD, "fields": [{"name": "count", "type": ["long", "string"]}]}
    values: list[bytes | None] = [record(text, {"count": 1}), record(text, {"count": "many"})]
    found = decode(values, schema=json.dumps(text))
    assert (found.kept.tolist(), found.explain(1).column) == ([0], "count")
    assert found.explain(1).reason == "is not a valid BIGINT"


def test_a_registry_that_refuses_or_does_not_answer_is_an_error(address: str) -> None:
    value = record(OLD, {"word": "a", "count": 1}, 1)
    with pytest.raises(RunError, match="refuses"):
        decode([value], schema_registry=address, registry_username="me", registry_password="wrong")
    with pytest.raises(Unreachable, match="does not answer"):
        decode([value], schema_registry="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no schema"),
        ({"schema": "{}", "schema_file": "x"}, "several schemas"),
        ({"schema": "{"}, "cannot be read"),
        ({"schema_file": "/no/such/file"}, "cannot be read: No such file"),
        ({"schema_registry": "host:8081"}, 'does not take "host:8081"'),
    ],
)
def test_wrong_options_of_avro_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        decode([], **options)
