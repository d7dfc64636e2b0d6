from __future__ import annotations

import gzip
import math
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.connectors.files.file_options import FORMATS, extension
from millrace.connectors.files.file_reader import read_file
from millrace.connectors.files.file_writer import write_file
from millrace.errors import RequestError
from millrace.kernel.elements import TIMESTAMP
from millrace.plan.nodes.endpoints import Connector

KINDS: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.string(): st.one_of(
        st.text(), st.sampled_from(["", '"', ",", "\n", "\r\n", "null", "\\", "\0", "é\u2028😀", " x "])
    ),
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1])),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.decimal128(9, 2): st.decimals(-9_999_999, 9_999_999, places=2),
    pa.decimal128(38, 20): st.decimals(-(10**17), 10**17, places=20),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    # From the year 1 to the year 9999, as ISO text has four digits for it.
    TIMESTAMP: st.one_of(
        st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
        st.integers(-62_135_596_800, 253_402_300_799).map(lambda seconds: seconds * 1_000_000),
    ),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=5))
    length = draw(st.integers(0, 8))
    names = draw(
        st.lists(st.text(st.characters(exclude_categories=["C"]), min_size=1), min_size=5, max_size=5, unique=True)
    )
    columns = [
        pa.array(draw(st.lists(st.none() | KINDS[kind], min_size=length, max_size=length)), kind) for kind in kinds
    ]
    return pa.table(columns, names=names[: len(kinds)])


def comparable(table: pa.Table) -> list[list[object]]:
    return [
        ["not a number" if isinstance(value, float) and math.isnan(value) else value for value in column.to_pylist()]
        for column in (each.cast(pa.int64()) if each.type == TIMESTAMP else each for each in table.columns)
    ]


def read_back(path: Path, format: str, schema: pa.Schema, **options: str) -> pa.Table:
    batches = [batch.rows for batch in read_file(path, Connector(format, options), schema)]
    return pa.Table.from_batches(batches, schema=schema)


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@given(table=tables())
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, format: str, table: pa.Table) -> None:
    path = tmp_path_factory.getbasetemp() / f"back{extension(format)}"
    write_file(path, format, table)
    assert comparable(read_back(path, format, table.schema)) == comparable(table)


@pytest.mark.parametrize("format", FORMATS)
def test_a_slice_is_written_alone(tmp_path: Path, format: str) -> None:
    table = pa.table({"word": ["a", "b", None, "d"], "n": [1, 2, 3, 4]})
    write_file(tmp_path / "a", format, table.slice(1, 2))
    assert read_back(tmp_path / "a", format, table.schema).to_pydict() == {"word": ["b", None], "n": [2, 3]}


def test_csv_has_a_header_and_times_without_a_zone(tmp_path: Path) -> None:
    table = pa.table({"n": [1, None], "ts": pa.array([0, None], TIMESTAMP)})
    write_file(tmp_path / "a.csv", "csv", table)
    assert (tmp_path / "a.csv").read_text() == '"n","ts"\n1,1970-01-01 00:00:00\n,\n'


def test_json_has_a_fraction_only_where_there_is_one_and_null_for_nothing(tmp_path: Path) -> None:
    table = pa.table({"n": [1, None, 3], "ts": pa.array([0, 500_000, None], TIMESTAMP)})
    write_file(tmp_path / "a.json", "json", table)
    assert (tmp_path / "a.json").read_text().splitlines() == [
        '{"n":1,"ts":"1970-01-01 00:00:00"}',
        '{"n":null,"ts":"1970-01-01 00:00:00.500000"}',
        '{"n":3,"ts":null}',
    ]


def test_csv_takes_a_delimiter_and_no_header(tmp_path: Path) -> None:
    options = {"delimiter": "\\t", "header": "false"}
    write_file(tmp_path / "a.csv", "csv", pa.table({"n": [1], "m": [2]}), options)
    assert (tmp_path / "a.csv").read_text() == "1\t2\n"


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_path_that_ends_in_gz_is_compressed(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"a{extension(format)}.gz"
    table = pa.table({"n": [1, 2]})
    write_file(path, format, table)
    assert gzip.decompress(path.read_bytes())
    assert read_back(path, format, table.schema) == table


def test_an_unknown_format_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as raised:
        write_file(tmp_path / "a", "parket", pa.table({"n": [1]}))
    assert raised.value.fact == 'there is no file format "parket"'
    assert raised.value.hint == 'Did you mean "parquet"? The formats are csv, json, parquet.'


def test_an_option_that_only_reading_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match='format "csv" has no option "on_malformed"'):
        write_file(tmp_path / "a", "csv", pa.table({"n": [1]}), {"on_malformed": "skip"})
