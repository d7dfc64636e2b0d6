from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from millrace.errors import CheckpointError
from millrace.hosts.checkpoint.digests import sealed, unsealed
from millrace.hosts.checkpoint.durable_files import read_arrow, read_record, write_arrow, write_record

RECORD = {"layout": 7, "epoch": 3, "segments": [["join#1", 0, "00ff-3"]], "bound": -9223372036854775808}


def flips(content: bytes, step: int = 1) -> list[bytes]:
    """The content with each of its bits changed, or one in so many."""
    whole = int.from_bytes(content, "big")
    return [(whole ^ 1 << bit).to_bytes(len(content), "big") for bit in range(0, len(content) * 8, step)]


def test_no_flipped_bit_and_no_cut_of_a_record_passes() -> None:
    content = sealed(RECORD, "current.json")
    assert unsealed(content, "current.json") == RECORD
    for damaged in [*flips(content), *(content[:end] for end in range(len(content))), content + b" "]:
        assert unsealed(damaged, "current.json") is None


def test_a_record_under_another_name_is_damaged(tmp_path: Path) -> None:
    one, other = tmp_path / "00000001.json", tmp_path / "00000002.json"
    write_record(one, {"batch": 1})
    one.rename(other)
    with pytest.raises(CheckpointError, match=f'"{other}" of the checkpoint is damaged') as raised:
        read_record(other)
    assert "back from a copy" in raised.value.hint
    with pytest.raises(CheckpointError, match=f'"{one}" of the checkpoint is missing'):
        read_record(one)


def test_a_record_of_another_layout_is_known_by_it_unless_it_is_ours_and_damaged(tmp_path: Path) -> None:
    path = tmp_path / "current.json"
    path.write_text('{"layout": 6, "epoch": 3}')
    assert read_record(path, layout=7) == {"layout": None}
    for damaged in (
        '{"layout": 7, "epoch": 3}',
        '{"epoch": 3}',
        "",
        sealed(RECORD, path.name).decode().replace("3", "2", 1),
    ):
        path.write_text(damaged)
        with pytest.raises(CheckpointError, match="is damaged"):
            read_record(path, layout=7)


@pytest.mark.parametrize("mapped", [False, True])
def test_rows_are_checked_before_anything_is_made_of_them(tmp_path: Path, mapped: bool) -> None:
    path, rows = tmp_path / "join-0.arrow", pa.table({"k": ["a", "b"], "n": [1, 2]})
    told = write_arrow(path, rows)
    assert read_arrow(path, told, mapped=mapped) == rows
    content = path.read_bytes()
    for damaged in [*flips(content, 7), b"", content[:-1], content + b"\0"]:
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=f'"{path}" of the checkpoint is damaged'):
            read_arrow(path, told, mapped=mapped)
