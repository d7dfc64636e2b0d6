"""Changes as Debezium writes them: a table that is kept by its rows equals the table that was changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.connectors.formats.decoders import open_decoder
from millrace.errors import RequestError

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("debezium_op", pa.string()),
        ("debezium_deleted", pa.bool_()),
        ("debezium_ts", pa.timestamp("us", "UTC")),
    ]
)


def change(op: str, before: Any, after: Any, *, wrapped: bool) -> bytes:
    envelope = {"before": before, "after": after, "op": op, "ts_ms": 1000, "source": {"db": "shop"}}
    return json.dumps({"schema": {"type": "struct"}, "payload": envelope} if wrapped else envelope).encode()


def decoder(schema: pa.Schema = COLUMNS) -> Any:
    return open_decoder(schema, schema, {"format": "debezium"}, 'stream "s"')


@given(
    steps=st.lists(st.tuples(st.integers(1, 4), st.none() | st.text(max_size=4)), max_size=20), wrapped=st.booleans()
)
def test_a_table_kept_by_the_rows_is_the_table_that_was_changed(
    steps: list[tuple[int, str | None]], wrapped: bool
) -> None:
    table: dict[int, str] = {}
    values: list[bytes | None] = []
    for key, name in steps:
        before = {"id": key, "name": table[key]} if key in table else None
        if name is not None:
            values.append(change("u" if before else "c", before, {"id": key, "name": name}, wrapped=wrapped))
            table[key] = name
        elif before:
            values += [change("d", before, None, wrapped=wrapped), None]
            del table[key]
    found = decoder().decode(values)
    kept: dict[int, str] = {}
    for row in found.rows.to_pylist():
        if row["debezium_deleted"]:
            assert (row["debezium_op"], kept.pop(row["id"])) == ("d", row["name"])
        else:
            kept[row["id"]] = row["name"]
        assert row["debezium_ts"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert kept == table
    assert sorted([*found.kept.tolist(), *found.no_rows.tolist()]) == list(range(len(values)))


@pytest.mark.parametrize(
    ("value", "reason"),
    [(b"{}", "is no change of Debezium"), (b"[", "is not a JSON object"), (b'{"op": 1}', "is not a valid STRING")],
)
def test_what_is_no_change_is_set_aside(value: bytes, reason: str) -> None:
    good = change("c", None, {"id": 1, "name": "a"}, wrapped=False)
    found = decoder().decode([None, good, value])
    assert (found.kept.tolist(), found.no_rows.tolist()) == ([1], [0])
    assert found.explain(2).reason == reason


def test_columns_of_the_envelope_have_their_types() -> None:
    with pytest.raises(RequestError, match='column "debezium_deleted" of stream "s" is STRING'):
        decoder(pa.schema([("id", pa.int64()), ("debezium_deleted", pa.string())]))
