from __future__ import annotations

from pathlib import Path

import pytest

from millrace.hosts.checkpoint.durable_files import make_folder, replace_file
from millrace.hosts.checkpoint.file_system import files, using
from millrace.testing.simulated_files import PowerCut, SimulatedFiles


def left(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}


def test_content_that_was_not_synced_may_be_lost_cut_off_or_kept(tmp_path: Path) -> None:
    found = set()
    for seed in range(40):
        disk = SimulatedFiles(tmp_path)
        disk.write(tmp_path / "a", b"content")
        disk.sync_folder(tmp_path)
        disk.crash(seed)
        found.add(left(tmp_path)["a"])
        disk.remove(tmp_path / "a")
        disk.sync_folder(tmp_path)
    assert {b"", b"content"} < found
    assert any(b"\0" in each for each in found)
    assert any(0 < len(each) < 7 for each in found)


def test_what_was_synced_stays_when_a_file_is_only_added_to(tmp_path: Path) -> None:
    path = tmp_path / "log"
    found = set()
    for seed in range(30):
        disk = SimulatedFiles(tmp_path)
        disk.write(path, b"kept")
        disk.sync_file(path)
        disk.sync_folder(tmp_path)
        disk.append(path, b"new")
        disk.crash(seed)
        found.add(path.read_bytes())
    assert {b"kept", b"keptnew"} < found and all(each.startswith(b"kept") for each in found)


def test_a_name_is_lost_unless_its_folder_was_synced(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"1")
    disk = SimulatedFiles(tmp_path)
    disk.write(tmp_path / "new", b"2")
    disk.sync_file(tmp_path / "new")
    disk.rename(tmp_path / "old", tmp_path / "moved")
    disk.crash()
    assert left(tmp_path) == {"old": b"1"}


def test_a_rename_is_done_or_not_done_whatever_becomes_of_other_names(tmp_path: Path) -> None:
    found = set()
    for seed in range(30):
        for name in ("a", "b", "c"):
            (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / "a").write_bytes(b"1")
        disk = SimulatedFiles(tmp_path)
        disk.rename(tmp_path / "a", tmp_path / "b")
        disk.write(tmp_path / "c", b"")
        disk.crash(seed)
        found.add("".join(sorted(left(tmp_path))))
    assert found == {"a", "b", "ac", "bc"}


def test_a_file_that_was_replaced_or_removed_comes_back(tmp_path: Path) -> None:
    for name in ("replaced", "removed", "emptied"):
        (tmp_path / name).write_bytes(b"1")
    disk = SimulatedFiles(tmp_path)
    disk.write(tmp_path / "draft", b"2")
    disk.rename(tmp_path / "draft", tmp_path / "replaced")
    disk.remove(tmp_path / "removed")
    disk.write(tmp_path / "emptied", b"")
    disk.crash()
    assert left(tmp_path) == {"replaced": b"1", "removed": b"1", "emptied": b"1"}


def test_a_folder_is_safe_when_it_has_been_made(tmp_path: Path) -> None:
    with using(SimulatedFiles(tmp_path)) as disk:
        make_folder(tmp_path / "a" / "b", "a folder")
        replace_file(tmp_path / "a" / "b" / "record", "1")
        assert isinstance(disk, SimulatedFiles)
        disk.crash()
    assert (tmp_path / "a" / "b" / "record").read_text() == "1"


def test_nothing_is_written_after_the_power_has_gone(tmp_path: Path) -> None:
    with using(SimulatedFiles(tmp_path, {1: "cut"})):
        files().write(tmp_path / "a", b"1")
        for _ in range(2):
            with pytest.raises(PowerCut):
                files().write(tmp_path / "b", b"2")
    assert left(tmp_path) == {"a": b"1"}


@pytest.mark.parametrize(
    ("fault", "holds"), [("EIO", None), ("ENOSPC", None), ("EACCES", None), ("torn", b"12"), ("flip", b"1224")]
)
def test_a_call_fails_as_it_is_told_to(tmp_path: Path, fault: str, holds: bytes | None) -> None:
    disk = SimulatedFiles(tmp_path, {0: fault})
    if fault == "flip":
        disk.write(tmp_path / "a", b"1234")
    else:
        with pytest.raises(OSError, match=str(tmp_path)):
            disk.write(tmp_path / "a", b"1234")
    assert left(tmp_path).get("a") == holds
