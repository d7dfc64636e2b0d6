from __future__ import annotations

import bz2
import gzip
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.connectors.files import csv_reader as csv_files
from millrace.connectors.files import json_reader as json_files
from millrace.connectors.files.file_reader import read_file
from millrace.connectors.files.file_writer import write_file
from millrace.connectors.inputs import open_input
from millrace.errors import MalformedRow, RequestError, RunError
from millrace.kernel.elements import TIMESTAMP
from millrace.language import parse_network
from millrace.plan.nodes.endpoints import Connector

PAIRS = pa.schema([("n", pa.int64()), ("word", pa.string())])
TIMES = pa.schema([("ts", TIMESTAMP)])


def rows(path: Path, format: str, schema: pa.Schema, skip_rows: int = 0, **options: str) -> list[tuple[object, ...]]:
    batches = read_file(path, Connector(format, options), schema, skip_rows=skip_rows)
    return [tuple(row.values()) for batch in batches for row in batch.rows.to_pylist()]


def micros(path: Path, format: str, **options: str) -> list[int | None]:
    batches = read_file(path, Connector(format, options), TIMES)
    return [value for batch in batches for value in batch.rows.column("ts").cast(pa.int64()).to_pylist()]


def test_csv_columns_come_in_the_order_of_the_schema_and_others_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("word,extra,n\nx,not a number,1\n")
    assert rows(path, "csv", PAIRS) == [(1, "x")]


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_rows_are_counted_though_no_column_of_theirs_is_wanted(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"a.{format}"
    write_file(path, format, pa.table({"n": [1, None, 3]}))
    declared = f"CREATE STREAM s (n INT, ts TIMESTAMP) INTERNAL TIMESTAMP AS ts FROM {format} OPTIONS (path '{path}')"
    (stream,) = parse_network(f"{declared}; SELECT ts FROM s").streams()
    chunk = open_input(stream, ["ts"], None, None).read()
    assert chunk is not None
    assert chunk.rows.to_pydict() == {"n": [1, None, 3]}


def test_an_unquoted_empty_field_is_null_and_a_quoted_one_is_empty_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('n,word\n,\n"",""\n')
    assert rows(path, "csv", PAIRS) == [(None, None), (None, "")]


def test_csv_takes_delimiter_quote_header_and_null_values(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1;'a;b'\n-;NA\n")
    options = {"delimiter": ";", "quote": "'", "header": "false", "null_values": "-,NA"}
    assert rows(path, "csv", PAIRS, **options) == [(1, "a;b"), (None, None)]


def test_blanks_around_a_number_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,word\n 1 , x \n")
    assert rows(path, "csv", PAIRS) == [(1, " x ")]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zip"])
def test_compressed_csv_is_read_by_its_extension(tmp_path: Path, suffix: str) -> None:
    path, text = tmp_path / f"a.csv{suffix}", b"n,word\n1,x\n"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.csv", text)
    else:
        path.write_bytes({".gz": gzip, ".bz2": bz2}[suffix].compress(text))
    assert rows(path, "csv", PAIRS) == [(1, "x")]
    assert rows(path, "csv", PAIRS, on_malformed="skip") == [(1, "x")]


def test_an_archive_of_two_files_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "n,word\n")
        archive.writestr("b.csv", "n,word\n")
    with pytest.raises(RequestError, match="holds 2 files instead of one"):
        rows(path, "csv", PAIRS)


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize("header", ["true", "false"])
def test_an_empty_file_has_no_rows(tmp_path: Path, format: str, header: str) -> None:
    path = tmp_path / "a"
    path.write_text("")
    assert rows(path, format, PAIRS, **({"header": header} if format == "csv" else {})) == []


def test_a_missing_csv_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,words\n1,x\n")
    with pytest.raises(RunError, match=r'a\.csv" has no column "word"; it has n, words'):
        rows(path, "csv", PAIRS)


def test_a_missing_parquet_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1], "words": ["x"]}), path)
    with pytest.raises(RunError, match=r'a\.parquet" has no column "word"; it has n, words'):
        rows(path, "parquet", PAIRS)


def test_a_missing_json_key_is_null_and_others_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"word":"x","extra":[1]}\n\n{"n":2}\n')
    assert rows(path, "json", PAIRS) == [(None, "x"), (2, None)]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1.50, "b":[ 1e5 ]}',
        "[ 0.12345678901234567890 , {}]",
        "{ }",
        r'{"\u00fc":"a\/b", "c":"}]\""}',
        "[[1], [ ]]",
    ],
)
def test_an_object_of_json_in_a_column_of_text_is_its_text_to_the_letter(tmp_path: Path, text: str) -> None:
    inside = pa.struct([("t", pa.string()), ("l", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.string()))])
    schema = pa.schema([("n", pa.int64()), ("word", pa.string()), ("st", inside)])
    path = tmp_path / "a.json"
    nested = f'{{ "m" : {{"k":{text} ,"q":"x"}}, "l":["y", {text},null ],"other":{{"t":1}}, "t":{text}}}'
    path.write_text(f'{{"n":1,"word":{text}, "st" : {nested} }}\n{{"word" : "x" ,"n":2}}\n')
    found = {"t": text, "l": ["y", text, None], "m": [("k", text), ("q", "x")]}
    assert rows(path, "json", schema) == [(1, text, found), (2, "x", None)]


def test_a_file_without_a_last_newline_keeps_its_last_row(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("n,word\n1,x\n2,y")
    assert rows(path, "csv", PAIRS)[-1] == (2, "y")
    path.write_text('{"n":1}\n{"n":2}')
    assert rows(path, "json", PAIRS)[-1] == (2, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-01", 1_704_067_200_000_000),
        ("2024-01-01 00:00:00", 1_704_067_200_000_000),
        ("2024-01-01T00:00:00.5", 1_704_067_200_500_000),
        ("2024-01-01T02:00:00+02:00", 1_704_067_200_000_000),
        ("2024-01-01 00:00:00.123456Z", 1_704_067_200_123_456),
        ("2024-01-01 00:00:00.123456789", 1_704_067_200_123_456),
        ("1969-12-31 23:59:59.999999", -1),
    ],
)
def test_iso_times_are_utc_unless_they_say_otherwise(tmp_path: Path, text: str, expected: int) -> None:
    path = tmp_path / "a"
    path.write_text(f'ts\n{text}\n\n"{text}"\n')
    assert micros(path, "csv") == [expected, None, expected]
    path.write_text(f'{{"ts":"{text}"}}\n{{}}\n{{"ts":"2024-01-01"}}\n{{"ts":"2024-01-01T00:00:00Z"}}\n')
    assert micros(path, "json") == [expected, None, 1_704_067_200_000_000, 1_704_067_200_000_000]


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("epoch_seconds", "1704067200", 1_704_067_200_000_000),
        ("epoch_seconds", "1704067200.123457", 1_704_067_200_123_457),
        ("epoch_seconds", "-1.5", -1_500_000),
        ("epoch_millis", "1704067200123", 1_704_067_200_123_000),
        ("epoch_micros", "1704067200123456", 1_704_067_200_123_456),
        ("epoch_nanos", "1704067200123456789", 1_704_067_200_123_456),
        ("epoch_nanos", "-1", -1),
    ],
)
def test_epoch_times_are_exact_to_the_microsecond(tmp_path: Path, format: str, text: str, expected: int) -> None:
    path = tmp_path / "a"
    path.write_text(f"ts\n{text}\n{text}\n")
    assert micros(path, "csv", timestamp_format=format) == [expected, expected]
    path.write_text(f'{{"ts":{text}}}\n')
    assert micros(path, "json", timestamp_format=format) == [expected]


def test_every_fraction_of_a_second_in_text_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    wanted = [1_704_067_200_000_000 + fraction for fraction in range(0, 1_000_000, 997)]
    path.write_text("ts\n" + "".join(f"{each // 1_000_000}.{each % 1_000_000:06}\n" for each in wanted))
    assert micros(path, "csv", timestamp_format="epoch_seconds") == wanted


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_parquet_times_of_any_unit_and_zone_are_taken(tmp_path: Path, unit: str, zone: str | None) -> None:
    path = tmp_path / "a.parquet"
    moments = [datetime(2024, 1, 1, tzinfo=UTC), None, datetime(1960, 5, 5, tzinfo=UTC)]
    pq.write_table(pa.table({"ts": pa.array(moments, TIMESTAMP).cast(pa.timestamp(unit, zone or "UTC"))}), path)
    if zone is None:
        naive = pa.array(moments, TIMESTAMP).cast(pa.timestamp("us")).cast(pa.timestamp(unit))
        pq.write_table(pa.table({"ts": naive}), path)
    assert [row[0] for row in rows(path, "parquet", TIMES)] == moments


def test_parquet_nanoseconds_before_1970_are_floored(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"ts": pa.array([-1, 1_999], pa.timestamp("ns"))}), path)
    assert micros(path, "parquet") == [-1, 1]


def test_parquet_numbers_widen_and_a_number_that_does_not_fit_is_malformed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": pa.array([1, 300], pa.int32())}), path)
    assert rows(path, "parquet", pa.schema([("n", pa.int64())])) == [(1,), (300,)]
    with pytest.raises(MalformedRow, match='row 2, column "n": "300" is not a valid TINYINT'):
        rows(path, "parquet", pa.schema([("n", pa.int8())]))


def test_a_parquet_column_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": ["1"], "word": ["x"]}), path)
    with pytest.raises(RunError, match=r'column "n" of file .* is STRING, not BIGINT'):
        rows(path, "parquet", PAIRS)


def test_a_parquet_dictionary_column_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1, 2], "word": pa.array(["x", "y"]).dictionary_encode()}), path)
    assert rows(path, "parquet", PAIRS) == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_a_restart_goes_on_after_the_rows_it_skips(tmp_path: Path, format: str) -> None:
    path = tmp_path / "a"
    table = pa.table({"n": list(range(10)), "word": ["w"] * 10})
    if format == "parquet":
        pq.write_table(table, path, row_group_size=3)
    else:
        write_file(path, format, table)
    for skip in range(11):
        assert [row[0] for row in rows(path, format, PAIRS, skip_rows=skip)] == list(range(skip, 10))


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_no_batch_stands_for_more_rows_than_asked(tmp_path: Path, format: str) -> None:
    path = tmp_path / "a"
    write_file(path, format, pa.table({"n": list(range(10)), "word": ["w"] * 10}))
    batches = list(read_file(path, Connector(format), PAIRS, batch_rows=4))
    assert [batch.rows.num_rows for batch in batches] == [4, 4, 2]


@pytest.mark.parametrize("format", ["json", "parquet", "csv"])
def test_a_damaged_file_is_told_from_a_malformed_row(tmp_path: Path, format: str) -> None:
    path = tmp_path / ("a.parquet" if format == "parquet" else f"a.{format}.gz")
    path.write_bytes(b"this is neither")
    with pytest.raises(RunError, match=f"cannot be read as {format}"):
        rows(path, format, PAIRS)


def test_rows_longer_than_a_block_boundary_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(json_files, "_BLOCK_BYTES", 64)
    path = tmp_path / "a"
    expected = [(n, f"line {n}\nand more") for n in range(50)]
    path.write_text("n,word\n" + "".join(f'{n},"{word}"\n' for n, word in expected))
    assert rows(path, "csv", PAIRS) == expected
    path.write_text("".join(f'{{"n":{n},"word":"line {n}\\nand more"}}\n' for n, _ in expected))
    assert rows(path, "json", PAIRS) == expected


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_later_file_that_lacks_a_column_is_a_failed_run_and_no_wrong_request(tmp_path: Path, format: str) -> None:
    write_file(tmp_path / f"b.{format}", format, pa.table({"n": [1]}))
    with pytest.raises(RunError, match='has no column "word"') as raised:
        rows(tmp_path / f"b.{format}", format, PAIRS)
    assert raised.value.exit_code == 1
