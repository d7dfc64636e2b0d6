"""Damaged files of every format: a row is read or counted as malformed, or the file is refused; nothing is printed.

MUTATED=4000 tries more of them.
"""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pyarrow as pa
import pytest

from millrace.connectors.files import csv_reader, json_reader, text_lines
from millrace.connectors.files.file_reader import read_file
from millrace.connectors.files.file_writer import write_file
from millrace.errors import MillraceError
from millrace.kernel.elements import TIMESTAMP
from millrace.plan.nodes.endpoints import Connector

CASES = int(os.environ.get("MUTATED", "160"))
SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64()), ("x", pa.float64()), ("b", pa.bool_()), ("ts", TIMESTAMP)])
WORDS = (
    b"\xb7",
    b'"',
    b",",
    b"\n",
    b"\r",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"[[",
    b"1e999",
    b"\xed\xa0\x80",
)
FORMATS = ("csv", "json", "parquet", "csv.gz", "json.bz2", "csv.zip")
NULLS = {"csv": {"null_value": "bé€"}}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (csv_reader, json_reader):
        monkeypatch.setattr(module, "_BLOCK_BYTES", 300)
    monkeypatch.setattr(text_lines, "LONGEST", 400)


def rows(chance: random.Random, count: int) -> pa.Table:
    def some(value: object) -> object:
        return None if chance.random() < 0.1 else value

    return pa.Table.from_pylist(
        [
            {
                "k": some(chance.choice(["a", "bé€", 'c"q', "d\nl", "", "e" * 450, " ,"])),
                "n": some(chance.randrange(-(2**63), 2**63)),
                "x": some(chance.uniform(-1e9, 1e9)),
                "b": some(chance.random() < 0.5),
                "ts": some(chance.randrange(10**16)),
            }
            for _ in range(count)
        ],
        schema=SCHEMA,
    )


def zipped(path: Path) -> None:
    data = path.read_bytes()
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", data)


def mutated(chance: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 5, 30])):
        at = chance.randrange(len(changed) + 1)
        far = min(len(changed), at + chance.choice([1, 1, 2, 10, 200]))
        piece = chance.choice([b"", bytes(changed[at:far]) * 2, chance.randbytes(far - at), *WORDS])
        changed[at:far] = piece
    return bytes(changed)


def all_rows(path: Path, format: str, at_once: int, start: int = 0) -> tuple[list[object], int]:
    connector = Connector(format, {"on_malformed": "skip", **NULLS.get(format, {})})
    read = list(read_file(path, connector, SCHEMA, batch_rows=at_once, skip_rows=start))
    values: list[object] = [repr(row) for batch in read for row in batch.rows.to_pylist()]
    return values, sum(batch.malformed for batch in read)


def check(path: Path, format: str, chance: random.Random) -> bool:
    """True if the file could be read; then the same rows come however they are asked for."""
    try:
        values, malformed = all_rows(path, format, 65_536)
    except MillraceError as error:
        assert str(path) in str(error)
        assert len(str(error)) < 5_000
        return False
    assert all_rows(path, format, 3) == (values, malformed)
    start = chance.randrange(len(values) + malformed + 1)
    rest, malformed_rest = all_rows(path, format, 7, start)
    assert len(rest) + malformed_rest == len(values) + malformed - start
    assert values[len(values) - len(rest) :] == rest
    try:
        delivered = sum(len(b.rows) for b in read_file(path, Connector(format, NULLS.get(format, {})), SCHEMA))
    except MillraceError as error:
        assert malformed, error
        assert str(path) in str(error)
    else:
        assert (delivered, malformed) == (len(values), 0)
    return True


@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_file_is_read_as_far_as_it_goes_or_refused_by_name(
    format: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    readable, kind = 0, format.partition(".")[0]
    for seed in range(CASES // len(FORMATS)):
        chance, path = random.Random(f"{format} {seed}"), tmp_path / f"a.{format}"
        write_file(path, kind, rows(chance, chance.choice([0, 1, 5, 40])))
        if path.suffix == ".zip":
            zipped(path)
        path.write_bytes(mutated(chance, path.read_bytes()))
        try:
            readable += check(path, kind, chance)
        except Exception as error:
            raise AssertionError(f"{format}, seed {seed}") from error
        assert capfd.readouterr() == ("", ""), f"{format}, seed {seed}"
    assert readable or format not in ("csv", "json")


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_packed_file_that_was_damaged_before_it_was_packed_reads_as_the_plain_one(
    format: str, tmp_path: Path
) -> None:
    chance, plain, packed = random.Random(1), tmp_path / f"a.{format}", tmp_path / f"b.{format}.gz"
    write_file(plain, format, rows(chance, 40))
    plain.write_bytes(plain.read_bytes().replace(b"a", b"\xb7\xb7,"))
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert all_rows(plain, format, 10) == all_rows(packed, format, 10)
