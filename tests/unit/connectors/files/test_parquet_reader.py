"""Text that a parquet file keeps as codes: read by them where it pays, with the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.connectors.files.file_reader import read_file
from millrace.connectors.files.parquet_reader import _coded_columns
from millrace.plan.nodes.endpoints import Connector

ROWS = 2**17
SCHEMA = pa.schema([("few", pa.string()), ("many", pa.string()), ("n", pa.int64())])


def table() -> pa.Table:
    """A column of few values, other ones in the second half and some missing, one of many, and numbers."""
    few = [None if n % 10 == 0 else f"value {n % 7 + n * 2 // ROWS * 100}" for n in range(ROWS)]
    return pa.table({"few": few, "many": [f"value {n:07d}" for n in range(ROWS)], "n": range(ROWS)}, schema=SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "coded"),
    [
        ({}, ["few"]),
        ({"row_group_size": ROWS // 2}, ["few"]),
        ({"row_group_size": ROWS // 4}, []),
        ({"use_dictionary": False}, []),
    ],
)
def test_columns_of_few_values_are_read_by_their_codes(
    tmp_path: Path, options: dict[str, int], coded: list[str]
) -> None:
    path = tmp_path / "0.parquet"
    pq.write_table(table(), path, **options)
    with pq.ParquetFile(path) as file:
        groups = list(range(file.metadata.num_row_groups))
        assert _coded_columns(file, SCHEMA, groups) == coded
    batches = [batch.rows for batch in read_file(path, Connector("parquet", {"path": str(path)}), SCHEMA)]
    assert pa.Table.from_batches(batches, SCHEMA).equals(table())


def test_a_restart_goes_on_in_the_middle_of_a_column_of_codes(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    pq.write_table(table(), path, row_group_size=ROWS // 2)
    passed = ROWS // 2 + 5
    found = read_file(path, Connector("parquet", {"path": str(path)}), SCHEMA, skip_rows=passed)
    assert pa.Table.from_batches([batch.rows for batch in found], SCHEMA).equals(table().slice(passed))


def test_a_column_of_times_written_as_text_is_read_as_it_was(tmp_path: Path) -> None:
    path, schema = tmp_path / "0.parquet", pa.schema([("at", pa.timestamp("us", tz="UTC"))])
    pq.write_table(pa.table({"at": ["2024-01-01 00:00:00"] * ROWS}), path)
    with pq.ParquetFile(path) as file:
        assert _coded_columns(file, schema, [0]) == []
    (first, *_) = read_file(path, Connector("parquet", {"path": str(path)}), schema)
    assert first.rows.schema == schema
