"""The text and the line of every row, good or malformed, wherever a file is cut into blocks."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millrace.connectors.files import csv_reader, json_reader, text_lines
from millrace.connectors.files.file_reader import read_file
from millrace.plan.nodes.endpoints import Connector

SCHEMA = pa.schema([("n", pa.int32()), ("s", pa.string())])
Placed = list[tuple[str, int]]

CSV_RECORDS = ("1,a", '2,"b\nc"', '"3","d,""e"""', "x,f", "4", '5,"g', "", "6,é", "7,h,i", '8,"j\r\nk"')
GOOD = {"1,a", '2,"b\nc"', '"3","d,""e"""', "6,é", '8,"j\r\nk"'}
TORN = {"x,f": 'column "n" is not a valid INT', "4": "has 1 field instead of 2", "7,h,i": "has 3 fields instead of 2"}
JSON_LINES = ('{"n": 1}', '{"n": "x"}', "", '{"s": "é"}', "[1]", '{"n": 2, "s": "b"}', '{"n": 1', "  ")


def placed(path: Path, format: str, batch_rows: int) -> tuple[Placed, list[tuple[str, int, str]]]:
    """The text and line of all good rows; the same and the reason of the others."""
    good: Placed = []
    bad: list[tuple[str, int, str]] = []
    for batch in read_file(path, Connector(format, {"on_malformed": "skip"}), SCHEMA, batch_rows=batch_rows):
        found = batch.locate(np.arange(batch.rows.num_rows)).to_pylist()
        good += [(each["raw"], each["line"]) for each in found]
        assert {each["file"] for each in found} <= {str(path)}
        if batch.unread is not None:
            rows = batch.unread.locate(np.arange(len(batch.unread))).to_pylist()
            reasons = batch.unread.reasons.to_pylist()
            bad += [(each["raw"], each["line"], reason) for each, reason in zip(rows, reasons, strict=True)]
    return good, bad


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(CSV_RECORDS), max_size=12), st.integers(1, 40), st.integers(1, 5))
def test_csv_rows_are_found_in_their_lines(tmp_path: Path, records: list[str], block: int, batch_rows: int) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("".join(f"{each}\n" for each in ("n,s", *records)).encode())
    line, good, bad = 2, [], []
    for record in records:
        if record in GOOD:
            good.append((record, line))
        elif record:
            bad.append((record, line, TORN.get(record, "opens a quote that is not closed")))
        line += record.count("\n") + 1
    with patch.object(csv_reader, "_BLOCK_BYTES", block):
        # A quote that opens may close in a later record: then its lines are those of one record.
        if not any('5,"g' in each for each in records):
            assert placed(path, "csv", batch_rows) == (good, bad)
        else:
            found = placed(path, "csv", batch_rows)
            lines = path.read_bytes().decode().split("\n")
            assert all(
                lines[at - 1].startswith(text.split("\n")[0].rstrip("\r")) for text, at, *_ in [*found[0], *found[1]]
            )


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(JSON_LINES), max_size=12), st.integers(1, 40), st.integers(1, 5))
def test_json_rows_are_found_in_their_lines(tmp_path: Path, lines: list[str], block: int, batch_rows: int) -> None:
    path = tmp_path / "a.json"
    path.write_text("".join(f"{each}\n" for each in lines))
    reasons = {
        '{"n": "x"}': 'column "n" is not a valid INT',
        "[1]": "is not a JSON object",
        '{"n": 1': "is not a JSON object",
    }
    rows = [(text, at) for at, text in enumerate(lines, 1) if text.strip()]
    with patch.object(json_reader, "_BLOCK_BYTES", block):
        good, bad = placed(path, "json", batch_rows)
    assert good == [(text, at) for text, at in rows if text not in reasons]
    assert bad == [(text, at, reasons[text]) for text, at in rows if text in reasons]


def test_rows_of_parquet_are_found_by_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"n": pa.array([1, 2**40, 3], pa.int64()), "s": ["a", None, "c"]})
    pyarrow.parquet.write_table(table, path)
    good, bad = placed(path, "parquet", 10)
    assert [(json.loads(text)["s"], at) for text, at in good] == [("a", 1), ("c", 3)]
    assert bad == [(f'{{"n":{2**40},"s":null}}', 2, 'column "n" is not a valid INT')]


def test_of_a_line_that_is_too_long_the_beginning_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "LONGEST", 50)
    monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", 16)
    monkeypatch.setattr(json_reader, "_BLOCK_BYTES", 16)
    csv, lines = tmp_path / "a.csv", tmp_path / "a.json"
    csv.write_text("n,s\n1,a\n2," + "b" * 400 + "\n3,c\n")
    lines.write_text('{"n": 1}\n{"s": "' + "b" * 400 + '"}\n')
    (_, bad), (_, worse) = placed(csv, "csv", 10), placed(lines, "json", 10)
    for (raw, line, reason), begin in ((*bad, "2,bb"), (*worse, '{"s": "bb')):
        assert raw.startswith(begin) and 50 < len(raw) <= 200
        assert (line, reason) == (3 if begin.startswith("2") else 2, "is longer than 16 MiB")
