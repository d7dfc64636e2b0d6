from __future__ import annotations

import sys
from pathlib import Path

import pytest

from millrace.errors import CheckpointError
from millrace.hosts.checkpoint.digests import sealed
from millrace.hosts.spark.commit_log.plan_log import PlanLog, Version
from millrace.plan.nodes.query_network import QueryNetwork


def test_versions_are_read_by_number_and_old_ones_go(tmp_path: Path) -> None:
    log = PlanLog(tmp_path / "plans")
    assert log.newest() == 0
    for number in range(1, 6):
        log.write(number, Version(QueryNetwork(()), {f"q{number}": {"format": "csv"}}))
    assert log.newest() == 5
    assert list(log.read(4).sinks) == ["q4"]
    assert len(list((tmp_path / "plans").iterdir())) == 3


def test_a_version_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    log = PlanLog(tmp_path)
    for name in ("one", "other"):
        log.write(1, Version(QueryNetwork(()), {name: {}}))
        assert list(log.read(1).sinks) == [name]


def test_reading_a_version_lets_its_classes_be_found(tmp_path: Path) -> None:
    PlanLog(tmp_path).write(1, Version(QueryNetwork(()), paths=("beside-the-file",)))
    try:
        PlanLog(tmp_path).read(1)
        assert "beside-the-file" in sys.path
    finally:
        sys.path.remove("beside-the-file")


def test_a_version_that_names_a_class_of_another_release_is_refused(tmp_path: Path) -> None:
    log = PlanLog(tmp_path / "plans")
    for parts in ([["NoSuchNode", []]], [["Column", ["k", "further"]]]):
        content = sealed({"parts": parts, "whole": {"part": 0}}, "00000001.plan")
        log.write(1, Version(QueryNetwork(())))
        (tmp_path / "plans" / "00000001.plan").write_bytes(content)
        with pytest.raises(CheckpointError, match=f'"{tmp_path}" was made by another version of Millrace'):
            log.read(1)


def test_a_damaged_version_is_refused_by_its_name(tmp_path: Path) -> None:
    log = PlanLog(tmp_path)
    log.write(1, Version(QueryNetwork(()), {"one": {}}))
    log.write(2, Version(QueryNetwork(()), {"two": {}}))
    path = tmp_path / "00000002.plan"
    for content in (path.read_bytes()[:-1], (tmp_path / "00000001.plan").read_bytes(), b"cos\nsystem\n(S'false'\ntR."):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=f'"{path}" of the checkpoint is damaged'):
            log.read(2)
    path.unlink()
    with pytest.raises(CheckpointError, match=f'"{path}" of the checkpoint is missing'):
        log.read(2)
