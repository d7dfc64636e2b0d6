from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.connectors.files import csv_reader as csv_files
from millrace.connectors.files import json_reader as json_files
from millrace.connectors.files import text_lines
from millrace.connectors.files.file_reader import read_file
from millrace.connectors.files.file_writer import write_file
from millrace.errors import MalformedRow, RunError
from millrace.kernel.elements import TIMESTAMP
from millrace.plan.nodes.endpoints import Connector

SCHEMA = pa.schema([("n", pa.int32()), ("ts", TIMESTAMP)])


def csv_lines(*lines: str) -> str:
    return "n,ts\n" + "".join(line + "\n" for line in lines)


def read_until_error(path: Path, format: str, schema: pa.Schema = SCHEMA, **options: str) -> tuple[int, str]:
    """How many rows came before the error, and its text."""
    delivered = 0
    with pytest.raises(MalformedRow) as raised:
        for batch in read_file(path, Connector(format, options), schema):
            delivered += batch.rows.num_rows
    assert "on_malformed 'skip'" in raised.value.hint
    return delivered, raised.value.fact


def counted(path: Path, format: str, **options: str) -> tuple[list[object], int]:
    batches = list(read_file(path, Connector(format, {"on_malformed": "skip", **options}), SCHEMA))
    values = [value for batch in batches for value in batch.rows.column("n").to_pylist()]
    return values, sum(batch.malformed for batch in batches)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("x,2024-01-01", 'column "n": "x" is not a valid INT'),
        ("1.5,2024-01-01", 'column "n": "1.5" is not a valid INT'),
        ("3000000000,2024-01-01", 'column "n": "3000000000" is not a valid INT'),
        ("2,yesterday", 'column "ts": "yesterday" is not a valid TIMESTAMP'),
        ("2,2024-02-30", 'column "ts": "2024-02-30" is not a valid TIMESTAMP'),
        ("2", '"2" has 1 field instead of 2'),
        ("2,2024-01-01,3", '"2,2024-01-01,3" has 3 fields instead of 2'),
    ],
)
def test_csv_delivers_the_rows_before_a_malformed_one_and_then_names_it(tmp_path: Path, bad: str, told: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(csv_lines("1,2024-01-01", "", "2,", bad, "3,", "x,"))
    delivered, fact = read_until_error(path, "csv")
    assert delivered == 2
    assert 'a.csv", line 5' in fact
    assert told in fact
    assert counted(path, "csv") == ([1, 2, 3], 2)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ('{"n":"x"}', 'column "n": "x" is not a valid INT'),
        ('{"n":1.5}', 'column "n": "1.5" is not a valid INT'),
        ('{"n":true}', 'column "n": "true" is not a valid INT'),
        ('{"n":3000000000}', 'column "n": "3000000000" is not a valid INT'),
        ('{"n":2,"ts":"yesterday"}', 'column "ts": "yesterday" is not a valid TIMESTAMP'),
        ('{"n":2,"ts":5}', 'column "ts": "5" is not a valid TIMESTAMP'),
        ('{"n":2', '"{"n":2" is not a JSON object'),
        ("[2]", '"[2]" is not a JSON object'),
        ('{"n":2}{"n":3}', "is not a JSON object"),
    ],
)
def test_json_delivers_the_rows_before_a_malformed_one_and_then_names_it(tmp_path: Path, bad: str, told: str) -> None:
    path = tmp_path / "a.json"
    path.write_text("\n".join(['{"n":1,"ts":"2024-01-01"}', "", '{"n":2}', bad, '{"n":3}', "x"]))
    delivered, fact = read_until_error(path, "json")
    assert delivered == 2
    assert 'a.json", line 4' in fact
    assert told in fact
    assert counted(path, "json") == ([1, 2, 3], 2)


def test_lines_are_counted_through_fields_that_hold_newlines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('n,word\n1,"a\nb\n\nc"\n\nx,d\n')
    _, fact = read_until_error(path, "csv", pa.schema([("n", pa.int64()), ("word", pa.string())]))
    assert "line 7" in fact


def test_text_that_is_not_utf8_is_malformed(tmp_path: Path) -> None:
    schema = pa.schema([("word", pa.string())])
    path = tmp_path / "a"
    path.write_bytes(b"word\nfine\n\xff\n")
    assert read_until_error(path, "csv", schema)[0] == 1
    path.write_bytes(b'{"word":"fine"}\n{"word":"\xff"}\n')
    assert read_until_error(path, "json", schema)[0] == 1


def test_a_file_of_malformed_rows_alone_gives_their_number(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(csv_lines("1", "2", "3"))
    assert counted(path, "csv") == ([], 3)
    path.write_text(csv_lines("x,", "y,", "z,"))
    assert counted(path, "csv") == ([], 3)
    path.write_text("x\ny\nz\n")
    assert counted(path, "json") == ([], 3)
    assert counted(path, "csv", header="false") == ([], 3)


WORDS = pa.schema([("n", pa.int64()), ("word", pa.string())])
GOOD = [f'{n},"two\nlines, {n}"' if n % 3 == 0 else f"{n},one line" for n in range(40)]
BLOCKS = [16, 50, 64, 333, 1 << 20]


def numbered(path: Path, **options: str) -> tuple[list[object], int]:
    batches = list(read_file(path, Connector("csv", {"on_malformed": "skip", **options}), WORDS))
    return [n for batch in batches for n in batch.rows.column("n").to_pylist()], sum(each.malformed for each in batches)


def with_unclosed(places: list[int], bad: str) -> str:
    """The good rows with a bad line before some of them; a place beyond them is the end."""
    lines = ["n,word"]
    for place in range(len(GOOD) + 1):
        lines += [bad] * (place in places) + GOOD[place : place + 1]
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize("bad", ['"oops,1', '100,"oops', '100,"'])
@pytest.mark.parametrize("places", [[0], [1], [20], [39], [40], [5, 30], [12, 13], [0, 40]])
def test_a_quote_that_is_never_closed_costs_its_own_line_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: list[int], bad: str, block_bytes: int
) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", block_bytes)
    path = tmp_path / "a.csv"
    path.write_text(with_unclosed(places, bad))
    assert numbered(path) == (list(range(40)), len(places))
    path.write_text(with_unclosed(places, bad) + "\n\n\n")
    assert numbered(path) == (list(range(40)), len(places))
    delivered, fact = read_until_error(path, "csv", WORDS)
    assert delivered == places[0]
    line = 2 + sum(1 + row.count("\n") for row in GOOD[: places[0]])
    assert fact.endswith(f'a.csv", line {line}: "{bad}" opens a quote that is not closed')


def test_a_quote_that_is_never_closed_early_in_a_long_file_loses_no_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,word\n" + "".join(f'"oops,{n}\n' if n == 1_000 else f"{n},w\n" for n in range(200_000)))
    assert numbered(path) == ([n for n in range(200_000) if n != 1_000], 1)


def test_an_unclosed_line_that_is_not_utf8_is_left_out_like_another(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'n,word\n1,"\xff\n2,a\n')
    assert numbered(path) == ([2], 1)


def test_empty_lines_before_the_header_of_one_column_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n\nn\n1\n\nx\n")
    delivered, fact = read_until_error(path, "csv", pa.schema([("n", pa.int64())]))
    assert (delivered, "line 6" in fact) == (2, True)


def test_a_quote_within_bare_text_is_text_and_opens_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('n,word\n1,5" pipe\n2,"a\nb"\n3,"oops\n4,6" pipe\n5,7"\n')
    assert numbered(path) == ([1, 2, 4, 5], 1)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block_bytes", BLOCKS)
def test_an_unclosed_quote_is_found_whatever_ends_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, block_bytes: int
) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", block_bytes)
    path = tmp_path / "a.csv"
    path.write_bytes(end.join(["n,word", '1,"a', 'b"', '2,"oops', "3,c", '4,"d"', ""]).encode())
    assert numbered(path) == ([1, 3, 4], 1)


LINES = {
    "csv": {True: "{n},2024-01-01", False: ("x{n},", "{n}", "{n},,", "{n},never", "99999999999{n},")},
    "json": {True: '{{"n":{n}}}', False: ("{n}", '{{"n":"{n}"}}', '{{"n":{n}', '{{"n":{n},"ts":"never"}}')},
}


def spelled(format: str, goods: list[bool]) -> Iterator[str]:
    if format == "csv":
        yield "n,ts"
    for n, good in enumerate(goods):
        wrong = LINES[format][False]
        yield (LINES[format][True] if good else wrong[n % len(wrong)]).format(n=n)  # type: ignore[union-attr]


@pytest.mark.parametrize("format", ["csv", "json"])
@given(goods=st.lists(st.booleans(), max_size=60), skip=st.integers(0, 20), batch_rows=st.integers(1, 70))
@settings(max_examples=60, deadline=None)
def test_a_restart_after_any_batch_finds_the_same_rows_and_the_same_number_malformed(
    tmp_path_factory: pytest.TempPathFactory, format: str, goods: list[bool], skip: int, batch_rows: int
) -> None:
    path = tmp_path_factory.mktemp("rows") / "a"
    path.write_text("".join(line + "\n" for line in spelled(format, goods)))
    connector = Connector(format, {"on_malformed": "skip"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "_BLOCK_BYTES", 128)
        patch.setattr(json_files, "_BLOCK_BYTES", 128)
        batches = list(read_file(path, connector, SCHEMA, batch_rows=batch_rows, skip_rows=skip))
    values = [value for batch in batches for value in batch.rows.column("n").to_pylist()]
    assert values == [n for n, good in enumerate(goods) if good and n >= skip]
    assert sum(batch.malformed for batch in batches) == goods[skip:].count(False)
    assert all(batch.rows.num_rows + batch.malformed <= batch_rows for batch in batches)


@pytest.mark.parametrize("kind", ["plain", "quoted"])
def test_a_row_with_too_few_fields_that_is_not_utf_8_is_one_malformed_row(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    poison = b"b\xb7" if kind == "plain" else b'"b\nb\xb7'
    path.write_bytes(b"n,ts\n1,2024-01-01\n" + poison + b"\n\xb7,\n\xc3\xa9,\n2,2024-01-01\n")
    assert counted(path, "csv") == ([1, 2], 4 if kind == "quoted" else 3)
    assert counted(path, "csv", null_value="é") == ([1, None, 2], 3 if kind == "quoted" else 2)
    delivered, fact = read_until_error(path, "csv")
    assert delivered == 1
    assert ('"b\ufffd" has 1 field instead of 2' if kind == "plain" else "opens a quote") in fact
    assert capfd.readouterr() == ("", "")


def test_json_is_utf_8_alone(tmp_path: Path) -> None:
    path, text = tmp_path / "a.json", '{"n":1}\n{"n":2}\n{"n":"x"}\n'
    path.write_text(text, encoding="utf-8-sig")
    assert counted(path, "json") == ([1, 2], 1)
    path.write_text(text, encoding="utf-16-le")
    assert counted(path, "json")[0] == []
    for format in ("json", "csv"):
        path.write_text(text, encoding="utf-16")
        with pytest.raises(RunError, match=r'a.json" is not UTF-8: it begins with the mark of UTF-16'):
            counted(path, format)


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_line_that_is_too_long_is_malformed_and_is_not_kept(
    format: str, packed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(json_files, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(text_lines, "LONGEST", 1000)
    path, open_file = tmp_path / f"a.{format}{packed}", gzip.open if packed else open
    head, good = ("n,ts\n", "1,\n") if format == "csv" else ("", '{"n":1}\n')
    for length, end in ((1000, "\n"), (1001, "\n"), (1024, "\r\n"), (100_000, "\n"), (100_000, "")):
        with open_file(path, "wt", newline="") as file:
            file.write(head + good + "x" * length + end + (good if end else ""))
        assert counted(path, format) == ([1, 1] if end else [1], 1), (length, end)
        assert ("is longer than 16 MiB" in read_until_error(path, format)[1]) == (length > 1000)
    with open_file(path, "wt") as file:
        file.write("x" * 100_000)
    if format == "csv":
        with pytest.raises(RunError, match=r"a.csv.* cannot be read as csv: its first line is longer than 16 MiB"):
            counted(path, format)
        assert counted(path, format, header="false") == ([], 1)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_missing_column_is_told_with_a_few_of_those_that_are_there(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{format}"
    write_file(path, format, pa.table({f"{'column' * 50}{number}": [1] for number in range(1000)}))
    with pytest.raises(RunError, match=r'has no column "n"; it has columncol.* and 970 more') as raised:
        counted(path, format)
    assert len(str(raised.value)) < 3000
